//! The locks that operators took away, and their holders. It records what servers did, which the
//! operators may not know.

use std::collections::BTreeSet;

use locktopus_model::redis::Reply;

use super::call::What;
use super::{Run, Witness};

/// A script that ended holds by force.
#[derive(Debug)]
pub(super) struct Taken {
    node: usize,
    at: u64,
    /// The name of the lock on servers.
    lock: Vec<u8>,
    /// The owners whose holds it ended. `None` if the kind of the name is unknown.
    from: Option<BTreeSet<String>>,
}

/// A hold that an operator may have taken away.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suspect<'a> {
    pub(crate) lock: &'a str,
    pub(crate) owner: Option<&'a str>,
    /// Whether the hold is exclusive.
    pub(crate) alone: bool,
    /// When it was requested, and until when its holder believed in it.
    pub(crate) asked: u64,
    pub(crate) valid: u64,
    /// How many servers of a quorum must keep it for it to exclude others.
    pub(crate) majority: Option<usize>,
}

impl What {
    /// Whether it ends the holds of others.
    pub(super) fn is_forced(&self) -> bool {
        match self {
            Self::Evict => true,
            Self::Counter { action, .. } => action == "delete",
            _ => false,
        }
    }
}

impl Witness {
    /// Notes whose holds a script ended by force.
    pub(super) fn takes(&mut self, run: &Run<'_>) {
        let were = run.before.holders.iter().map(|holder| &holder.owner);
        let gone = were.filter(|owner| !run.after.is_written(owner));
        let gone: BTreeSet<_> = gone.map(ToString::to_string).collect();
        if run.call.what.is_forced() && !gone.is_empty() {
            self.taken.push(Taken {
                node: run.node,
                at: run.now,
                lock: run.call.lock.clone(),
                from: Some(gone),
            });
        }
    }

    /// As [`takes`](Self::takes), if nothing tells who held the lock.
    pub(super) fn takes_from_somebody(
        &mut self,
        (at, node): (u64, usize),
        (what, lock): (&What, &[u8]),
        reply: &Reply,
    ) {
        if what.is_forced() && !matches!(reply, Reply::Error(_)) {
            self.taken.push(Taken {
                node,
                at,
                lock: lock.to_vec(),
                from: None,
            });
        }
    }

    /// When a hold was first taken away while its holder believed in it, if it was.
    pub(crate) fn taken(&self, it: Suspect<'_>) -> Option<u64> {
        let of_it = |taken: &&Taken| taken.at <= it.valid && self.is_from(taken, it);
        let at = self
            .taken
            .iter()
            .filter(of_it)
            .map(|taken| taken.at)
            .min()?;
        // While a majority of servers keeps it, no other owner gets one.
        let stays = it.majority.is_some_and(|most| {
            let kept = it.owner.map(|owner| self.kept.servers(owner, it.valid));
            kept.is_some_and(|servers| servers >= most)
        });
        (!stays).then_some(at)
    }

    /// Whether it ended this hold, and not one granted later.
    fn is_from(&self, taken: &Taken, it: Suspect<'_>) -> bool {
        // Other nodes of a quorum may have granted it later than this one.
        let node = it.majority.map(|_| taken.node);
        let granted = it
            .owner
            .and_then(|owner| self.kept.since(owner, node, it.alone));
        match (&taken.from, it.owner) {
            (Some(from), Some(owner)) => {
                from.contains(owner) && granted.is_none_or(|since| since <= taken.at)
            }
            // Without the owners, only the time of the request can tell.
            _ => taken.lock == it.lock.as_bytes() && granted.unwrap_or(it.asked) <= taken.at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Servers grant a lock to `o` at the first times, and end it by force at the others.
    fn witness(granted: &[(usize, u64)], taken: &[(usize, u64)]) -> Witness {
        let mut witness = Witness::default();
        let ends = |node: usize| taken.iter().find(|(on, _)| *on == node).map(|(_, at)| *at);
        for (node, since) in granted {
            let until = ends(*node).filter(|at| at > since).unwrap_or(1_000);
            witness.kept.note(("o", true), *node, until, |_| *since);
        }
        let taken = taken.iter().map(|(node, at)| Taken {
            node: *node,
            at: *at,
            lock: b"a".to_vec(),
            from: Some(["o".to_owned()].into()),
        });
        witness.taken = taken.collect();
        witness
    }

    fn suspect(owner: &str, majority: Option<usize>) -> Suspect<'_> {
        Suspect {
            lock: "a",
            owner: Some(owner),
            alone: true,
            asked: 10,
            valid: 500,
            majority,
        }
    }

    #[test]
    fn only_those_who_had_it_are_excused() {
        let witness = witness(&[(0, 50)], &[(0, 200)]);
        assert_eq!(witness.taken(suspect("o", None)), Some(200));
        assert_eq!(witness.taken(suspect("who waits", None)), None);
        let believed_before = Suspect {
            valid: 199,
            ..suspect("o", None)
        };
        assert_eq!(witness.taken(believed_before), None);
    }

    #[test]
    fn what_is_granted_after_an_eviction_is_not_taken_by_it() {
        let witness = witness(&[(0, 300)], &[(0, 200)]);
        assert_eq!(witness.taken(suspect("o", None)), None);
    }

    /// A writer becomes a reader under the same owner. The write lock was taken away before the
    /// downgrade.
    #[test]
    fn who_may_read_on_may_not_write_on() {
        let mut witness = witness(&[(0, 50)], &[(0, 200)]);
        witness.kept.note(("o", false), 0, 1_000, |_| 210);
        assert_eq!(witness.taken(suspect("o", None)), Some(200));
        let reads = Suspect {
            alone: false,
            ..suspect("o", None)
        };
        assert_eq!(witness.taken(reads), None);
    }

    #[test]
    fn a_majority_that_stays_excuses_nothing() {
        let granted = [(0, 50), (1, 50), (2, 250)];
        // The third server granted it after the eviction.
        for (taken, excused) in [
            (&[(0, 200)][..], None),
            (&[(0, 200), (2, 200)], None),
            (&[(0, 200), (1, 210)], Some(200)),
        ] {
            let witness = witness(&granted, taken);
            assert_eq!(witness.taken(suspect("o", Some(2))), excused, "{taken:?}");
        }
        let two = witness(&granted[..2], &[(1, 200)]);
        assert_eq!(two.taken(suspect("o", Some(2))), Some(200));
    }

    #[test]
    fn who_is_not_known_is_told_by_when_they_asked() {
        let mut witness = witness(&[(0, 300)], &[]);
        let nobody_knows = (&What::Evict, &b"a"[..]);
        witness.takes_from_somebody((200, 0), nobody_knows, &Reply::Error("OOM".to_owned()));
        let anybody = |asked| Suspect {
            owner: None,
            asked,
            ..suspect("", None)
        };
        assert_eq!(witness.taken(anybody(10)), None);
        witness.takes_from_somebody((200, 0), nobody_knows, &Reply::Int(0));
        assert_eq!(witness.taken(anybody(10)), Some(200));
        assert_eq!(witness.taken(anybody(201)), None);
        // This owner's grant time is known.
        assert_eq!(witness.taken(suspect("o", None)), None);
        let other = Suspect {
            lock: "b",
            ..anybody(10)
        };
        assert_eq!(witness.taken(other), None);
    }
}
