//! Selects the cell of a check.

use std::time::Duration;

use serde::Deserialize;

use crate::measure::humantime_list;
use crate::measure::model::{Pacing, Subject};

/// The default strategy.
const OURS: &str = "locktopus";

/// Conditions for a cell. A field without a value sets no condition, unless it has a default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// Workload.
    pub scenario: Option<String>,
    /// The strategy; this library by default.
    pub strategy: Option<String>,
    /// Client library.
    pub client: Option<String>,
    /// Kind of lock.
    pub kind: Option<String>,
    /// Arrangement of the servers; standalone by default.
    pub topology: Option<String>,
    /// Servers.
    pub nodes: Option<u32>,
    /// Workers.
    pub workers: Option<u32>,
    /// Processes.
    pub processes: Option<u32>,
    /// Threads of the runtime; 1 by default.
    pub threads: Option<u32>,
    /// How often a lock is passed on inside a process; by default the library's own.
    pub turns: Option<u32>,
    /// How long an unwanted lease is kept after the release; by default not at all.
    #[serde(default, with = "humantime_serde")]
    pub lease_cache: Option<Duration>,
    /// Safety mode, as in a URL; plain by default.
    pub safety: Option<String>,
    /// Arrivals per second of an open loop; a closed loop by default.
    pub arrivals_per_second: Option<u64>,
    /// Locks.
    pub locks: Option<u32>,
    /// How long a lock is held.
    #[serde(default, with = "humantime_serde")]
    pub hold: Option<Duration>,
    /// The delay added to each round trip to the servers; none by default.
    #[serde(default, with = "humantime_serde")]
    pub round_trip: Option<Duration>,
}

/// Every combination of these values is a case of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Each {
    topology: Vec<String>,
    client: Vec<String>,
    kind: Vec<String>,
    workers: Vec<u32>,
    threads: Vec<u32>,
    safety: Vec<String>,
    #[serde(with = "humantime_list")]
    hold: Vec<Duration>,
    #[serde(with = "humantime_list")]
    round_trip: Vec<Duration>,
}

impl Select {
    /// This selection, with `other`'s values where it has none.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let text = |ours: &Option<String>, theirs: &Option<String>| {
            ours.clone().or_else(|| theirs.clone())
        };
        let strategy = text(&self.strategy, &other.strategy);
        // A reference has a layout of its own, independent of the kind it is compared with.
        let fixed = strategy.as_deref().and_then(kind_of_reference);
        let ours = strategy.as_deref().is_none_or(|strategy| strategy == OURS);
        Self {
            scenario: text(&self.scenario, &other.scenario),
            client: text(&self.client, &other.client),
            kind: fixed.map_or_else(|| text(&self.kind, &other.kind), |kind| Some(kind.into())),
            strategy,
            topology: text(&self.topology, &other.topology),
            nodes: self.nodes.or(other.nodes),
            workers: self.workers.or(other.workers),
            processes: self.processes.or(other.processes),
            threads: self.threads.or(other.threads),
            // Other libraries do not pass locks on inside a process, or keep leases.
            turns: self.turns.or(other.turns).filter(|_| ours),
            lease_cache: self.lease_cache.or(other.lease_cache).filter(|_| ours),
            safety: text(&self.safety, &other.safety).filter(|_| ours),
            arrivals_per_second: self.arrivals_per_second.or(other.arrivals_per_second),
            locks: self.locks.or(other.locks),
            hold: self.hold.or(other.hold),
            round_trip: self.round_trip.or(other.round_trip),
        }
    }

    /// Whether this cell fits.
    #[must_use]
    pub fn matches(&self, subject: &Subject) -> bool {
        let text = |asked: &Option<String>, found: &str| asked.as_ref().is_none_or(|a| a == found);
        let number = |asked: Option<u32>, found: u32| asked.is_none_or(|asked| asked == found);
        let option = |name: &str| -> Option<u32> { subject.options.get(name)?.parse().ok() };
        let time = |name: &str| humantime::parse_duration(subject.options.get(name)?).ok();
        let safety = subject.options.get("safety").map(String::as_str);
        text(&self.scenario, &subject.scenario)
            && self.strategy.as_deref().unwrap_or(OURS) == subject.strategy
            && text(&self.client, &subject.client)
            && text(&self.kind, &subject.lock_kind)
            && self.topology.as_deref().unwrap_or("standalone") == subject.topology.name()
            && number(self.nodes, subject.nodes)
            && number(self.workers, subject.workers)
            && number(self.processes, subject.processes)
            && self.threads.unwrap_or(1) == option("threads").unwrap_or(1)
            && self.turns == option("turns")
            && self.kept() == time("lease cache")
            && self.round_trip == time("round trip")
            && self.mode() == safety.filter(|&mode| mode != "plain")
            && self.arrivals_per_second == arrivals(subject.pacing)
            && number(self.locks, subject.locks)
            && self
                .hold
                .is_none_or(|hold| hold.as_nanos() == u128::from(subject.hold_ns))
    }

    /// How long leases are kept, if they are.
    fn kept(&self) -> Option<Duration> {
        self.lease_cache.filter(|keep| !keep.is_zero())
    }

    /// The safety mode, unless it is plain.
    fn mode(&self) -> Option<&str> {
        self.safety.as_deref().filter(|&mode| mode != "plain")
    }

    /// The selection in words, without what it shares with `known`.
    #[must_use]
    pub fn describe(&self, known: &Self) -> String {
        let mut words = Vec::new();
        let mut text = |ours: &Option<String>, theirs: &Option<String>| {
            words.extend(ours.clone().filter(|_| ours != theirs));
        };
        text(&self.strategy, &known.strategy);
        text(&self.scenario, &known.scenario);
        text(&self.kind, &known.kind);
        text(&self.client, &known.client);
        text(&self.topology, &known.topology);
        let mut number = |ours: Option<u32>, theirs: Option<u32>, name: &str| {
            let ours = ours.filter(|_| ours != theirs);
            words.extend(ours.map(|value| format!("{name} = {value}")));
        };
        number(self.workers, known.workers, "W");
        number(self.processes, known.processes, "P");
        number(self.threads, known.threads, "threads");
        number(self.turns, known.turns, "turns");
        number(self.nodes, known.nodes, "nodes");
        number(self.locks, known.locks, "locks");
        if self.kept() != known.kept() {
            let keep = self.kept().map(humantime::format_duration);
            let none = || "no lease cache".to_owned();
            words.push(keep.map_or_else(none, |keep| format!("lease cache {keep}")));
        }
        if self.mode() != known.mode() {
            words.push(format!("safety {}", self.mode().unwrap_or("plain")));
        }
        let rate = self
            .arrivals_per_second
            .filter(|_| self.arrivals_per_second != known.arrivals_per_second);
        words.extend(rate.map(|rate| format!("{rate} arrivals/s")));
        if let Some(hold) = self.hold.filter(|_| self.hold != known.hold) {
            words.push(format!("hold {}", humantime::format_duration(hold)));
        }
        if let Some(far) = self
            .round_trip
            .filter(|_| self.round_trip != known.round_trip)
        {
            words.push(format!("{} added", humantime::format_duration(far)));
        }
        words.dedup();
        words.join(", ")
    }
}

fn arrivals(pacing: Pacing) -> Option<u64> {
    match pacing {
        Pacing::OpenLoop {
            arrivals_per_second,
        } => Some(arrivals_per_second),
        Pacing::ClosedLoop => None,
    }
}

pub(super) fn kind_of_reference(strategy: &str) -> Option<&'static str> {
    match strategy {
        "R1" => Some("lock"),
        "bare" | "rslock" => Some("mutex"),
        _ => None,
    }
}

impl Each {
    /// Every combination on top of `base`; `base` alone if there is nothing to combine.
    #[must_use]
    pub fn cases(&self, base: &Select) -> Vec<Select> {
        let mut cases = vec![base.clone()];
        spread(&mut cases, &self.topology, |case, value| {
            case.topology = Some(value);
        });
        spread(&mut cases, &self.client, |case, value| {
            case.client = Some(value);
        });
        spread(&mut cases, &self.kind, |case, value| {
            case.kind = Some(value);
        });
        spread(&mut cases, &self.workers, |case, value| {
            case.workers = Some(value);
        });
        spread(&mut cases, &self.threads, |case, value| {
            case.threads = Some(value);
        });
        spread(&mut cases, &self.safety, |case, value| {
            case.safety = Some(value);
        });
        spread(&mut cases, &self.hold, |case, value| {
            case.hold = Some(value);
        });
        spread(&mut cases, &self.round_trip, |case, value| {
            case.round_trip = Some(value);
        });
        cases
    }
}

fn spread<T: Clone>(cases: &mut Vec<Select>, values: &[T], set: impl Fn(&mut Select, T)) {
    if values.is_empty() {
        return;
    }
    let with = |case: &Select, value: &T| {
        let mut case = case.clone();
        set(&mut case, value.clone());
        case
    };
    *cases = cases
        .iter()
        .flat_map(|case| values.iter().map(move |value| with(case, value)))
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::summary::Summary;
    use crate::measure::synthetic;

    fn select(text: &str) -> Select {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_reference_takes_over_only_what_it_has() {
        let ours = select("scenario = \"hot-lock\"\nkind = \"lock\"\nworkers = 32\nturns = 1");
        let redisson = select("strategy = \"redisson\"\nclient = \"redisson\"").or(&ours);
        assert_eq!((redisson.turns, redisson.workers), (None, Some(32)));
        assert_eq!(redisson.kind.as_deref(), Some("lock"));
        let rslock = select("strategy = \"rslock\"").or(&ours);
        assert_eq!(rslock.kind.as_deref(), Some("mutex"));
        assert_eq!(select("workers = 2").or(&ours).turns, Some(1));
        let cached = select("lease_cache = \"5ms\"");
        let without = select("lease_cache = \"0s\"").or(&cached);
        assert_eq!(without.describe(&cached), "no lease cache");
        assert_eq!(cached.describe(&without), "lease cache 5ms");
        assert_eq!(redisson.or(&cached).lease_cache, None);
    }

    #[test]
    fn what_is_not_said_has_its_default_or_does_not_matter() {
        let summary = Summary::of(std::slice::from_ref(synthetic::shared())).unwrap();
        let mut cell = summary.cells[0].clone();
        assert!(select("scenario = \"hot-lock\"").matches(&cell.subject));
        assert!(!select("strategy = \"R1\"").matches(&cell.subject));
        assert!(!select("topology = \"cluster\"").matches(&cell.subject));
        assert!(!select("hold = \"1ms\"").matches(&cell.subject));
        cell.subject
            .options
            .insert("turns".to_owned(), "1".to_owned());
        assert!(!select("scenario = \"hot-lock\"").matches(&cell.subject));
        assert!(select("turns = 1").matches(&cell.subject));
        // A cell that names no mode is plain.
        let mut plain = cell.subject.clone();
        let mode = |mode: &str| ("safety".to_owned(), mode.to_owned());
        plain.options.extend([mode("plain")]);
        assert!(select("turns = 1").matches(&plain));
        plain.options.extend([mode("quarantine")]);
        assert!(!select("turns = 1").matches(&plain));
        cell.subject.options.clear();
        cell.subject
            .options
            .insert("lease cache".to_owned(), "5ms".to_owned());
        assert!(!select("scenario = \"hot-lock\"").matches(&cell.subject));
        assert!(!select("lease_cache = \"0s\"").matches(&cell.subject));
        assert!(select("lease_cache = \"5ms\"").matches(&cell.subject));
        cell.subject.pacing = Pacing::OpenLoop {
            arrivals_per_second: 100,
        };
        assert!(!select("lease_cache = \"5ms\"").matches(&cell.subject));
        assert!(select("lease_cache = \"5ms\"\narrivals_per_second = 100").matches(&cell.subject));
    }

    #[test]
    fn every_combination_is_a_case() {
        let each: Each = toml::from_str("kind = [\"a\", \"b\"]\nhold = [\"0s\", \"1ms\"]").unwrap();
        let cases = each.cases(&select("workers = 2"));
        let words: Vec<_> = cases
            .iter()
            .map(|case| case.describe(&select("workers = 2")))
            .collect();
        let expected = ["a, hold 0s", "a, hold 1ms", "b, hold 0s", "b, hold 1ms"];
        assert_eq!(words, expected);
        assert_eq!(Each::default().cases(&Select::default()).len(), 1);
    }
}
