//! What a reader of the page sees first: one lock that 32 workers want, ours beside others, as a table and as a picture.

use std::collections::BTreeMap;

use super::judge::LAST_BITS;
use super::{Select, Summary, SummaryCell};
use crate::measure::derive::{Spread, ratios};
use crate::measure::report::format::{self, NONE};
use crate::shared::render::svg::{Anchor, Svg};

/// Workers of the comparison, and processes they are spread over.
const WORKERS: u32 = 32;
const PROCESSES: u32 = 8;

/// Who is compared, and which cells stand for it; of several the one with most hand-offs.
struct Who {
    name: &'static str,
    tone: Tone,
    strategy: &'static str,
    client: &'static str,
    kind: &'static str,
    processes: &'static [u32],
    turns: Option<u32>,
}

/// How it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Ours,
    Floor,
    Other,
    /// In the table only: it is no hand-off between processes.
    Aside,
}

const fn ours(name: &'static str, client: &'static str, kind: &'static str) -> Who {
    Who {
        name,
        tone: Tone::Ours,
        strategy: "locktopus",
        client,
        kind,
        processes: &[PROCESSES],
        turns: Some(1),
    }
}

const fn other(name: &'static str, strategy: &'static str, kind: &'static str) -> Who {
    Who {
        name,
        tone: Tone::Other,
        strategy,
        client: "redis-rs",
        kind,
        processes: &[PROCESSES],
        turns: None,
    }
}

const fn java(name: &'static str, kind: &'static str) -> Who {
    Who {
        client: "redisson",
        processes: &[1, 2],
        ..other(name, "redisson", kind)
    }
}

const ALL: [Who; 9] = [
    Who {
        tone: Tone::Floor,
        ..other("bare hand-off, the floor", "bare", "mutex")
    },
    ours("`lock`, redis-rs", "redis-rs", "lock"),
    ours("`lock`, fred", "fred", "lock"),
    ours("`fair_lock`, redis-rs", "redis-rs", "fair-lock"),
    java("Redisson RLock", "lock"),
    java("Redisson RFairLock", "fair-lock"),
    other("R1: publish and retry", "R1", "lock"),
    other("rslock", "rslock", "mutex"),
    Who {
        tone: Tone::Aside,
        turns: None,
        ..ours(
            "`lock` as it comes: neighbours in a process pass it on",
            "redis-rs",
            "lock",
        )
    },
];

/// One line of the comparison.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    /// Who, in Markdown.
    pub(super) name: &'static str,
    tone: Tone,
    /// Of which run.
    run: usize,
    /// Hand-offs per second by the number of the round.
    rates: BTreeMap<u32, f64>,
    hand_offs: f64,
    p50: Option<f64>,
    worst_wait: Option<f64>,
    server_cpu: Option<f64>,
    jain: Option<f64>,
}

impl Compared {
    fn of(who: &Who, cell: &SummaryCell) -> Option<Self> {
        let median = |figure: &str| {
            Spread::of(cell.by_round(figure).into_values()).map(|spread| spread.median)
        };
        Some(Self {
            name: who.name,
            tone: who.tone,
            run: cell.run,
            rates: cell.by_round("acquisitions/s"),
            hand_offs: median("acquisitions/s")?,
            p50: median("hand-off p50"),
            worst_wait: median("acquire max"),
            server_cpu: median("server CPU"),
            jain: median("Jain"),
        })
    }

    /// The name in a table, in which ours stand out.
    #[must_use]
    pub(super) fn shown(&self) -> String {
        match self.tone {
            Tone::Ours | Tone::Aside => format!("**{}**", self.name),
            Tone::Floor | Tone::Other => self.name.to_owned(),
        }
    }

    /// How many times as often as another the lock is handed on: round by round, as goals are judged. Only rounds of one run
    /// are the same rounds.
    fn times(&self, other: &Self) -> Option<f64> {
        let by_round = ratios(&self.rates, &other.rates);
        let times = Spread::of(by_round.into_values()).map(|spread| spread.median)?;
        (self.run == other.run).then_some(times * (1.0 + LAST_BITS))
    }

    /// Hand-offs per second, p50, worst wait, server CPU of an acquisition, Jain's index.
    #[must_use]
    pub(super) fn fields(&self) -> [String; 5] {
        let time = |ns: Option<f64>| ns.map_or_else(|| NONE.to_owned(), format::natural);
        let number = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), format::number);
        [
            format::number(self.hand_offs),
            time(self.p50),
            time(self.worst_wait),
            time(self.server_cpu),
            number(self.jain),
        ]
    }
}

/// Everybody that was measured, in the order of the table.
#[must_use]
pub(super) fn compared(summary: &Summary) -> Vec<Compared> {
    let cell = |who: &Who| {
        let cells = who.processes.iter().filter_map(|&processes| {
            let select = Select {
                scenario: Some("hot-lock".to_owned()),
                strategy: Some(who.strategy.to_owned()),
                client: Some(who.client.to_owned()),
                kind: Some(who.kind.to_owned()),
                workers: Some(WORKERS),
                processes: Some(processes),
                turns: who.turns,
                ..Select::default()
            };
            let mut cells = summary.cells.iter().rev();
            Compared::of(who, cells.find(|cell| select.matches(&cell.subject))?)
        });
        cells.max_by(|a, b| a.hand_offs.total_cmp(&b.hand_offs))
    };
    ALL.iter().filter_map(cell).collect()
}

/// The comparison in one sentence or two; empty without figures.
#[must_use]
pub(super) fn in_words(all: &[Compared]) -> String {
    let of = |name: &str| all.iter().find(|one| one.name.starts_with(name));
    let Some(lock) = of("`lock`, redis-rs") else {
        return String::new();
    };
    let mut words = format!(
        "Between processes a lock that {WORKERS} workers want is handed on {} times a second",
        format::number(lock.hand_offs)
    );
    let ratio = |name: &str, what: &str| {
        let times = format::number(lock.times(of(name)?)?);
        Some(format!("{times} × as often as {what}"))
    };
    let ratios: Vec<String> = [
        ratio("bare", "a bare hand-off that promises nothing"),
        ratio("Redisson RLock", "by Redisson's RLock"),
        ratio("R1", "by publish and retry"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !ratios.is_empty() {
        words.push_str(": ");
        words.push_str(&ratios.join(", "));
        // Else a reader divides the medians of the table, and gets another number.
        words.push_str(", each the median of what the rounds had");
    }
    words.push('.');
    if let Some(aside) = of("`lock` as it comes") {
        words.push_str(&format!(
            " As it comes, waiters of one process pass it on among themselves before it goes back: {} a second.",
            format::number(aside.hand_offs)
        ));
    }
    words
}

/// Colours for a page that is light or dark; the picture stands alone, so it brings its own.
const STYLE: &str = "text{font:13px system-ui,'Segoe UI',Roboto,Arial,sans-serif;fill:#171a20}\
    .bg{fill:#ffffff;stroke:#dfe3e9}.head{font-weight:600}.dim{fill:#5a6270;font-size:12px}\
    .bar{stroke-width:13;stroke:#a3abb8}.ours{stroke:#1f5fbf}.floor{stroke:#0b7f6b}.zero{stroke:#dfe3e9}\
    @media(prefers-color-scheme:dark){text{fill:#e8ebf0}.bg{fill:#171b22;stroke:#2a313c}.dim{fill:#9aa4b3}\
    .bar{stroke:#5c6470}.ours{stroke:#6ea8ff}.floor{stroke:#3fd0b0}.zero{stroke:#2a313c}}";

const WIDTH: f64 = 880.0;
const LEFT: f64 = 20.0;
const TOP: f64 = 84.0;
const ROW: f64 = 26.0;
/// Where the panels begin, how long their longest bar is, and what they show.
const PANELS: [Panel; 3] = [
    Panel {
        at: 205.0,
        title: "hand-offs per second",
        note: "more is better",
        value: |one| Some(one.hand_offs),
        text: format::number,
    },
    Panel {
        at: 432.0,
        title: "worst wait",
        note: "less is better",
        value: |one| one.worst_wait,
        text: format::natural,
    },
    Panel {
        at: 659.0,
        title: "server CPU of an acquisition",
        note: "less is better",
        value: |one| one.server_cpu,
        text: format::natural,
    },
];
const LONGEST: f64 = 130.0;

struct Panel {
    at: f64,
    title: &'static str,
    note: &'static str,
    value: fn(&Compared) -> Option<f64>,
    text: fn(f64) -> String,
}

/// The picture; `None` where nothing was compared.
#[must_use]
pub fn picture(summary: &Summary) -> Option<String> {
    let mut all = compared(summary);
    all.retain(|one| one.tone != Tone::Aside);
    if all.is_empty() {
        return None;
    }
    let height = TOP + ROW * all.len() as f64 + 40.0;
    let title = format!("One lock that {WORKERS} workers want, given back at once");
    let desc = "Bars for each way of locking: hand-offs per second, the worst wait of a round, and the processor time of the \
        server for an acquisition.";
    let mut svg = Svg::standalone(WIDTH, height, &title, desc, STYLE);
    svg.text("head", (LEFT, 30.0), Anchor::Start, &title);
    let colours = "blue: this library; green: the floor; grey: others";
    svg.text("dim", (PANELS[1].at, 30.0), Anchor::Start, colours);
    for panel in &PANELS {
        svg.text("head", (panel.at, 58.0), Anchor::Start, panel.title);
        svg.text("dim", (panel.at, 74.0), Anchor::Start, panel.note);
        let bottom = TOP + ROW * all.len() as f64;
        svg.line("zero", (panel.at, TOP), (panel.at, bottom));
    }
    for (row, one) in (0_u32..).zip(&all) {
        let y = TOP + ROW * (f64::from(row) + 0.5);
        let name = one.name.replace('`', "");
        svg.text("name", (LEFT, y + 4.5), Anchor::Start, &name);
        for panel in &PANELS {
            draw(&mut svg, panel, one, &all, y);
        }
    }
    let below = format!(
        "Medians over rounds; servers on one core, all clients on another. Redisson: its better of one and two Java machines; \
         all others: {PROCESSES} processes."
    );
    svg.text("dim", (LEFT, height - 14.0), Anchor::Start, &below);
    Some(svg.finish() + "\n")
}

fn draw(svg: &mut Svg, panel: &Panel, one: &Compared, all: &[Compared], y: f64) {
    let Some(value) = (panel.value)(one) else {
        return svg.text("dim", (panel.at + 6.0, y + 4.5), Anchor::Start, NONE);
    };
    let most = all.iter().filter_map(panel.value).fold(0.0, f64::max);
    let length = if most > 0.0 {
        LONGEST * value / most
    } else {
        0.0
    };
    // What is next to nothing is still there.
    let end = panel.at + length.max(1.5);
    let class = match one.tone {
        Tone::Ours => "bar ours",
        Tone::Floor => "bar floor",
        Tone::Other | Tone::Aside => "bar",
    };
    let text = (panel.text)(value);
    let tip = format!("{}: {text}", one.name.replace('`', ""));
    svg.bar(class, y, panel.at, end, &tip);
    svg.text("num", (end + 6.0, y + 4.5), Anchor::Start, &text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::synthetic;

    fn summary() -> Summary {
        let mut report = synthetic::shared().clone();
        for cell in &mut report.cells {
            let subject = &mut cell.subject;
            if subject.scenario == "hot-lock" {
                subject.processes = PROCESSES;
                if subject.strategy == "locktopus" {
                    subject.lock_kind = "lock".to_owned();
                    subject.options.insert("turns".into(), "1".into());
                }
            }
        }
        Summary::of(&[report]).unwrap()
    }

    #[test]
    fn everybody_that_was_measured_is_there_and_nobody_else() {
        let found = compared(&summary());
        let names: Vec<_> = found.iter().map(|one| one.name).collect();
        assert!(names.contains(&"`lock`, redis-rs"), "{names:?}");
        assert!(!names.contains(&"Redisson RLock"), "{names:?}");
        let words = in_words(&found);
        assert!(
            words.contains("32 workers") && words.ends_with('.'),
            "{words}"
        );
        assert_eq!(in_words(&[]), "");
    }

    /// The better of one and two Java machines stands for Redisson.
    #[test]
    fn the_better_of_two_stands_for_both() {
        let mut summary = summary();
        let mut cell = summary.cells[0].clone();
        cell.subject.strategy = "redisson".to_owned();
        cell.subject.client = "redisson".to_owned();
        cell.subject.lock_kind = "lock".to_owned();
        cell.subject.workers = WORKERS;
        cell.subject.options.clear();
        for (processes, rate) in [(1, 300.0), (2, 200.0)] {
            cell.subject.processes = processes;
            let rates = vec![Some(rate); cell.rounds.len()];
            cell.figures.insert("acquisitions/s".to_owned(), rates);
            summary.cells.push(cell.clone());
        }
        let found = compared(&summary);
        let redisson = found.iter().find(|one| one.name == "Redisson RLock");
        assert_eq!(redisson.unwrap().fields()[0], "300");
    }

    #[test]
    fn ours_stand_out_and_ratios_are_taken_round_by_round() {
        let mut summary = summary();
        let mut cell = summary.cells[0].clone();
        cell.rounds = vec![0, 1, 2];
        cell.subject.lock_kind = "lock".to_owned();
        cell.subject.client = "redis-rs".to_owned();
        cell.subject.workers = WORKERS;
        cell.subject.processes = PROCESSES;
        for (strategy, turns, rates) in [
            ("locktopus", Some("1"), [100.0, 200.0, 300.0]),
            ("R1", None, [100.0, 50.0, 60.0]),
        ] {
            cell.subject.strategy = strategy.to_owned();
            cell.subject.options.clear();
            if let Some(turns) = turns {
                let options = &mut cell.subject.options;
                options.insert("turns".to_owned(), turns.to_owned());
            }
            let rates = rates.map(Some).to_vec();
            cell.figures.insert("acquisitions/s".to_owned(), rates);
            summary.cells.push(cell.clone());
        }
        let found = compared(&summary);
        // 1, 4 and 5 times as often; the medians are 200 and 60.
        let words = in_words(&found);
        assert!(
            words.contains("4.00 × as often as by publish and retry"),
            "{words}"
        );
        let shown: Vec<String> = found.iter().map(Compared::shown).collect();
        assert!(
            shown.iter().any(|name| name == "**`lock`, redis-rs**"),
            "{shown:?}"
        );
        assert!(
            shown.iter().any(|name| name == "R1: publish and retry"),
            "{shown:?}"
        );
        // Rounds of another run are other rounds.
        summary.cells.last_mut().unwrap().run = 1;
        assert!(!in_words(&compared(&summary)).contains("publish and retry"));
    }

    #[test]
    fn the_picture_stands_alone() {
        let picture = picture(&summary()).unwrap();
        for wanted in [
            "xmlns=\"http://www.w3.org/2000/svg\"",
            "prefers-color-scheme:dark",
            "class=\"pt bar ours\"",
            "blue: this library",
            "hand-offs per second",
        ] {
            assert!(picture.contains(wanted), "{wanted}");
        }
        let nothing = Summary::of(&[synthetic::empty()]).unwrap();
        assert_eq!(super::picture(&nothing), None);
    }
}
