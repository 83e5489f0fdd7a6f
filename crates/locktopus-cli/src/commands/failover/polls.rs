//! Compares polls of the servers: who is primary, and since when it runs.

use std::collections::BTreeMap;

use locktopus::{Diagnosis, Primary};

use super::incidents::Sign;

/// One poll of the servers.
#[derive(Debug)]
pub(super) struct Poll {
    /// When the question was sent, in nanoseconds of the histories.
    pub(super) began_ns: u64,
    /// An error if no server could be polled.
    pub(super) answer: Result<Diagnosis, String>,
}

/// The run id of each primary by its address, from when all servers last answered.
#[derive(Debug, Default)]
pub(super) struct KnownPrimaries {
    primaries: BTreeMap<String, Option<String>>,
    /// When that poll was sent.
    pub(super) well_ns: u64,
}

impl KnownPrimaries {
    pub(super) fn primaries(&self) -> impl Iterator<Item = &str> {
        self.primaries.keys().map(String::as_str)
    }

    /// Whether restarts can be distinguished from pauses.
    pub(super) fn tells_restarts(&self) -> bool {
        self.primaries.values().all(Option::is_some)
    }

    /// Finds a change since the last poll. `None` if all is well.
    pub(super) fn compare(&mut self, poll: &Poll) -> Option<(Sign, String)> {
        let diagnosis = match &poll.answer {
            Ok(diagnosis) => diagnosis,
            Err(problem) => return Some((Sign::Unreachable, problem.clone())),
        };
        let silent: Vec<_> = diagnosis
            .primaries
            .iter()
            .filter(|primary| !primary.answered)
            .map(|primary| primary.address.as_str())
            .collect();
        let demoted = diagnosis
            .findings
            .iter()
            .find(|finding| finding.check == "role");
        if let Some(finding) = demoted {
            let server = finding.message.split_once(": ");
            let server = server.map_or("a primary", |(server, _)| server);
            return Some((Sign::Failover, format!("{server} is a replica now")));
        }
        let now: BTreeMap<String, Option<String>> = diagnosis
            .primaries
            .iter()
            .map(|primary| (primary.address.clone(), primary.run_id.clone()))
            .collect();
        let first = self.primaries.is_empty();
        let sign = if first {
            None
        } else {
            self.moved(&now)
                .or_else(|| self.restarted(&diagnosis.primaries))
        };
        if !silent.is_empty() {
            // Believe a move at once: a failed primary may stay away for good.
            if sign.is_some() {
                self.learn(&diagnosis.primaries);
            }
            return sign.or_else(|| Some((Sign::Unreachable, silent.join(", "))));
        }
        self.primaries = now;
        if sign.is_none() {
            self.well_ns = poll.began_ns;
        }
        sign
    }

    /// Takes over the servers that answered, and forgets former primaries.
    fn learn(&mut self, primaries: &[Primary]) {
        let old = std::mem::take(&mut self.primaries);
        for Primary {
            address,
            run_id,
            answered,
            ..
        } in primaries
        {
            let run_id = if *answered {
                run_id.clone()
            } else {
                old.get(address).cloned().flatten()
            };
            self.primaries.insert(address.clone(), run_id);
        }
    }

    fn moved(&self, now: &BTreeMap<String, Option<String>>) -> Option<(Sign, String)> {
        let gone: Vec<_> = self
            .primaries
            .keys()
            .filter(|old| !now.contains_key(*old))
            .collect();
        let new: Vec<_> = now
            .keys()
            .filter(|new| !self.primaries.contains_key(*new))
            .collect();
        let list = |them: &[&String]| {
            let them: Vec<_> = them.iter().map(|address| address.as_str()).collect();
            them.join(", ")
        };
        let text = match (gone.is_empty(), new.is_empty()) {
            (true, true) => return None,
            (false, false) => format!("{} -> {}", list(&gone), list(&new)),
            (true, false) => format!("{} is a primary now", list(&new)),
            (false, true) => format!("{} is no longer a primary", list(&gone)),
        };
        Some((Sign::Failover, text))
    }

    fn restarted(&self, now: &[Primary]) -> Option<(Sign, String)> {
        let restarted: Vec<_> = now
            .iter()
            .filter(|primary| {
                let before = self
                    .primaries
                    .get(&primary.address)
                    .and_then(Option::as_ref);
                before
                    .zip(primary.run_id.as_ref())
                    .is_some_and(|(old, new)| old != new)
            })
            .map(|primary| primary.address.as_str())
            .collect();
        (!restarted.is_empty()).then(|| (Sign::Restart, restarted.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(began_ns: u64, primaries: &[(&str, Option<&str>)]) -> Poll {
        let primaries = primaries.iter().map(|(address, run_id)| match run_id {
            Some(run_id) => Primary::answering(*address, Some((*run_id).to_owned())),
            None => Primary::silent(*address),
        });
        Poll {
            began_ns,
            answer: Ok(Diagnosis {
                primaries: primaries.collect(),
                ..Diagnosis::default()
            }),
        }
    }

    fn sign(
        known: &mut KnownPrimaries,
        primaries: &[(&str, Option<&str>)],
    ) -> Option<(Sign, String)> {
        known.compare(&poll(2, primaries))
    }

    fn known() -> KnownPrimaries {
        let mut known = KnownPrimaries::default();
        assert_eq!(
            known.compare(&poll(1, &[("a", Some("1")), ("b", Some("2"))])),
            None
        );
        known
    }

    #[test]
    fn a_server_that_is_away_comes_back_as_it_was_or_anew() {
        let mut known = known();
        let away = sign(&mut known, &[("a", None), ("b", Some("2"))]);
        assert_eq!(away, Some((Sign::Unreachable, "a".to_owned())));
        assert_eq!(known.well_ns, 1);
        assert_eq!(
            sign(&mut known, &[("a", Some("1")), ("b", Some("2"))]),
            None
        );
        assert_eq!(known.well_ns, 2);
        let anew = sign(&mut known, &[("a", Some("9")), ("b", Some("2"))]);
        assert_eq!(anew, Some((Sign::Restart, "a".to_owned())));
        assert_eq!(
            sign(&mut known, &[("a", Some("9")), ("b", Some("2"))]),
            None
        );
    }

    #[test]
    fn a_new_primary_is_told_once_also_while_another_one_is_away() {
        let mut known = known();
        let moved = sign(&mut known, &[("c", Some("3")), ("b", None)]);
        assert_eq!(moved, Some((Sign::Failover, "a -> c".to_owned())));
        let away = sign(&mut known, &[("c", Some("3")), ("b", None)]);
        assert_eq!(away, Some((Sign::Unreachable, "b".to_owned())));
        assert_eq!(
            sign(&mut known, &[("c", Some("3")), ("b", Some("2"))]),
            None
        );
    }

    #[test]
    fn nobody_to_ask_is_a_sign() {
        let mut known = known();
        let nobody = Poll {
            began_ns: 2,
            answer: Err("refused".to_owned()),
        };
        assert_eq!(
            known.compare(&nobody),
            Some((Sign::Unreachable, "refused".to_owned()))
        );
    }
}
