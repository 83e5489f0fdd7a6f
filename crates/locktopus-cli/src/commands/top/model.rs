//! The locks as last polled, and how long they have been held.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::locks::Shown;

/// Hand-offs are counted over this period.
const WINDOW: Duration = Duration::from_secs(10);

/// A lock that is held.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) lock: Shown,
    /// When the holder took the lock, or if unknown, when it was first seen.
    pub(super) since: Instant,
    /// Whether it was there at the first poll, so it may have held the lock for longer.
    pub(super) from_the_start: bool,
}

/// Everything on display.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) place: String,
    pub(super) pattern: String,
    rows: BTreeMap<String, Row>,
    started: Instant,
    looks: u64,
    /// When a poll found a lock with another holder.
    changes: VecDeque<Instant>,
    pub(super) trouble: Option<String>,
}

impl Model {
    pub(super) fn new(place: &str, pattern: &str) -> Self {
        Self {
            place: place.to_owned(),
            pattern: pattern.to_owned(),
            rows: BTreeMap::new(),
            started: Instant::now(),
            looks: 0,
            changes: VecDeque::new(),
            trouble: None,
        }
    }

    /// Takes in the locks that a poll found.
    pub(super) fn update(&mut self, now: Instant, found: Vec<Shown>) {
        self.trouble = None;
        let mut rows = BTreeMap::new();
        for lock in found {
            let before = self.rows.get(&lock.name);
            let same = before.filter(|row| holder(&row.lock) == holder(&lock));
            if before.is_some() && same.is_none() {
                self.changes.push_back(now);
            }
            let seen = same.map_or(now, |row| row.since);
            let row = match held_since(&lock, now) {
                Some(since) => Row {
                    since,
                    from_the_start: false,
                    lock,
                },
                None => Row {
                    since: seen,
                    from_the_start: same.map_or(self.looks == 0, |row| row.from_the_start),
                    lock,
                },
            };
            rows.insert(row.lock.name.clone(), row);
        }
        if self.looks == 0 {
            self.started = now;
        }
        self.rows = rows;
        self.looks += 1;
        while self
            .changes
            .front()
            .is_some_and(|then| now - *then > WINDOW)
        {
            self.changes.pop_front();
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

    pub(super) fn waiters(&self) -> usize {
        self.rows().map(|row| row.lock.waiters.len()).sum()
    }

    /// Changes of holder per second, as seen. Several between two polls count as one, and a lock
    /// that is free in between does not count.
    pub(super) fn changes_per_second(&self, now: Instant) -> f64 {
        let time = now.saturating_duration_since(self.started).min(WINDOW);
        let recent = self
            .changes
            .iter()
            .filter(|then| now - **then <= WINDOW)
            .count();
        if time.is_zero() {
            return 0.0;
        }
        f64::from(u32::try_from(recent).unwrap_or(u32::MAX)) / time.as_secs_f64()
    }
}

/// When the holder took the lock, if known.
fn held_since(lock: &Shown, now: Instant) -> Option<Instant> {
    let held = lock.holders.first()?.held_ms?;
    now.checked_sub(Duration::from_millis(held))
}

fn holder(lock: &Shown) -> Option<&str> {
    lock.holders.first().map(|holder| holder.owner.as_str())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::locks::{Holder, Person, Waiter};

    pub(in super::super) fn held(name: &str, owner: &str, waiters: usize) -> Shown {
        let waiter = || Waiter {
            owner: "owner#000000ff".to_owned(),
            mode: "exclusive",
            permits: 1,
            person: Person::default(),
        };
        Shown {
            name: name.to_owned(),
            kind: "lock",
            held: true,
            holders: vec![Holder {
                owner: owner.to_owned(),
                mode: "exclusive",
                holds: 1,
                remaining_ms: Some(29_000),
                remaining: "29s".to_owned(),
                held_ms: None,
                held_since: None,
                person: Person::default(),
            }],
            waiters: (0..waiters).map(|_| waiter()).collect(),
            last_token: Some(17),
            available: None,
        }
    }

    #[test]
    fn what_is_known_of_the_time_goes_before_what_was_seen() {
        let mut model = Model::new("memory", "*");
        let mut lock = held("a", "one", 0);
        lock.holders[0].held_ms = Some(7_000);
        let now = Instant::now() + Duration::from_secs(60);
        model.update(now, vec![lock]);
        let row = model.get("a").unwrap();
        let since = now - Duration::from_secs(7);
        assert_eq!((row.since, row.from_the_start), (since, false));
    }

    #[test]
    fn a_new_holder_is_a_hand_off_and_young() {
        let mut model = Model::new("memory", "*");
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        model.update(at(0), vec![held("a", "one", 2), held("b", "one", 0)]);
        model.update(at(4), vec![held("a", "two", 1), held("b", "one", 0)]);
        let (a, b) = (model.get("a").unwrap(), model.get("b").unwrap());
        assert_eq!((a.since, a.from_the_start), (at(4), false));
        assert_eq!((b.since, b.from_the_start), (at(0), true));
        assert!((model.changes_per_second(at(4)) - 0.25).abs() < 1e-9);
        assert!(model.changes_per_second(at(20)) < 1e-9);
        assert_eq!(model.waiters(), 1);
    }
}
