//! The locks as last polled, and what only several polls show: how long a lock has been held and
//! waited for, and whether its lease is renewed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::locks::{Holder, LockView};
use crate::output::age;

/// Hand-offs are counted over this period.
const WINDOW: Duration = Duration::from_secs(10);

/// How bad something is, which decides its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    #[default]
    Fine,
    Warning,
    Bad,
}

/// When something began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Since {
    pub(super) at: Instant,
    /// Whether it may have begun earlier: it was there at the first poll.
    at_least: bool,
}

impl Since {
    pub(super) fn text(self, now: Instant) -> String {
        let sign = if self.at_least { "≥" } else { "" };
        format!("{sign}{}", age(now.saturating_duration_since(self.at)))
    }
}

/// A holder over several polls.
#[derive(Clone, Copy, Debug)]
struct HolderTrack {
    since: Since,
    /// The time left of the lease, at the last poll and at most.
    left: Option<Duration>,
    most_left: Option<Duration>,
    /// Whether a poll found more left than the one before.
    renewed: bool,
}

impl HolderTrack {
    /// Clients renew a lease when a third of it has passed. So a lease that is half over was not
    /// renewed in time, or never will be.
    fn lease(&self) -> Severity {
        match (self.left, self.most_left) {
            (Some(left), Some(most)) if left >= most / 2 => Severity::Fine,
            (Some(_), _) if !self.renewed => Severity::Warning,
            _ => Severity::Bad,
        }
    }

    fn warning(&self) -> Option<&'static str> {
        match (self.lease(), self.left) {
            (Severity::Fine, _) | (_, None) => None,
            (Severity::Warning, _) => Some("not renewed while top watched"),
            (Severity::Bad, _) => Some("no longer renewed"),
        }
    }
}

/// A lock that is held.
#[derive(Debug)]
pub(super) struct Row {
    /// A holder with a bad lease comes first.
    pub(super) lock: LockView,
    /// Since when the first holder has held it.
    pub(super) held: Since,
    /// The worst lease.
    pub(super) lease: Severity,
    /// The longest wait.
    pub(super) wait: Option<Since>,
    pub(super) waits: Severity,
    holders: BTreeMap<String, HolderTrack>,
    waiters: BTreeMap<String, Since>,
}

impl Row {
    pub(super) fn severity(&self) -> Severity {
        self.lease.max(self.waits)
    }
}

/// Everything on display.
#[derive(Debug)]
pub(super) struct Model {
    /// The servers.
    pub(super) servers: String,
    pub(super) pattern: String,
    /// Longer waits are marked.
    pub(super) long_wait: Duration,
    rows: BTreeMap<String, Row>,
    /// The time of the first poll.
    started: Option<Instant>,
    /// When a poll found a lock with another holder.
    changes: VecDeque<Instant>,
    pub(super) trouble: Option<String>,
    /// How many locks of other libraries have names that Locktopus cannot use.
    pub(super) left_out: usize,
}

impl Model {
    pub(super) fn new(servers: &str, pattern: &str, long_wait: Duration) -> Self {
        Self {
            servers: servers.to_owned(),
            pattern: pattern.to_owned(),
            long_wait,
            rows: BTreeMap::new(),
            started: None,
            changes: VecDeque::new(),
            trouble: None,
            left_out: 0,
        }
    }

    /// Takes in the locks that a poll found.
    pub(super) fn update(&mut self, now: Instant, found: Vec<LockView>) {
        self.trouble = None;
        let before = std::mem::take(&mut self.rows);
        for lock in found {
            let known = before.get(&lock.name);
            let is_new =
                |holder: &Holder| known.is_some_and(|row| !row.holders.contains_key(&holder.owner));
            if lock.holders.first().is_some_and(is_new) {
                self.changes.push_back(now);
            }
            let row = self.row(now, known, lock);
            self.rows.insert(row.lock.name.clone(), row);
        }
        self.started.get_or_insert(now);
        let is_old = |then: &Instant| now - *then > WINDOW;
        while self.changes.front().is_some_and(is_old) {
            self.changes.pop_front();
        }
    }

    fn row(&self, now: Instant, before: Option<&Row>, mut lock: LockView) -> Row {
        let since = |known_ms: Option<u64>, seen: Option<Since>| {
            let known = known_ms.and_then(|time| now.checked_sub(Duration::from_millis(time)));
            let known = known.map(|at| Since {
                at,
                at_least: false,
            });
            let at_least = self.started.is_none();
            known.or(seen).unwrap_or(Since { at: now, at_least })
        };
        let track = |holder: &Holder| {
            let seen = before.and_then(|row| row.holders.get(&holder.owner));
            let left = holder.remaining_ms.map(Duration::from_millis);
            HolderTrack {
                since: since(holder.held_ms, seen.map(|track| track.since)),
                left,
                // No one renews what only waits for the end of its minimum time.
                most_left: match holder.released {
                    true => left,
                    false => left.max(seen.and_then(|track| track.most_left)),
                },
                renewed: seen.is_some_and(|track| track.renewed || left > track.left),
            }
        };
        let tracks = lock.holders.iter();
        let holders: BTreeMap<_, _> = tracks
            .map(|holder| (holder.owner.clone(), track(holder)))
            .collect();
        let lease = |holder: &Holder| holders[&holder.owner].lease();
        lock.holders.sort_by_key(|holder| Reverse(lease(holder)));
        let worst = lock.holders.first().map(lease).unwrap_or_default();
        for holder in &mut lock.holders {
            holder.warning = holders[&holder.owner].warning();
        }
        let mut waiters = BTreeMap::new();
        for waiter in &mut lock.waiters {
            let seen = before.and_then(|row| row.waiters.get(&waiter.owner));
            let waits = since(waiter.waited_ms, seen.copied());
            waiter.waited = Some(waits.text(now));
            waiters.insert(waiter.owner.clone(), waits);
        }
        let wait = waiters.values().copied().min_by_key(|since| since.at);
        let is_long = wait.is_some_and(|since| now - since.at > self.long_wait);
        let first = lock
            .holders
            .first()
            .map(|holder| holders[&holder.owner].since);
        Row {
            held: first.unwrap_or_else(|| since(None, None)),
            lease: worst,
            wait,
            waits: if is_long {
                Severity::Warning
            } else {
                Severity::Fine
            },
            lock,
            holders,
            waiters,
        }
    }

    /// Takes in a failed poll. Earlier rows stay, marked as stale.
    pub(super) fn failed(&mut self, trouble: String) {
        self.trouble = Some(trouble);
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Row> {
        self.rows.get(name)
    }

    /// Changes of holder per second, as seen. Several between two polls count as one, and a lock
    /// that is free in between does not count.
    pub(super) fn changes_per_second(&self, now: Instant) -> f64 {
        let started = self.started.unwrap_or(now);
        let time = now.saturating_duration_since(started).min(WINDOW);
        let recent = self.changes.iter();
        let recent = recent.filter(|then| now - **then <= WINDOW).count();
        if time.is_zero() {
            return 0.0;
        }
        f64::from(u32::try_from(recent).unwrap_or(u32::MAX)) / time.as_secs_f64()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::locks::{Person, Waiter};

    pub(in super::super) fn model() -> Model {
        Model::new("redis-rs (standalone)", "job:*", Duration::from_secs(30))
    }

    pub(in super::super) fn held(name: &str, owner: &str, waiters: usize) -> LockView {
        let waiter = |number| Waiter {
            owner: format!("owner#0000{number:04x}"),
            mode: "exclusive",
            permits: 1,
            waited_ms: None,
            waited: None,
            person: Person::default(),
        };
        LockView {
            name: name.to_owned(),
            kind: "lock",
            held: true,
            holders: vec![holder(owner, Some(29_000))],
            waiters: (0..waiters).map(waiter).collect(),
            reserved_token: Some(17),
            available: None,
        }
    }

    fn holder(owner: &str, remaining_ms: Option<u64>) -> Holder {
        Holder {
            owner: owner.to_owned(),
            mode: "exclusive",
            holds: 1,
            remaining_ms,
            remaining: remaining_ms.map_or_else(
                || "never expires".to_owned(),
                |left| age(Duration::from_millis(left)),
            ),
            released: false,
            warning: None,
            held_ms: None,
            held_since: None,
            person: Person::default(),
        }
    }

    /// The severities after polls, one a second, that found these leases.
    fn leases(left: &[Option<u64>]) -> Vec<Severity> {
        let (mut model, start) = (model(), Instant::now());
        let polls = (0..).zip(left).map(|(second, left)| {
            let mut lock = held("a", "one", 0);
            lock.holders = vec![holder("one", *left)];
            model.update(start + Duration::from_secs(second), vec![lock]);
            model.get("a").unwrap().lease
        });
        polls.collect()
    }

    #[test]
    fn a_lease_that_is_half_over_was_not_renewed() {
        use Severity::{Bad, Fine, Warning};
        let some = |left: &[u64]| leases(&left.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(some(&[29, 21, 30, 20, 29]), [Fine; 5]);
        // It may have a fixed lease, unless it was renewed before.
        assert_eq!(
            some(&[29, 20, 15, 14, 13]),
            [Fine, Fine, Fine, Warning, Warning]
        );
        assert_eq!(some(&[20, 30, 20, 14, 30]), [Fine, Fine, Fine, Bad, Fine]);
        assert_eq!(leases(&[None]), [Bad], "it never expires");
    }

    #[test]
    fn the_holder_with_a_bad_lease_comes_first() {
        let (mut model, start) = (model(), Instant::now());
        for (second, left) in [(0, 29), (1, 14)] {
            let mut lock = held("a", "one", 0);
            lock.holders = vec![holder("one", Some(29)), holder("two", Some(left))];
            model.update(start + Duration::from_secs(second), vec![lock]);
        }
        let row = model.get("a").unwrap();
        assert_eq!(row.lock.holders[0].owner, "two");
        assert!(row.lock.holders[0].warning.is_some() && row.lock.holders[1].warning.is_none());
        assert!(model.changes.is_empty(), "no holder is new");
    }

    #[test]
    fn what_is_known_of_the_time_goes_before_what_was_seen() {
        let mut model = model();
        let mut lock = held("a", "one", 0);
        lock.holders[0].held_ms = Some(7_000);
        let now = Instant::now() + Duration::from_secs(60);
        model.update(now, vec![lock]);
        assert_eq!(model.get("a").unwrap().held.text(now), "7.0s");
    }

    #[test]
    fn a_new_holder_is_a_hand_off_and_young() {
        let (mut model, start) = (model(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        model.update(at(0), vec![held("a", "one", 2), held("b", "one", 0)]);
        model.update(at(4), vec![held("a", "two", 1), held("b", "one", 0)]);
        let text = |name: &str| model.get(name).unwrap().held.text(at(6));
        assert_eq!(
            (text("a"), text("b")),
            ("2.0s".to_owned(), "≥6.0s".to_owned())
        );
        assert!((model.changes_per_second(at(4)) - 0.25).abs() < 1e-9);
        assert!(model.changes_per_second(at(20)) < 1e-9);
    }

    #[test]
    fn waits_are_counted_from_the_poll_that_first_saw_the_waiter() {
        let (mut model, start) = (model(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        model.update(at(0), vec![held("a", "one", 1), held("b", "one", 0)]);
        model.update(at(5), vec![held("a", "one", 2), held("b", "one", 1)]);
        model.update(at(31), vec![held("a", "one", 2), held("b", "one", 1)]);
        let row = |name: &str| model.get(name).unwrap();
        let waited = |name, waiter: usize| row(name).lock.waiters[waiter].waited.as_deref();
        assert_eq!(
            (waited("a", 0), waited("a", 1)),
            (Some("≥31s"), Some("26s"))
        );
        assert_eq!(row("a").wait.unwrap().text(at(31)), "≥31s");
        assert_eq!(row("b").wait.unwrap().text(at(31)), "26s");
        assert_eq!(row("a").severity(), Severity::Warning, "over 30 s");
        assert_eq!(row("b").severity(), Severity::Fine);
        let mut told = held("a", "one", 1);
        told.waiters[0].waited_ms = Some(90_000);
        model.update(start + Duration::from_secs(100), vec![told]);
        let wait = model.get("a").unwrap().wait.unwrap();
        assert_eq!(wait.text(at(100)), "1m30s", "the server knows better");
    }
}
