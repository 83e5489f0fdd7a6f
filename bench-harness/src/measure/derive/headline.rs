//! What a report opens with: one lock that many workers want, ours beside other locks under the same load.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Measure, Quantile, Spread, Unit};
use crate::measure::model::{Cell, Report, op};
use crate::shared::render::format::{count, duration, natural};

/// The strategy that others are compared with.
const OURS: &str = "locktopus";
/// The option that says how many tasks of a process have a lock before it goes back to the server.
const TURNS: &str = "turns";
/// The load of `docs/performance.md`; a run that has it opens with it.
const USUAL: (u32, u32) = (32, 8);

/// One workload, and how the locks did.
#[derive(Clone, Debug)]
pub struct Headline {
    /// The workload in words.
    pub title: String,
    /// The locks that were measured, ours first.
    pub rows: Vec<HeadlineRow>,
    /// What the rows say of ours, a sentence for each figure.
    pub said: Vec<String>,
}

/// One lock of a [`Headline`].
#[derive(Clone, Debug)]
pub struct HeadlineRow {
    /// The lock, as its users call it.
    pub name: String,
    /// Whether it is one of this library.
    pub ours: bool,
    /// The figures, in the order of [`HEADLINE_COLUMNS`].
    pub figures: Vec<Option<Spread>>,
}

/// What the figures of a [`HeadlineRow`] are.
pub const HEADLINE_COLUMNS: [(&str, Unit); 6] = [
    ("hand-off, p50", Unit::Nanos),
    ("hand-off, p99", Unit::Nanos),
    ("longest wait", Unit::Nanos),
    ("fairness", Unit::Plain),
    ("server CPU a lock", Unit::Nanos),
    ("locks a second", Unit::PerSecond),
];

/// How the figures of a headline are to be read.
pub const HEADLINE_NOTE: &str = "Medians of the rounds; the small print is the smallest and the largest round. A hand-off lasts from \
    the start of a release until the next holder knows that it has the lock. With defaults, tasks of one process pass the lock to \
    each other before it goes back to the server. Fairness is 1 when all workers got the lock equally often (Jain's index). Server \
    CPU is the server's processor time for one acquisition with its release. The bare hand-off is the floor: it has no lease, no \
    token and no check that a waiter is alive.";

fn measures() -> [Measure; 6] {
    let latency = |name: &str, quantile| Measure::Latency(name.to_owned(), quantile);
    [
        latency(op::HAND_OFF, Quantile::P50),
        latency(op::HAND_OFF, Quantile::P99),
        latency(op::ACQUIRE, Quantile::Max),
        Measure::Jain,
        Measure::ServerCpu,
        Measure::Throughput,
    ]
}

/// A headline for each time that holders keep the lock; none where no lock of ours was wanted by several workers.
#[must_use]
pub fn headlines(report: &Report) -> Vec<Headline> {
    let cells: Vec<&Cell> = report.cells.iter().filter(|cell| is_hot(cell)).collect();
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

/// One lock on a server that several workers want.
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

/// How much a cell tells: the usual load, then the one with most other locks, then the one with most workers; `lock` rather than
/// `mutex`, and redis-rs rather than fred.
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

/// Whether a cell has the load of ours. Java runs many workers in few processes.
fn same_load(cell: &Cell, ours: &Cell) -> bool {
    let (a, b) = (&cell.subject, &ours.subject);
    let spread = a.processes == b.processes || a.strategy == "redisson";
    (a.topology, a.workers) == (b.topology, b.workers) && spread
}

fn headline(ours: &Cell, cells: &[&Cell]) -> Headline {
    let mut named: BTreeMap<(usize, String), &Cell> = BTreeMap::new();
    for cell in cells.iter().copied().filter(|cell| same_load(cell, ours)) {
        let Some(name) = name(cell) else { continue };
        let rate = |cell: &Cell| Measure::Throughput.of(cell).map_or(0.0, |rate| rate.median);
        let known = named.entry(name).or_insert(cell);
        // Of one lock in one process and in two, the better one.
        if rate(cell) > rate(known) {
            *known = cell;
        }
    }
    let measures = measures();
    let subject = &ours.subject;
    let keeps = match subject.hold_ns {
        0 => "released at once".to_owned(),
        hold => format!("each holds it for {}", duration(hold)),
    };
    Headline {
        title: format!(
            "One lock, {} workers in {} processes, {keeps}",
            subject.workers, subject.processes
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
                ours: cell.subject.strategy == OURS,
                figures: measures.iter().map(|measure| measure.of(cell)).collect(),
            })
            .collect(),
    }
}

/// What a lock is called, with its place in the table; nothing for ours with options that few users set.
pub(super) fn name(cell: &Cell) -> Option<(usize, String)> {
    let subject = &cell.subject;
    let through_server = subject.options.get(TURNS).map(String::as_str) == Some("1");
    let mut options = subject.options.keys();
    let usual = options.all(|name| name == "rounds" || through_server && name == TURNS);
    let (place, name) = match (subject.strategy.as_str(), subject.lock_kind.as_str()) {
        (OURS, _) if !usual => return None,
        (OURS, kind) => {
            let name = format!("Locktopus {}, {}", kind.replace('-', "_"), subject.client);
            match through_server {
                false => {
                    let place = 2 * usize::from(kind != "lock");
                    (place + usize::from(subject.client != "redis-rs"), name)
                }
                true => (4, format!("{name}, each hand-off through the server")),
            }
        }
        ("redisson", "lock") => (5, "Redisson RLock".to_owned()),
        ("redisson", "fair-lock") => (6, "Redisson RFairLock".to_owned()),
        ("R1", _) => (8, "publish and retry".to_owned()),
        ("bare", _) => (9, "the bare hand-off".to_owned()),
        (other, _) => (7, other.to_owned()),
    };
    Some((place, name))
}

/// Ours against the others, a sentence for each figure.
fn said(ours: &Cell, named: &BTreeMap<(usize, String), &Cell>) -> Vec<String> {
    let [hand_off, _, wait, _, cpu, _] = measures();
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
    let sentence = |start: &str, cell: &Cell, measure: &Measure, words: [&str; 2]| {
        let own = measure.of(cell)?;
        let others = others.iter().copied();
        let against = against(measure, cell, others, words);
        Some(format!("{start} {}{against}.", natural(own.median)))
    };
    [
        sentence(
            "With defaults, the median hand-off takes",
            ours,
            &hand_off,
            ["faster", "slower"],
        ),
        through_server.and_then(|cell| {
            let start = "If each hand-off goes through the server, the median is";
            sentence(start, cell, &hand_off, ["faster", "slower"])
        }),
        sentence(
            "With defaults, the longest wait was",
            ours,
            &wait,
            ["shorter", "longer"],
        ),
        sentence(
            "With defaults, a lock costs the server",
            ours,
            &cpu,
            ["less", "more"],
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// How ours compares with each of the others: `: 2.0x faster than A (1.9 to 2.1), about the same as B and C`. Empty where nothing
/// can be compared.
pub(super) fn against<'a>(
    measure: &Measure,
    ours: &Cell,
    others: impl Iterator<Item = (&'a str, &'a Cell)>,
    words: [&str; 2],
) -> String {
    let (mut different, mut alike) = (Vec::new(), Vec::new());
    for (name, other) in others {
        match versus(measure, ours, other, words) {
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

/// Ours beside another.
#[derive(Debug, PartialEq)]
enum Versus {
    /// All rounds agree which one is better.
    Different { how_much: String, range: String },
    /// The rounds disagree.
    Alike,
}

/// How ours compares with another, round by round; nothing where that is not at least two rounds.
fn versus(
    measure: &Measure,
    ours: &Cell,
    other: &Cell,
    [better, worse]: [&str; 2],
) -> Option<Versus> {
    let ratio = ratio(measure, other, ours).filter(|ratio| ratio.rounds > 1)?;
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

/// One cell's figure over another's, round by round: what disturbs one round disturbs both.
fn ratio(measure: &Measure, figure: &Cell, reference: &Cell) -> Option<Spread> {
    let by_round = |cell: &Cell| -> BTreeMap<u32, f64> {
        let rounds = cell.rounds.iter();
        rounds
            .filter_map(|round| Some((round.index, measure.of_round(round)?)))
            .collect()
    };
    Spread::of(ratios(&by_round(figure), &by_round(reference)).into_values())
}

/// Figures of rounds over those of the same rounds elsewhere.
#[must_use]
pub fn ratios(figure: &BTreeMap<u32, f64>, reference: &BTreeMap<u32, f64>) -> BTreeMap<u32, f64> {
    let pairs = figure.iter().filter_map(|(round, value)| {
        let reference = *reference.get(round)?;
        (reference != 0.0).then(|| (*round, value / reference))
    });
    pairs.collect()
}

/// A factor with as many digits as it can be trusted with.
fn times(factor: f64) -> String {
    match factor {
        factor if factor < 9.95 => format!("{factor:.1}"),
        factor => count(factor.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::synthetic;

    #[test]
    fn a_report_opens_with_the_usual_load_and_says_which_way_each_ratio_goes() {
        let found = headlines(synthetic::shared());
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
            headline.rows[0].ours && !headline.rows[1].ours,
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
        let mut report = synthetic::shared().clone();
        let at = report
            .cells
            .iter()
            .position(|cell| is_hot(cell) && is_default(cell) && cell.subject.workers == 32);
        let ours = report.cells[at.expect("ours")].clone();
        let mut through_server = ours.clone();
        through_server
            .subject
            .options
            .insert(TURNS.to_owned(), "1".to_owned());
        let mut held = ours.clone();
        held.subject.hold_ns = 5_000_000;
        report.cells.extend([through_server, held]);
        let found = headlines(&report);
        assert_eq!(found.len(), 2);
        assert!(found[0].said[1].starts_with("If each hand-off goes through the server"));
        assert!(found[1].title.ends_with("each holds it for 5 ms"));
        // Alone: a figure, and nothing to compare it with.
        assert_eq!(found[1].rows.len(), 1);
        assert!(!found[1].said[0].contains("than"), "{found:?}");
    }

    #[test]
    fn a_single_round_is_no_ratio_and_rounds_that_disagree_are_no_difference() {
        let report = synthetic::shared();
        let hot = |strategy: &str| {
            let mut cells = report.cells.iter();
            let cell = cells.find(|cell| {
                is_hot(cell) && cell.subject.strategy == strategy && cell.subject.workers == 32
            });
            cell.expect("a cell").clone()
        };
        let (ours, mut other) = (hot(OURS), hot("rslock"));
        let rate = Measure::Throughput;
        let words = ["better", "worse"];
        assert!(versus(&rate, &ours, &other, words).is_some());
        other.rounds.truncate(1);
        assert_eq!(versus(&rate, &ours, &other, words), None);
        let mut alike = ours.clone();
        alike.rounds[0].acquisitions *= 2;
        alike.rounds[1].acquisitions /= 2;
        assert_eq!(versus(&rate, &ours, &alike, words), Some(Versus::Alike));
        let others = [("A", &alike), ("B", &alike), ("C", &other)];
        let said = against(&rate, &ours, others.into_iter(), words);
        assert_eq!(said, ": about the same as A and B");
    }

    #[test]
    fn no_lock_of_ours_that_several_want_is_no_headline() {
        assert!(headlines(&synthetic::empty()).is_empty());
        assert!(headlines(&synthetic::memory_only(3)).is_empty());
    }
}
