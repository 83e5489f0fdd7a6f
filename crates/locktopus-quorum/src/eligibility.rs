//! Whether a node may vote: what is known about its server, and since when that is good enough.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::NodeIdentity;
use locktopus_contract::clock::BootInstant;

use super::witnesses::Age;

/// Uptimes and clock readings are inexact. Two servers that seem to have overlapped for less than
/// this may have run one after the other.
const MIN_OVERLAP: Duration = Duration::from_secs(3);

/// The pause before a client asks the silent nodes again about a new server.
const REASK_AFTER: Duration = Duration::from_millis(100);

/// What is known about the server behind a node.
#[derive(Debug, Default)]
pub(super) struct Eligibility {
    known: Option<CheckedServer>,
    /// The last identified server, even if that must be checked again.
    last: Option<LastServer>,
}

#[derive(Debug)]
struct CheckedServer {
    generation: u64,
    checked: BootInstant,
    votes_from: BootInstant,
    /// The other node with the same server, through which that server votes.
    twin: Option<Arc<str>>,
}

#[derive(Debug)]
struct LastServer {
    identity: NodeIdentity,
    checked: BootInstant,
    /// Valid as long as the same server runs. May become earlier until the age is vouched for.
    votes_from: BootInstant,
    vouched: bool,
}

/// What to do with a node.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It votes.
    Votes,
    /// It does not vote for this much longer.
    NotYet(Duration),
    /// Like `NotYet`, unless the silent nodes turn out to know nothing about it. `again`: ask them.
    Unvouched { left: Duration, again: bool },
    /// Its server votes through this other node.
    Twin(Arc<str>),
    /// Ask for its identity.
    Ask,
}

impl Judgement {
    /// Whether to ask the node first.
    pub(super) fn asks(&self) -> bool {
        matches!(self, Self::Ask | Self::Unvouched { again: true, .. })
    }
}

impl Eligibility {
    pub(super) fn judge(&self, generation: u64, now: BootInstant, recheck: Duration) -> Judgement {
        let Some(known) = &self.known else {
            return Judgement::Ask;
        };
        if known.generation != generation || now.since(known.checked) > recheck {
            return Judgement::Ask;
        }
        if let Some(twin) = &known.twin {
            return Judgement::Twin(Arc::clone(twin));
        }
        match known.votes_from.since(now) {
            Duration::ZERO => Judgement::Votes,
            left if self.last.as_ref().is_some_and(|last| !last.vouched) => Judgement::Unvouched {
                left,
                again: now.since(known.checked) > REASK_AFTER,
            },
            left => Judgement::NotYet(left),
        }
    }

    /// Records an answer that arrived at `now`. It describes an earlier moment, so errors make a
    /// server count as too young for too long, never too short.
    pub(super) fn learn(
        &mut self,
        generation: u64,
        (identity, age): (NodeIdentity, Age),
        twin: Option<Arc<str>>,
        now: BootInstant,
        max_lease: Duration,
    ) {
        let by_age = now + max_lease.saturating_sub(age.least);
        let (votes_from, vouched) = match &self.last {
            // Its first answer remains valid. Uptimes are rounded down, so the same server may seem
            // younger later and would stop voting. They also depend on a clock that may have been
            // set since, which would make it vote too early.
            Some(last) if last.identity.run_id == identity.run_id && last.vouched => {
                (last.votes_from, true)
            }
            // It was not restarted since this client first saw it.
            Some(last) if last.identity.run_id == identity.run_id => {
                let settled = age.vouched || last.votes_from <= now;
                let sooner = if age.vouched { by_age } else { last.votes_from };
                (last.votes_from.min(sooner), settled)
            }
            // It was already up while its predecessor served. So this is not a restart but another
            // server, whose data may lack the last writes. Its uptime says nothing then.
            Some(last) if now.since(last.checked) + MIN_OVERLAP < age.least => {
                (now + max_lease, true)
            }
            // This client knows that there was another server before.
            Some(_) => (by_age, true),
            None => (by_age, age.vouched),
        };
        self.known = Some(CheckedServer {
            generation,
            checked: now,
            votes_from,
            twin,
        });
        self.last = Some(LastServer {
            identity,
            checked: now,
            votes_from,
            vouched,
        });
    }

    /// Something went wrong with the node, so ask it again before it votes.
    pub(super) fn suspect(&mut self) {
        self.known = None;
    }

    /// The age that this client can prove for the server with this run id, up to the longest lease.
    /// `None` until it is settled from when on the server votes.
    pub(super) fn proven(
        &self,
        run_id: &str,
        now: BootInstant,
        max_lease: Duration,
    ) -> Option<Duration> {
        let last = self.last.as_ref()?;
        (last.identity.run_id == run_id && last.vouched)
            .then(|| max_lease.saturating_sub(last.votes_from.since(now)))
    }

    pub(super) fn identity(&self) -> Option<&NodeIdentity> {
        self.last.as_ref().map(|last| &last.identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locktopus_contract::clock;

    const MAX_LEASE: Duration = Duration::from_secs(60);
    const HOUR: Duration = Duration::from_secs(3600);

    fn up(run: &str, seconds: u64) -> (NodeIdentity, Age) {
        let least = Duration::from_secs(seconds);
        let vouched = true;
        (NodeIdentity::new(run, least), Age { least, vouched })
    }

    #[test]
    fn a_young_server_votes_when_it_is_as_old_as_the_longest_lease() {
        let (mut eligibility, now) = (Eligibility::default(), clock::now());
        assert_eq!(eligibility.judge(1, now, HOUR), Judgement::Ask);
        eligibility.learn(1, up("a", 20), None, now, MAX_LEASE);
        assert_eq!(
            eligibility.judge(1, now, HOUR),
            Judgement::NotYet(Duration::from_secs(40))
        );
        let later = now + Duration::from_secs(40);
        assert_eq!(eligibility.judge(1, later, HOUR), Judgement::Votes);
    }

    #[test]
    fn a_new_connection_trouble_and_time_ask_again() {
        let (mut eligibility, now) = (Eligibility::default(), clock::now());
        eligibility.learn(1, up("a", 100), None, now, MAX_LEASE);
        assert_eq!(eligibility.judge(1, now, HOUR), Judgement::Votes);
        assert_eq!(
            eligibility.judge(2, now, HOUR),
            Judgement::Ask,
            "reconnected"
        );
        assert_eq!(eligibility.judge(1, now + 2 * HOUR, HOUR), Judgement::Ask);
        eligibility.suspect();
        assert_eq!(eligibility.judge(1, now, HOUR), Judgement::Ask);
    }

    #[test]
    fn a_promoted_replica_is_old_and_does_not_vote_all_the_same() {
        let (mut eligibility, mut now) = (Eligibility::default(), clock::now());
        eligibility.learn(1, up("primary", 1000), None, now, MAX_LEASE);
        now = now + Duration::from_secs(5);
        eligibility.learn(2, up("replica", 1000), None, now, MAX_LEASE);
        assert_eq!(
            eligibility.judge(2, now, HOUR),
            Judgement::NotYet(MAX_LEASE)
        );
        // Asking again does not help.
        now = now + Duration::from_secs(10);
        eligibility.learn(3, up("replica", 1010), None, now, MAX_LEASE);
        let left = Judgement::NotYet(Duration::from_secs(50));
        assert_eq!(eligibility.judge(3, now, HOUR), left);
    }

    #[test]
    fn a_restart_long_ago_is_no_failover() {
        let (mut eligibility, now) = (Eligibility::default(), clock::now());
        eligibility.learn(1, up("before", 1000), None, now, MAX_LEASE);
        let later = now + Duration::from_secs(300);
        eligibility.learn(2, up("after", 299), None, later, MAX_LEASE);
        assert_eq!(eligibility.judge(2, later, HOUR), Judgement::Votes);
    }

    #[test]
    fn what_is_known_counts_up_to_each_limit() {
        let (mut eligibility, now) = (Eligibility::default(), clock::now());
        assert_eq!(eligibility.identity(), None);
        eligibility.learn(1, up("before", 1000), None, now, MAX_LEASE);
        assert_eq!(eligibility.identity(), Some(&up("before", 1000).0));
        assert_eq!(eligibility.judge(1, now + HOUR, HOUR), Judgement::Votes);
        // Up for as long as its predecessor was out of sight, plus the possible difference of the
        // clocks.
        let later = now + Duration::from_secs(300);
        eligibility.learn(2, up("after", 303), None, later, MAX_LEASE);
        assert_eq!(eligibility.judge(2, later, HOUR), Judgement::Votes);
    }

    /// The server's own answer may be wrong, so other clients learn what this client saw.
    #[test]
    fn a_restarted_server_is_as_old_as_it_was_seen() {
        let (mut eligibility, now) = (Eligibility::default(), clock::now());
        let proven = |eligibility: &Eligibility, seconds| {
            eligibility.proven("after", now + Duration::from_secs(seconds), MAX_LEASE)
        };
        eligibility.learn(1, up("before", 1000), None, now, MAX_LEASE);
        assert_eq!(proven(&eligibility, 1), None);
        let unknown = Age {
            least: Duration::ZERO,
            vouched: false,
        };
        eligibility.learn(2, (up("after", 1000).0, unknown), None, now, MAX_LEASE);
        for (later, age) in [(0, 0), (20, 20), (60, 60), (600, 60)] {
            assert_eq!(proven(&eligibility, later), Some(Duration::from_secs(age)));
        }
    }

    #[test]
    fn a_new_server_votes_after_the_longest_lease_unless_others_vouch_for_it() {
        let now = clock::now();
        let later = now + Duration::from_secs(20);
        let age = |seconds, vouched| {
            let least = Duration::from_secs(seconds);
            (up("a", 1000).0, Age { least, vouched })
        };
        let unvouched = |again| {
            let left = Duration::from_secs(40);
            Judgement::Unvouched { left, again }
        };
        let not_yet = |seconds| Judgement::NotYet(Duration::from_secs(seconds));
        for (told, expected) in [
            (age(5, false), unvouched(false)),
            (age(0, true), not_yet(40)),
            (age(30, true), not_yet(30)),
            (age(1000, true), Judgement::Votes),
        ] {
            let mut eligibility = Eligibility::default();
            eligibility.learn(1, age(0, false), None, now, MAX_LEASE);
            assert_eq!(eligibility.judge(1, later, HOUR), unvouched(true));
            eligibility.learn(1, told, None, later, MAX_LEASE);
            assert_eq!(eligibility.judge(1, later, HOUR), expected);
        }
    }
}
