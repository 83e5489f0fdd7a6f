//! Selects the cell of a check.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de::Error};

use crate::measure::model::{Pacing, Subject};

/// The default strategy.
const OURS: &str = "locktopus";

/// The properties of a selection: its key in the file, the value of a selection without it (`None`
/// sets no condition), and the words around it.
const KEYS: [(&str, Option<&str>, &str, &str); 16] = [
    ("strategy", Some(OURS), "", ""),
    ("scenario", None, "", ""),
    ("kind", None, "", ""),
    ("client", None, "", ""),
    ("topology", Some("standalone"), "", ""),
    ("workers", None, "W = ", ""),
    ("processes", None, "P = ", ""),
    ("threads", Some("1"), "threads = ", ""),
    ("turns", Some(""), "turns = ", ""),
    ("nodes", None, "nodes = ", ""),
    ("locks", None, "locks = ", ""),
    ("lease_cache", Some("0s"), "lease cache ", ""),
    ("safety", Some("plain"), "safety ", ""),
    ("arrivals_per_second", Some(""), "", " arrivals/s"),
    ("hold", None, "hold ", ""),
    ("round_trip", Some(""), "", " added"),
];

/// Keys whose values are durations.
const TIMES: [&str; 3] = ["lease_cache", "hold", "round_trip"];
/// Properties of this library alone.
const OWN: [&str; 3] = ["turns", "lease_cache", "safety"];

/// The value of a cell.
fn value(subject: &Subject, key: &str) -> String {
    let option = |name: &str, otherwise: &str| {
        let value = subject.options.get(name).map(String::as_str);
        value.unwrap_or(otherwise).to_owned()
    };
    match key {
        "strategy" => subject.strategy.clone(),
        "scenario" => subject.scenario.clone(),
        "kind" => subject.lock_kind.clone(),
        "client" => subject.client.clone(),
        "topology" => subject.topology.name().to_owned(),
        "workers" => subject.workers.to_string(),
        "processes" => subject.processes.to_string(),
        "nodes" => subject.nodes.to_string(),
        "locks" => subject.locks.to_string(),
        "threads" => option("threads", "1"),
        "turns" => option("turns", ""),
        "lease_cache" => option("lease cache", "0s"),
        "safety" => option("safety", "plain"),
        "round_trip" => option("round trip", ""),
        "hold" => humantime::format_duration(Duration::from_nanos(subject.hold_ns)).to_string(),
        _ => match subject.pacing {
            Pacing::OpenLoop {
                arrivals_per_second,
            } => arrivals_per_second.to_string(),
            Pacing::ClosedLoop => String::new(),
        },
    }
}

/// Conditions for a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Select(BTreeMap<String, String>);

/// Every combination of these values is a case of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Each(BTreeMap<String, Vec<String>>);

/// A value in the file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Number(u64),
}

impl Written {
    /// As [`value`] writes it.
    fn checked<E: Error>(self, key: &str) -> Result<String, E> {
        if KEYS.iter().all(|(known, ..)| *known != key) {
            return Err(E::custom(format!("a cell has no {key:?}")));
        }
        match self {
            Self::Number(number) => Ok(number.to_string()),
            Self::Text(text) if TIMES.contains(&key) => {
                let time = humantime::parse_duration(&text).map_err(E::custom)?;
                Ok(humantime::format_duration(time).to_string())
            }
            Self::Text(text) => Ok(text),
        }
    }
}

impl<'de> Deserialize<'de> for Select {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = BTreeMap::<String, Written>::deserialize(from)?.into_iter();
        let checked = written.map(|(key, value)| {
            let value = value.checked::<D::Error>(&key)?;
            Ok((key, value))
        });
        checked.collect::<Result<_, _>>().map(Self)
    }
}

impl<'de> Deserialize<'de> for Each {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = BTreeMap::<String, Vec<Written>>::deserialize(from)?.into_iter();
        let checked = written.map(|(key, values)| {
            let values = values.into_iter();
            let values = values.map(|value| value.checked::<D::Error>(&key));
            let values = values.collect::<Result<_, _>>()?;
            Ok((key, values))
        });
        checked.collect::<Result<_, _>>().map(Self)
    }
}

impl Select {
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Only this condition, if it has it.
    pub(super) fn only(&self, key: &str) -> Self {
        let mut only = self.clone();
        only.0.retain(|other, _| other == key);
        only
    }

    /// This selection, with `other`'s values where it has none.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mut both = other.0.clone();
        both.extend(self.0.clone());
        let strategy = both.get("strategy").map_or(OURS, String::as_str);
        if strategy != OURS {
            // A reference has a layout of its own, independent of the kind it is compared with.
            let kind = kind_of_reference(strategy);
            both.retain(|key, _| !OWN.contains(&key.as_str()));
            both.extend(kind.map(|kind| ("kind".to_owned(), kind.to_owned())));
        }
        Self(both)
    }

    /// Whether this cell fits.
    #[must_use]
    pub fn matches(&self, subject: &Subject) -> bool {
        KEYS.iter().all(|(key, otherwise, ..)| {
            let wanted = self.get(key).or(*otherwise);
            wanted.is_none_or(|wanted| wanted == value(subject, key))
        })
    }

    /// The selection in words, without what it shares with `known`.
    #[must_use]
    pub fn describe(&self, known: &Self) -> String {
        let told = KEYS.iter().filter_map(|(key, otherwise, before, after)| {
            // Their absence is a property too.
            let off = otherwise.filter(|_| ["lease_cache", "safety"].contains(key));
            let [ours, theirs] = [self, known].map(|select| select.get(key).or(off));
            let value = ours.filter(|_| ours != theirs)?;
            Some(match (*key, value) {
                ("lease_cache", "0s") => "no lease cache".to_owned(),
                _ => format!("{before}{value}{after}"),
            })
        });
        let mut words: Vec<String> = told.collect();
        words.dedup();
        words.join(", ")
    }
}

fn kind_of_reference(strategy: &str) -> Option<&'static str> {
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
        for (key, values) in &self.0 {
            let with = |case: &Select, value: &String| {
                let mut case = case.clone();
                case.0.insert(key.clone(), value.clone());
                case
            };
            cases = cases
                .iter()
                .flat_map(|case| values.iter().map(move |value| with(case, value)))
                .collect();
        }
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::synthetic;

    fn select(text: &str) -> Select {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_reference_takes_over_only_what_it_has() {
        let ours = select("scenario = \"hot-lock\"\nkind = \"lock\"\nworkers = 32\nturns = 1");
        let redisson = select("strategy = \"redisson\"\nclient = \"redisson\"").or(&ours);
        let of = |select: &Select, key| select.get(key).map(str::to_owned);
        assert_eq!(of(&redisson, "turns"), None);
        assert_eq!(of(&redisson, "workers").as_deref(), Some("32"));
        assert_eq!(of(&redisson, "kind").as_deref(), Some("lock"));
        let rslock = select("strategy = \"rslock\"").or(&ours);
        assert_eq!(of(&rslock, "kind").as_deref(), Some("mutex"));
        let fewer = select("workers = 2").or(&ours);
        assert_eq!(of(&fewer, "turns").as_deref(), Some("1"));
        assert_eq!(fewer.describe(&ours), "W = 2");
        let cached = select("lease_cache = \"5ms\"");
        let without = select("lease_cache = \"0s\"").or(&cached);
        assert_eq!(without.describe(&cached), "no lease cache");
        assert_eq!(cached.describe(&without), "lease cache 5ms");
    }

    #[test]
    fn what_is_not_said_has_its_default_or_does_not_matter() {
        let usual = &synthetic::shared().cells[0].subject;
        let with = |name: &str, value: &str| {
            let mut subject = usual.clone();
            subject.options.insert(name.to_owned(), value.to_owned());
            subject
        };
        let mut open = with("lease cache", "5ms");
        open.pacing = Pacing::OpenLoop {
            arrivals_per_second: 100,
        };
        let any = "scenario = \"hot-lock\"";
        let cached = "lease_cache = \"5ms\"";
        for (text, subject, fits) in [
            (any, usual, true),
            ("strategy = \"R1\"", usual, false),
            ("topology = \"cluster\"", usual, false),
            ("hold = \"1ms\"", usual, false),
            ("hold = \"0ms\"", usual, true),
            (any, &with("turns", "1"), false),
            ("turns = 1", &with("turns", "1"), true),
            // A cell that names no mode is plain.
            (any, &with("safety", "plain"), true),
            (any, &with("safety", "quarantine"), false),
            (any, &with("lease cache", "5ms"), false),
            ("lease_cache = \"0s\"", &with("lease cache", "5ms"), false),
            (cached, &with("lease cache", "5ms"), true),
            (cached, &open, false),
            (&format!("{cached}\narrivals_per_second = 100"), &open, true),
        ] {
            let found = select(text).matches(subject);
            assert_eq!(found, fits, "{text}: {subject:?}");
        }
    }

    #[test]
    fn every_combination_is_a_case() {
        let each: Each = toml::from_str("kind = [\"a\", \"b\"]\nhold = [\"0s\", \"1ms\"]").unwrap();
        let base = select("workers = 2");
        let cases = each.cases(&base);
        let words: Vec<_> = cases.iter().map(|case| case.describe(&base)).collect();
        let expected = ["a, hold 0s", "b, hold 0s", "a, hold 1ms", "b, hold 1ms"];
        assert_eq!(words, expected);
        assert_eq!(Each::default().cases(&Select::default()).len(), 1);
    }
}
