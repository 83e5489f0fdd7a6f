//! The leases that are watched, and what is to be done for each of them next.

use std::ptr;
use std::sync::{Arc, Weak};

use super::due::{Due, Next, Watched};
use super::timer_index::{Moment, Spot, TimerIndex};
use super::timing::renewal;
use super::{LOOK, ScheduledCheck, TICK};
use crate::contract::clock::{self, BootInstant};
use crate::engine::holding::lease::LeaseState;
use slab::Slab;

/// A grant that took a longer part of the lease than this counts for when it is renewed first.
const LONG_GRANT: u32 = 24;

#[derive(Debug)]
pub(super) struct WatchedLeases {
    leases: Slab<Entry>,
    index: TimerIndex<usize>,
    checks: TimerIndex<Weak<dyn ScheduledCheck>>,
    /// When the watchdog will look.
    awake_at: Moment,
    pub(super) closed: bool,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) lease: Arc<LeaseState>,
    spot: Spot,
    pub(super) renew_at: Option<BootInstant>,
    pub(super) in_flight: bool,
    /// Renewals that failed since the last one that did not.
    pub(super) failures: Option<Box<Failures>>,
}

#[derive(Debug)]
pub(super) struct Failures {
    pub(super) count: u32,
    /// When the first of them was due.
    pub(super) since: BootInstant,
    /// What the last one failed with.
    pub(super) detail: String,
}

impl Entry {
    /// The next instant at which something must be done. While a renewal is under way, that is the deadline, which
    /// is then `valid_until`.
    fn next(&self, valid_until: BootInstant) -> BootInstant {
        match self.renew_at {
            Some(at) if !self.in_flight => at.min(valid_until),
            _ => valid_until,
        }
    }
}

impl Failures {
    pub(super) fn since(since: BootInstant) -> Box<Self> {
        let (count, detail) = (0, String::new());
        Box::new(Self {
            count,
            since,
            detail,
        })
    }
}

/// Whether the watchdog must be woken, because it would look too late.
#[must_use]
pub(super) struct Sooner(pub(super) bool);

impl WatchedLeases {
    pub(super) fn new(origin: BootInstant) -> Self {
        Self {
            leases: Slab::new(),
            index: TimerIndex::new(origin),
            checks: TimerIndex::new(origin),
            awake_at: Moment::NEVER,
            closed: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.leases.len()
    }

    pub(super) fn leases(&self) -> impl Iterator<Item = (usize, &Arc<LeaseState>)> {
        self.leases.iter().map(|(slot, entry)| (slot, &entry.lease))
    }

    /// The entry of this lease, unless it is gone and its place taken.
    pub(super) fn get(&mut self, slot: usize, lease: &LeaseState) -> Option<&mut Entry> {
        self.leases
            .get_mut(slot)
            .filter(|entry| ptr::addr_eq(Arc::as_ptr(&entry.lease), lease))
    }

    /// What the grid of renewals counts from.
    pub(super) fn origin(&self) -> BootInstant {
        self.index.origin()
    }

    /// Puts in a lease that was confirmed at `now`.
    pub(super) fn insert(&mut self, lease: &Arc<LeaseState>, now: BootInstant) -> (usize, Sooner) {
        // A grant that was long in coming leaves less for the first renewal, which must not wait for a third of the lease as well.
        // The margin of validity is not what it took.
        let counts_from = lease.counts_from();
        let since = match now.since(counts_from) > lease.lease() / LONG_GRANT {
            true => counts_from,
            false => now,
        };
        let renew_at = lease
            .renewed
            .then(|| renewal(self.origin(), since, lease.lease()));
        let valid_until = lease.valid_until();
        let at = renew_at.map_or(valid_until, |at| at.min(valid_until));
        let place = self.leases.vacant_entry();
        let (slot, at) = (place.key(), self.index.moment(at));
        place.insert(Entry {
            lease: Arc::clone(lease),
            spot: self.index.insert(at, slot),
            renew_at,
            in_flight: false,
            failures: None,
        });
        (slot, self.is_sooner(at))
    }

    /// Plans a look at a local queue.
    pub(super) fn insert_check(
        &mut self,
        cohort: Weak<dyn ScheduledCheck>,
        at: BootInstant,
    ) -> Sooner {
        let at = self.checks.moment(at);
        self.checks.insert(at, cohort);
        self.is_sooner(at)
    }

    fn is_sooner(&mut self, at: Moment) -> Sooner {
        let sooner = at < self.awake_at;
        if sooner {
            self.awake_at = at;
        }
        Sooner(sooner)
    }

    /// Takes a lease out.
    pub(super) fn remove(&mut self, slot: usize) -> Option<Entry> {
        let entry = self.leases.try_remove(slot)?;
        self.unlist(entry.spot);
        Some(entry)
    }

    fn unlist(&mut self, spot: Spot) {
        if let Some(&moved) = self.index.remove(spot)
            && let Some(entry) = self.leases.get_mut(moved)
        {
            entry.spot = spot;
        }
    }

    /// Puts a lease where it belongs now, after something about it has changed.
    pub(super) fn put_right(&mut self, slot: usize, valid_until: BootInstant) -> Sooner {
        let Some(entry) = self.leases.get(slot) else {
            return Sooner(false);
        };
        let (before, at) = (entry.spot, self.index.moment(entry.next(valid_until)));
        self.unlist(before);
        let spot = self.index.insert(at, slot);
        if let Some(entry) = self.leases.get_mut(slot) {
            entry.spot = spot;
        }
        self.is_sooner(at)
    }

    /// Everything that is due now, or as much of it as is good for one look; it has its next place already.
    pub(super) fn look(&mut self) -> Due {
        let mut due = Due::new(clock::now());
        for _ in 0..LOOK {
            if let Some(slot) = self.index.pop(due.now) {
                self.fired(slot, &mut due);
            } else if let Some(cohort) = self.checks.pop(due.now) {
                due.checks.push(cohort);
            } else {
                due.next = self.next_look(due.now);
                return due;
            }
        }
        (self.awake_at, due.next) = (Moment::FIRST, Next::AtOnce);
        due
    }

    fn next_look(&mut self, now: BootInstant) -> Next {
        // Timers do not count time that the machine sleeps, so while leases are watched there is a look every `TICK`.
        let tick = (!self.leases.is_empty()).then(|| self.index.moment(now + TICK));
        let firsts = [self.index.first(), self.checks.first(), tick];
        let Some(at) = firsts.into_iter().flatten().min() else {
            self.awake_at = Moment::NEVER;
            return Next::Never;
        };
        self.awake_at = at;
        Next::At(self.index.instant(at).timer())
    }

    /// Handles a lease that was taken off the index, and puts it in again.
    fn fired(&mut self, slot: usize, due: &mut Due) {
        let Some(entry) = self.leases.get_mut(slot) else {
            return;
        };
        if !entry.lease.is_active() {
            let entry = self.leases.remove(slot);
            if entry.lease.is_held_too_long() {
                due.held_too_long.push(entry.lease);
            }
            return;
        }
        // Judged before it is removed: a lease that is removed and then passed on would never be renewed.
        let failed = entry.failures.as_deref();
        let failed = failed.map(|failures| failures.detail.as_str());
        if let Some(over) = entry.lease.judge(due.now, failed) {
            self.leases.remove(slot);
            due.over.push(over);
            return;
        }
        let valid_until = entry.lease.valid_until();
        if !entry.in_flight && entry.renew_at.is_some_and(|at| at <= due.now) {
            entry.in_flight = true;
            let lease = Arc::clone(&entry.lease);
            due.renew.push(Watched { slot, lease });
        }
        let at = self.index.moment(entry.next(valid_until));
        entry.spot = self.index.insert(at, slot);
    }

    /// Takes everything out for good.
    pub(super) fn close(&mut self) -> Vec<Arc<LeaseState>> {
        self.closed = true;
        self.index.clear();
        self.checks.clear();
        self.leases.drain().map(|entry| entry.lease).collect()
    }
}
