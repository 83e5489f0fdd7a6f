//! The watched leases, and the next step for each of them.

use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use locktopus_contract::clock::{self, BootInstant};

use super::due::{Due, NextCheck};
use super::timer_index::{Moment, TimerIndex, TimerKey};
use super::timing::{answer_within, renewal_time};
use super::{MAX_DUE, SLEEP_CHECK_INTERVAL, ScheduledCheck};
use crate::engine::holding::lease::BackendLease;
use slab::Slab;

/// If a grant took a longer part of the lease than this, the first renewal takes that into account.
const SLOW_GRANT_DIVISOR: u32 = 24;

#[derive(Debug)]
pub(super) struct WatchedLeases {
    leases: Slab<Entry>,
    index: TimerIndex<usize>,
    checks: TimerIndex<Weak<dyn ScheduledCheck>>,
    /// When the watchdog will check next.
    awake_at: Moment,
    /// A lease came since the last check. It may be gone again, and the next one will come soon.
    came: bool,
    pub(super) closed: bool,
}

#[derive(Debug)]
pub(super) struct Entry {
    lease: Arc<BackendLease>,
    timer: TimerKey,
    pub(super) renew_at: Option<BootInstant>,
    /// While a renewal is under way: when its answer is overdue, because the runtime that sent it
    /// has ended or is stuck.
    pub(super) in_flight: Option<BootInstant>,
    /// Failed renewals since the last successful one.
    pub(super) failures: Option<Box<Failures>>,
}

#[derive(Debug)]
pub(super) struct Failures {
    pub(super) count: u32,
    /// When the first of them was due.
    pub(super) since: BootInstant,
    /// The error of the last one.
    pub(super) detail: String,
}

impl Entry {
    /// The next instant at which something must be done. While a renewal is under way, that is when
    /// its answer is overdue, or the deadline, which `valid_until` then is.
    fn next(&self, valid_until: BootInstant) -> BootInstant {
        let at = self.in_flight.or(self.renew_at);
        at.map_or(valid_until, |at| at.min(valid_until))
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

/// Whether the watchdog must be woken, because its next check would be too late.
#[must_use]
pub(super) struct Sooner(pub(super) bool);

impl WatchedLeases {
    pub(super) fn new(origin: BootInstant) -> Self {
        Self {
            leases: Slab::new(),
            index: TimerIndex::new(origin),
            checks: TimerIndex::new(origin),
            awake_at: Moment::NEVER,
            came: false,
            closed: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.leases.len()
    }

    pub(super) fn leases(&self) -> impl Iterator<Item = &Arc<BackendLease>> {
        self.leases.iter().map(|(_, entry)| &entry.lease)
    }

    /// The entry of this lease, unless it was removed.
    pub(super) fn get(&mut self, lease: &BackendLease) -> Option<&mut Entry> {
        let slot = lease.slot.load(Ordering::Relaxed);
        let entry = self.leases.get_mut(slot)?;
        // Another lease may have its slot now.
        ptr::eq(Arc::as_ptr(&entry.lease), lease).then_some(entry)
    }

    /// The origin of the grid of renewals.
    pub(super) fn origin(&self) -> BootInstant {
        self.index.origin()
    }

    /// Adds a lease that was confirmed at `now`.
    pub(super) fn insert(&mut self, lease: &Arc<BackendLease>, now: BootInstant) -> Sooner {
        // A slow grant leaves less time for the first renewal, which then must not wait for a third
        // of the lease too. The margin of validity does not count as slow.
        let counts_from = lease.counts_from();
        let since = match now.since(counts_from) > lease.length() / SLOW_GRANT_DIVISOR {
            true => counts_from,
            false => now,
        };
        let renew_at = lease
            .renewed
            .then(|| renewal_time(self.origin(), since, lease.length()));
        let valid_until = lease.valid_until();
        let at = renew_at.map_or(valid_until, |at| at.min(valid_until));
        self.came = true;
        let place = self.leases.vacant_entry();
        let (slot, at) = (place.key(), self.index.moment(at));
        lease.slot.store(slot, Ordering::Relaxed);
        place.insert(Entry {
            lease: Arc::clone(lease),
            timer: self.index.insert(at, slot),
            renew_at,
            in_flight: None,
            failures: None,
        });
        self.is_sooner(at)
    }

    /// Schedules a check.
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

    /// Removes a lease, if it is here.
    pub(super) fn remove(&mut self, lease: &BackendLease) {
        if let Some(timer) = self.get(lease).map(|entry| entry.timer) {
            self.leases.remove(lease.slot.load(Ordering::Relaxed));
            self.unlist(timer);
        }
    }

    fn unlist(&mut self, timer: TimerKey) {
        if let Some(&moved) = self.index.remove(timer)
            && let Some(entry) = self.leases.get_mut(moved)
        {
            entry.timer = timer;
        }
    }

    /// Moves a lease to its new position after a change.
    pub(super) fn reschedule(&mut self, lease: &BackendLease, valid_until: BootInstant) -> Sooner {
        let Some((before, at)) = self.get(lease).map(|e| (e.timer, e.next(valid_until))) else {
            return Sooner(false);
        };
        let (slot, at) = (lease.slot.load(Ordering::Relaxed), self.index.moment(at));
        self.unlist(before);
        let timer = self.index.insert(at, slot);
        if let Some(entry) = self.leases.get_mut(slot) {
            entry.timer = timer;
        }
        self.is_sooner(at)
    }

    /// Everything that is due now, or as much of it as fits into one check. It already has its next
    /// position.
    pub(super) fn take_due(&mut self) -> Due {
        let mut due = Due::new(clock::now());
        for _ in 0..MAX_DUE {
            if let Some(slot) = self.index.pop(due.now) {
                self.fired(slot, &mut due);
            } else if let Some(cohort) = self.checks.pop(due.now) {
                due.checks.push(cohort);
            } else {
                due.next = self.next_check(due.now);
                return due;
            }
        }
        (self.awake_at, due.next) = (Moment::FIRST, NextCheck::AtOnce);
        due
    }

    fn next_check(&mut self, now: BootInstant) -> NextCheck {
        // Timers do not count time that the machine sleeps, so while leases are watched there is a
        // check every `SLEEP_CHECK_INTERVAL`. And once more after the last one, so that a task that
        // takes a lock and releases it, again and again, does not wake the watchdog each time.
        let ticks = std::mem::take(&mut self.came) || !self.leases.is_empty();
        let tick = ticks.then(|| self.index.moment(now + SLEEP_CHECK_INTERVAL));
        let firsts = [self.index.first(), self.checks.first(), tick];
        let Some(at) = firsts.into_iter().flatten().min() else {
            self.awake_at = Moment::NEVER;
            return NextCheck::Never;
        };
        self.awake_at = at;
        NextCheck::At(self.index.instant(at).timer())
    }

    /// Handles a lease taken off the index, and adds it again.
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
        // Judged before it is removed: a lease that is removed and then passed on would never be
        // renewed.
        let failed = entry.failures.as_deref();
        let failed = failed.map(|failures| failures.detail.as_str());
        if let Some(cause) = entry.lease.judge(due.now, failed) {
            due.over.push((self.leases.remove(slot).lease, cause));
            return;
        }
        let valid_until = entry.lease.valid_until();
        if entry
            .in_flight
            .or(entry.renew_at)
            .is_some_and(|at| at <= due.now)
        {
            entry.in_flight = Some(due.now + answer_within(entry.lease.length()));
            due.renew.push(Arc::clone(&entry.lease));
        }
        let at = self.index.moment(entry.next(valid_until));
        entry.timer = self.index.insert(at, slot);
    }

    /// Removes everything for good.
    pub(super) fn close(&mut self) -> Vec<Arc<BackendLease>> {
        (self.closed, self.came) = (true, false);
        self.index.clear();
        self.checks.clear();
        self.leases.drain().map(|entry| entry.lease).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, advance};

    use super::*;
    use crate::engine::holding::services::Services;
    use crate::test_backend::{granted, granted_until};

    const MS: Duration = Duration::from_millis(1);
    const SECOND: Duration = Duration::from_secs(1);
    /// It is renewed after eight seconds, on a grid of a quarter of a second.
    const LEASE: Duration = Duration::from_secs(24);

    fn watched() -> WatchedLeases {
        WatchedLeases::new(clock::now())
    }

    /// A lease granted now.
    fn lease() -> Arc<BackendLease> {
        Arc::new(granted(LEASE))
    }

    fn put(watched: &mut WatchedLeases, lease: &Arc<BackendLease>) {
        let Sooner(_) = watched.insert(lease, clock::now());
    }

    /// Checks, and counts the leases to renew and those that are over.
    fn found(watched: &mut WatchedLeases) -> (usize, usize) {
        let due = watched.take_due();
        (due.renew.len(), due.over.len())
    }

    fn soon() -> NextCheck {
        NextCheck::At(Instant::now() + SLEEP_CHECK_INTERVAL)
    }

    #[derive(Debug)]
    struct Check;

    impl ScheduledCheck for Check {
        fn check(self: Arc<Self>, _: &Arc<Services>, _: BootInstant) {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_is_sent_again_when_its_answer_is_overdue_until_the_lease_ends() {
        let (mut watched, lease) = (watched(), lease());
        put(&mut watched, &lease);
        assert_eq!(watched.take_due().next, soon());
        advance(8 * SECOND - MS).await;
        assert_eq!(found(&mut watched), (0, 0));
        advance(MS).await;
        let due = watched.take_due();
        assert_eq!((due.renew.len(), due.over.len()), (1, 0));
        assert!(Arc::ptr_eq(&due.renew[0], &lease));
        // It is under way.
        let due = watched.take_due();
        assert_eq!((due.renew.len(), due.next), (0, soon()));
        advance(10 * SECOND + 49 * MS).await;
        assert_eq!(found(&mut watched), (0, 0));
        // The runtime that sent it may have ended.
        advance(MS).await;
        assert_eq!(found(&mut watched), (1, 0));
        advance(6 * SECOND - 51 * MS).await;
        assert_eq!(found(&mut watched), (0, 0));
        advance(MS).await;
        assert_eq!(found(&mut watched), (0, 1));
        assert_eq!(watched.len(), 0);
    }

    /// The index has it at its former end, which is no reason to renew it.
    #[tokio::test(start_paused = true)]
    async fn a_lease_that_ends_later_than_it_did_is_left_alone_until_then() {
        let mut not_renewed = granted(LEASE);
        not_renewed.renewed = false;
        let (not_renewed, under_way) = (Arc::new(not_renewed), lease());
        let mut watched = watched();
        put(&mut watched, &not_renewed);
        put(&mut watched, &under_way);
        advance(8 * SECOND).await;
        assert_eq!(found(&mut watched), (1, 0));
        for lease in [&not_renewed, &under_way] {
            lease.extended(LEASE, clock::now() + LEASE);
        }
        advance(16 * SECOND).await;
        // The answer for the other one is overdue.
        assert_eq!(found(&mut watched), (1, 0));
        advance(8 * SECOND).await;
        assert_eq!(found(&mut watched), (0, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_taken_out_is_not_found_and_others_are() {
        let mut watched = watched();
        let leases = [lease(), lease(), lease()];
        for lease in &leases {
            put(&mut watched, lease);
        }
        assert_eq!(watched.len(), 3);
        for (listed, lease) in watched.leases().zip(&leases) {
            assert!(Arc::ptr_eq(listed, lease));
        }
        watched.remove(&leases[0]);
        let in_its_place = lease();
        put(&mut watched, &in_its_place);
        watched.remove(&leases[0]);
        assert!(watched.get(&leases[0]).is_none());
        assert!(watched.get(&in_its_place).is_some());
        watched.remove(&in_its_place);
        // The last entry has moved to the place of the first.
        let Sooner(_) = watched.reschedule(&leases[2], clock::now() + MS);
        assert_eq!(watched.len(), 2);
        advance(MS).await;
        assert_eq!(found(&mut watched), (0, 0));
        advance(8 * SECOND - MS).await;
        assert_eq!(found(&mut watched), (2, 0));
        for lease in &leases[1..] {
            watched.remove(lease);
        }
        assert_eq!((watched.index.first(), watched.len()), (None, 0));
        assert_eq!(watched.take_due().next, NextCheck::Never);
        // One that comes and goes is looked for once, and wakes nobody if it comes again till then.
        let again = lease();
        put(&mut watched, &again);
        watched.remove(&again);
        assert_eq!(watched.take_due().next, soon());
        let Sooner(wakes) = watched.insert(&again, clock::now());
        watched.remove(&again);
        assert!(!wakes);
        assert_eq!(watched.take_due().next, soon());
        assert_eq!(watched.take_due().next, NextCheck::Never);
    }

    /// A lease released meanwhile is removed when it is next checked.
    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_released_is_not_renewed() {
        let (mut watched, lease) = (watched(), lease());
        put(&mut watched, &lease);
        assert!(lease.begin_release());
        advance(8 * SECOND).await;
        assert_eq!(found(&mut watched), (0, 0));
        assert_eq!(watched.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_due_before_the_next_look_wakes_the_watchdog() {
        let mut watched = watched();
        let Sooner(first) = watched.insert(&lease(), clock::now());
        let Sooner(same) = watched.insert(&lease(), clock::now());
        assert!(first && !same);
        let check: Weak<dyn ScheduledCheck> = Weak::<Check>::new();
        let mut wakes = |after| {
            let Sooner(wakes) = watched.insert_check(check.clone(), clock::now() + after);
            wakes
        };
        assert!(!wakes(9 * SECOND) && !wakes(8 * SECOND));
        assert!(wakes(8 * SECOND - MS) && !wakes(8 * SECOND - MS));
        // With a check every second, an entry due in half a second still wakes the watchdog.
        assert_eq!(watched.take_due().next, soon());
        assert!(
            !watched
                .is_sooner(watched.index.moment(clock::now() + SECOND))
                .0
        );
        assert!(
            watched
                .is_sooner(watched.index.moment(clock::now() + SECOND / 2))
                .0
        );
    }

    /// Only leases need checks in between.
    #[tokio::test(start_paused = true)]
    async fn without_leases_nobody_looks_before_a_check_is_due() {
        let mut watched = watched();
        assert_eq!(watched.take_due().next, NextCheck::Never);
        let check: Weak<dyn ScheduledCheck> = Weak::<Check>::new();
        let Sooner(_) = watched.insert_check(check, clock::now() + 5 * SECOND);
        let due = watched.take_due();
        assert_eq!(due.next, NextCheck::At(Instant::now() + 5 * SECOND));
        assert!(due.is_empty());
        put(&mut watched, &lease());
        assert_eq!(watched.take_due().next, soon());
        advance(5 * SECOND).await;
        assert_eq!(watched.take_due().checks.len(), 1);
    }

    /// A 24th of the lease, one second, does not count as slow.
    #[tokio::test(start_paused = true)]
    async fn a_grant_that_was_long_in_coming_is_renewed_sooner() {
        for (took, renewed) in [
            (Duration::ZERO, 8 * SECOND),
            (SECOND, 8 * SECOND),
            (SECOND + MS, 6_750 * MS),
            (6 * SECOND, 2 * SECOND),
        ] {
            let now = clock::now();
            let mut watched = WatchedLeases::new(now);
            let lease = Arc::new(granted_until(LEASE, now + LEASE.saturating_sub(took)));
            put(&mut watched, &lease);
            let entry = watched.get(&lease).unwrap();
            assert_eq!(entry.renew_at, Some(now + renewed), "{took:?}");
        }
    }

    /// Ten batches. Then other tasks on the same thread get their turn.
    #[tokio::test(start_paused = true)]
    async fn one_look_finds_a_thousand_leases_and_no_more() {
        let mut watched = watched();
        for _ in 0..1_001 {
            put(&mut watched, &lease());
        }
        advance(8 * SECOND).await;
        let due = watched.take_due();
        assert_eq!((due.renew.len(), due.next), (1_000, NextCheck::AtOnce));
        let due = watched.take_due();
        assert_eq!((due.renew.len(), due.next), (1, soon()));
    }

    #[tokio::test(start_paused = true)]
    async fn who_closes_it_is_given_what_was_watched() {
        let mut watched = watched();
        let leases = [lease(), lease()];
        for lease in &leases {
            put(&mut watched, lease);
        }
        let check: Weak<dyn ScheduledCheck> = Weak::<Check>::new();
        let Sooner(_) = watched.insert_check(check, clock::now());
        let given = watched.close();
        assert!(watched.closed && given.len() == 2);
        assert!(given.iter().zip(&leases).all(|(a, b)| Arc::ptr_eq(a, b)));
        advance(LEASE).await;
        let due = watched.take_due();
        assert!(due.is_empty() && due.next == NextCheck::Never);
    }
}
