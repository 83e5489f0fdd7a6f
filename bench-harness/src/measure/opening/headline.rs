//! The opening of a report: one lock that many workers want, ours beside others under the same
//! load.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::measure::derive::{Spread, Unit, ratios};
use crate::measure::model::Subject;
use crate::measure::summary::SummaryCell as Cell;
use crate::shared::render::format::{count, duration, natural};

/// The strategy that others are compared with.
const OURS: &str = "locktopus";
/// The option for how many tasks of a process get a lock in turn before it returns to the server.
const TURNS: &str = "turns";
/// Workers and processes of `docs/performance.md`; a run with this load opens with it.
const USUAL: (u32, u32) = (32, 8);

/// One workload, and the figures of each lock under it.
#[derive(Clone, Debug)]
pub struct Headline {
    /// The workload in words.
    pub title: String,
    /// The locks that were measured, ours first.
    pub rows: Vec<HeadlineRow>,
    /// How ours compares, a sentence for each figure.
    pub said: Vec<String>,
}

/// One lock of a [`Headline`].
#[derive(Clone, Debug)]
pub struct HeadlineRow {
    /// The lock, by the name that its users know.
    pub name: String,
    /// Whose it is.
    pub who: Who,
    /// The figures, in the order of [`HEADLINE_COLUMNS`].
    pub figures: Vec<Option<Spread>>,
}

/// Whose lock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// This library's with defaults: tasks of one process pass it to each other.
    Ours,
    /// This library's, each hand-off through the server.
    OursThroughServer,
    /// The bare hand-off, which promises nothing.
    Floor,
    /// Another library's.
    Other,
}

impl Who {
    fn of(subject: &Subject) -> Self {
        match subject.strategy.as_str() {
            OURS if is_through_server(subject) => Self::OursThroughServer,
            OURS => Self::Ours,
            "bare" => Self::Floor,
            _ => Self::Other,
        }
    }

    /// Whether it is this library's.
    #[must_use]
    pub const fn is_ours(self) -> bool {
        matches!(self, Self::Ours | Self::OursThroughServer)
    }
}

fn is_through_server(subject: &Subject) -> bool {
    subject.options.get(TURNS).map(String::as_str) == Some("1")
}

/// The figures of a [`HeadlineRow`].
pub const HEADLINE_COLUMNS: [(&str, Unit); 7] = [
    ("hand-off, p50", Unit::Nanos),
    ("hand-off, p99", Unit::Nanos),
    ("longest wait", Unit::Nanos),
    ("fairness", Unit::Plain),
    ("server CPU a lock", Unit::Nanos),
    ("locks a second", Unit::PerSecond),
    ("commands a lock", Unit::Plain),
];
/// The same figures, by their names in a [`Cell`].
const FIGURES: [&str; 7] = [
    HAND_OFF,
    "hand-off p99",
    LONGEST_WAIT,
    "Jain",
    SERVER_CPU,
    RATE,
    "commands",
];
const HAND_OFF: &str = "hand-off p50";
const LONGEST_WAIT: &str = "acquire max";
const SERVER_CPU: &str = "server CPU";
const RATE: &str = "acquisitions/s";

/// How to read the figures of a headline.
pub const HEADLINE_NOTE: &str = "A hand-off lasts from the start of a release until the next holder knows that it has the lock. With defaults, tasks of one process pass the lock to \
    each other before it goes back to the server. Fairness is 1 when all workers got the lock equally often (Jain's index). Server \
    CPU is the server's processor time for one acquisition with its release; commands are those that clients send for it. The bare hand-off is the floor: it has no lease, no \
    token and no check that a waiter is alive.";

/// A headline for each hold time; none if no run had several workers on one lock of ours.
#[must_use]
pub fn headlines(cells: &[Cell]) -> Vec<Headline> {
    let cells: Vec<&Cell> = cells.iter().filter(|cell| is_hot(cell)).collect();
    let holds: BTreeSet<u64> = cells.iter().map(|cell| cell.subject.hold_ns).collect();
    holds
        .into_iter()
        .filter_map(|hold| {
            let held: Vec<&Cell> = cells
                .iter()
                .copied()
                .filter(|cell| cell.subject.hold_ns == hold)
                .collect();
            let ours = held.iter().copied().filter(|cell| is_default(cell));
            let ours = ours.max_by_key(|cell| telling(cell, &held))?;
            Some(headline(ours, &held))
        })
        .collect()
}

/// Whether the cell is one lock on a server that several workers want.
fn is_hot(cell: &Cell) -> bool {
    let subject = &cell.subject;
    subject.scenario == "hot-lock"
        && subject.workers > 1
        && subject.server.is_some()
        && !subject.through_proxy
        && !subject.pacing.is_corrected()
        && !cell.rounds.is_empty()
}

/// `lock`, or `mutex` where a run has no `lock`, with default options.
fn is_default(cell: &Cell) -> bool {
    let mut options = cell.subject.options.keys();
    cell.subject.strategy == OURS
        && matches!(cell.subject.lock_kind.as_str(), "lock" | "mutex")
        && options.all(|name| name == "rounds")
}

/// Ranks cells by how much they tell: first the usual load, then the most other locks, then the
/// most workers; `lock` before `mutex`, and redis-rs before fred.
fn telling(ours: &Cell, cells: &[&Cell]) -> impl Ord + use<> {
    let subject = &ours.subject;
    let beside = cells.iter().filter(|cell| same_load(cell, ours));
    let strategies: BTreeSet<&str> = beside.map(|cell| cell.subject.strategy.as_str()).collect();
    (
        (subject.workers, subject.processes) == USUAL,
        strategies.len(),
        subject.workers,
        subject.lock_kind == "lock",
        subject.client == "redis-rs",
        Reverse(subject.topology),
    )
}

/// Whether a cell has the load of ours. Java runs many workers in few processes, so its number of
/// processes may differ.
fn same_load(cell: &Cell, ours: &Cell) -> bool {
    let (a, b) = (&cell.subject, &ours.subject);
    let spread = a.processes == b.processes || a.strategy == "redisson";
    (a.topology, a.workers) == (b.topology, b.workers) && spread
}

fn headline(ours: &Cell, cells: &[&Cell]) -> Headline {
    let mut named: BTreeMap<(usize, String), &Cell> = BTreeMap::new();
    for cell in cells.iter().copied().filter(|cell| same_load(cell, ours)) {
        let Some(name) = name(&cell.subject) else {
            continue;
        };
        let rate = |cell: &Cell| cell.spread(RATE).map_or(0.0, |rate| rate.median);
        let known = named.entry(name).or_insert(cell);
        // Redisson is measured with one process and with two; the better one counts.
        if rate(cell) > rate(known) {
            *known = cell;
        }
    }
    let subject = &ours.subject;
    let keeps = match subject.hold_ns {
        0 => "released at once".to_owned(),
        hold => format!("each holds it for {}", duration(hold)),
    };
    Headline {
        title: format!(
            "One lock, {} workers in {} {}, {keeps}",
            subject.workers,
            subject.processes,
            match subject.processes {
                1 => "process",
                _ => "processes",
            }
        ),
        said: said(ours, &named),
        rows: named
            .into_iter()
            .map(|((_, name), cell)| HeadlineRow {
                name: match cell.subject.processes {
                    same if same == subject.processes => name,
                    1 => format!("{name}, in one process"),
                    other => format!("{name}, in {other} processes"),
                },
                who: Who::of(&cell.subject),
                figures: FIGURES.map(|figure| cell.spread(figure)).to_vec(),
            })
            .collect(),
    }
}

/// The name of a lock and its place in the table; `None` for ours with options that few users set.
pub(super) fn name(subject: &Subject) -> Option<(usize, String)> {
    let through_server = is_through_server(subject);
    let mut options = subject.options.keys();
    let usual = options.all(|name| name == "rounds" || through_server && name == TURNS);
    let (place, name) = match (subject.strategy.as_str(), subject.lock_kind.as_str()) {
        (OURS, _) if !usual => return None,
        (OURS, kind) => {
            let name = format!("Locktopus {}, {}", kind.replace('-', "_"), subject.client);
            let place = 2 * usize::from(kind != "lock") + usize::from(subject.client != "redis-rs");
            match through_server {
                false => (place, name),
                true => (
                    4 + place,
                    format!("{name}, each hand-off through the server"),
                ),
            }
        }
        ("redisson", "lock") => (8, "Redisson RLock".to_owned()),
        ("redisson", "fair-lock") => (9, "Redisson RFairLock".to_owned()),
        ("R1", _) => (11, "publish and retry".to_owned()),
        ("bare", _) => (12, "the bare hand-off".to_owned()),
        (other, _) => (10, other.to_owned()),
    };
    Some((place, name))
}

/// Compares ours with the others, a sentence for each figure.
fn said(ours: &Cell, named: &BTreeMap<(usize, String), &Cell>) -> Vec<String> {
    let through_server = named.values().copied().find(|cell| {
        cell.subject.strategy == OURS
            && cell.subject.lock_kind == ours.subject.lock_kind
            && cell.subject.client == ours.subject.client
            && cell.subject.options.contains_key(TURNS)
    });
    let others: Vec<(&str, &Cell)> = named
        .iter()
        .filter(|(_, cell)| cell.subject.strategy != OURS)
        .map(|((_, name), cell)| (name.as_str(), *cell))
        .collect();
    let sentence = |start: &str, cell: &Cell, figure: &str, words: [&str; 2]| {
        let own = cell.spread(figure)?;
        let others = others
            .iter()
            .map(|(name, other)| (*name, other.by_round(figure)));
        let against = against(&cell.by_round(figure), others, words);
        Some(format!("{start} {}{against}.", natural(own.median)))
    };
    [
        sentence(
            "With defaults, the median hand-off takes",
            ours,
            HAND_OFF,
            ["faster", "slower"],
        ),
        through_server.and_then(|cell| {
            let start = "If each hand-off goes through the server, the median is";
            sentence(start, cell, HAND_OFF, ["faster", "slower"])
        }),
        sentence(
            "With defaults, the longest wait was",
            ours,
            LONGEST_WAIT,
            ["shorter", "longer"],
        ),
        sentence(
            "With defaults, a lock costs the server",
            ours,
            SERVER_CPU,
            ["less", "more"],
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A figure by the number of its round.
pub(super) type Rounds = BTreeMap<u32, f64>;

/// How ours compares with each of the others: `: 2.0x faster than A (1.9 to 2.1), about the same as
/// B and C`. Empty where nothing can be compared.
pub(super) fn against<'a>(
    ours: &Rounds,
    others: impl Iterator<Item = (&'a str, Rounds)>,
    words: [&str; 2],
) -> String {
    let (mut different, mut alike) = (Vec::new(), Vec::new());
    for (name, other) in others {
        match versus(ours, &other, words) {
            Some(Versus::Different { how_much, range }) => {
                different.push(format!("{how_much} than {name} {range}"));
            }
            Some(Versus::Alike) => alike.push(name),
            None => {}
        }
    }
    if let Some((last, first)) = alike.split_last() {
        let names = match first.is_empty() {
            true => (*last).to_owned(),
            false => format!("{} and {last}", first.join(", ")),
        };
        different.push(format!("about the same as {names}"));
    }
    match different.is_empty() {
        true => String::new(),
        false => format!(": {}", different.join(", ")),
    }
}

/// How ours compares with another.
#[derive(Debug, PartialEq)]
enum Versus {
    /// All rounds agree which one is better.
    Different { how_much: String, range: String },
    /// The rounds disagree.
    Alike,
}

/// Compares ours with another round by round; `None` with fewer than two common rounds.
fn versus(ours: &Rounds, other: &Rounds, [better, worse]: [&str; 2]) -> Option<Versus> {
    let ratio = Spread::of(ratios(other, ours).into_values()).filter(|ratio| ratio.rounds > 1)?;
    let different = |median, min, max, word| Versus::Different {
        how_much: format!("{}x {word}", times(median)),
        range: format!("({} to {})", times(min), times(max)),
    };
    Some(if ratio.min > 1.0 {
        different(ratio.median, ratio.min, ratio.max, better)
    } else if ratio.max < 1.0 {
        different(1.0 / ratio.median, 1.0 / ratio.max, 1.0 / ratio.min, worse)
    } else {
        Versus::Alike
    })
}

/// A factor with the digits that it is good for.
fn times(factor: f64) -> String {
    match factor {
        factor if factor < 9.95 => format!("{factor:.1}"),
        factor => count(factor.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::model::Report;
    use crate::measure::synthetic;

    fn cells(report: &Report) -> Vec<Cell> {
        Cell::all(report)
    }

    #[test]
    fn a_report_opens_with_the_usual_load_and_says_which_way_each_ratio_goes() {
        let found = headlines(&cells(synthetic::shared()));
        let [headline] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            headline.title,
            "One lock, 32 workers in 8 processes, released at once"
        );
        let names: Vec<&str> = headline.rows.iter().map(|row| row.name.as_str()).collect();
        let expected = [
            "Locktopus mutex, redis-rs",
            "rslock",
            "publish and retry",
            "the bare hand-off",
        ];
        assert_eq!(names, expected);
        assert!(
            headline.rows[0].who.is_ours() && !headline.rows[1].who.is_ours(),
            "{headline:?}"
        );
        assert!(headline.rows[0].figures.iter().all(Option::is_some));
        let hand_off = &headline.said[0];
        assert!(hand_off.contains("x faster than rslock ("), "{hand_off}");
        assert!(
            headline.said[2].contains("more")
                && headline.said[2].contains("than the bare hand-off"),
            "{headline:?}"
        );
    }

    #[test]
    fn each_time_of_holding_has_a_headline_and_what_goes_through_the_server_a_sentence() {
        let mut all = cells(synthetic::shared());
        let at = all
            .iter()
            .position(|cell| is_hot(cell) && is_default(cell) && cell.subject.workers == 32);
        let ours = all[at.expect("ours")].clone();
        let mut through_server = ours.clone();
        through_server
            .subject
            .options
            .insert(TURNS.to_owned(), "1".to_owned());
        let mut held = ours.clone();
        held.subject.hold_ns = 5_000_000;
        all.extend([through_server, held]);
        let found = headlines(&all);
        assert_eq!(found.len(), 2);
        assert!(found[0].said[1].starts_with("If each hand-off goes through the server"));
        assert!(found[1].title.ends_with("each holds it for 5 ms"));
        // Alone, a lock has figures and nothing to compare them with.
        assert_eq!(found[1].rows.len(), 1);
        assert!(!found[1].said[0].contains("than"), "{found:?}");
    }

    #[test]
    fn a_single_round_is_no_ratio_and_rounds_that_disagree_are_no_difference() {
        let rounds = |values: &[f64]| -> Rounds { (0..).zip(values.iter().copied()).collect() };
        let words = ["better", "worse"];
        let ours = rounds(&[10.0, 10.0, 10.0]);
        assert!(versus(&ours, &rounds(&[20.0, 30.0, 40.0]), words).is_some());
        let single = rounds(&[20.0]);
        assert_eq!(versus(&ours, &single, words), None);
        let alike = rounds(&[20.0, 5.0, 10.0]);
        assert_eq!(versus(&ours, &alike, words), Some(Versus::Alike));
        let others = [("A", alike.clone()), ("B", alike), ("C", single)];
        let said = against(&ours, others.into_iter(), words);
        assert_eq!(said, ": about the same as A and B");
    }

    /// Redisson is shown with the better of one and two JVMs.
    #[test]
    fn the_better_of_two_stands_for_both() {
        let mut all = cells(synthetic::shared());
        let is_hot = |cell: &&Cell| is_hot(cell) && cell.subject.workers == 32;
        let mut java = all.iter().find(is_hot).expect("a cell").clone();
        java.subject.strategy = "redisson".to_owned();
        java.subject.lock_kind = "lock".to_owned();
        for (processes, rate) in [(1, 300.0), (2, 200.0)] {
            java.subject.processes = processes;
            let rates = vec![Some(rate); java.rounds.len()];
            java.figures.insert(RATE.to_owned(), rates);
            all.push(java.clone());
        }
        let found = headlines(&all);
        let mut rows = found[0].rows.iter();
        let row = rows
            .find(|row| row.name.starts_with("Redisson RLock"))
            .expect("a row");
        assert_eq!(row.name, "Redisson RLock, in one process");
        assert_eq!(row.figures[5].expect("a rate").median, 300.0);
    }

    #[test]
    fn no_lock_of_ours_that_several_want_is_no_headline() {
        assert!(headlines(&cells(&synthetic::empty())).is_empty());
        assert!(headlines(&cells(&synthetic::memory_only())).is_empty());
    }
}
