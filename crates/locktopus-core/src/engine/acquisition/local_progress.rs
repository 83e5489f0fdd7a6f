//! Progress reports to waiters in the local queue: what the backend told the leader, or how long the present lease lasts.

use std::sync::atomic::Ordering;
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::lock;
use tokio::time::Instant;

use super::cohort::{Asker, Cohort};
use crate::engine::wait_progress::Reporter;

/// An answer of the backend to the leader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    /// The number of the leader.
    leader: u64,
    /// How many are ahead of the leader, if it stands in the backend's queue.
    ahead: Option<u64>,
    /// What was left of the lease in the way.
    remaining: Option<Duration>,
    at: Instant,
}

impl Told {
    pub(super) fn now(leader: u64, ahead: Option<u64>, remaining: Option<Duration>) -> Self {
        let at = Instant::now();
        Self {
            leader,
            ahead,
            remaining,
            at,
        }
    }
}

impl Cohort {
    /// Notes that somebody who watches has come, and tells how that stands as far as it is known.
    pub(super) fn watch(&self) {
        self.watched.fetch_add(1, Ordering::AcqRel);
        if self.tell_of_holder(clock::now()) {
            return;
        }
        let told = lock(&self.told).as_deref().copied();
        if let Some(told) = told
            && self.queue.is_led_by(told.leader)
        {
            self.tell(told);
        }
    }

    /// Somebody does not wait here any more. Its slot may stay for a while.
    pub(super) fn unwatch(&self, asker: &Asker) {
        if lock(&asker.progress).take().is_some() {
            self.watched.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire) > 0
    }

    /// Tells those who watch their wait what the leader was told. They come after it.
    pub(super) fn tell(&self, told: Told) {
        *lock(&self.told) = Some(Box::new(told));
        if !self.is_watched() {
            return;
        }
        let age = told.at.elapsed();
        let remaining = told.remaining.map(|left| left.saturating_sub(age));
        for (before, (reporter, lease)) in self.queue.pick(watching) {
            let ahead = told.ahead.map(|ahead| ahead + 1 + before);
            reporter.report(ahead, remaining, lease);
        }
    }

    /// Tells those who watch their wait how they stand while a member holds the lock. True if one does.
    pub(super) fn tell_of_holder(&self, now: BootInstant) -> bool {
        if !self.is_watched() {
            return false;
        }
        let Some(lease) = self.queue.in_use() else {
            return false;
        };
        let remaining = lease.valid_until().since(now);
        for (before, (reporter, wanted)) in self.queue.pick(watching) {
            reporter.report(Some(before), Some(remaining), wanted);
        }
        true
    }
}

/// Who watches, and what lease is wanted.
fn watching(asker: &Asker) -> Option<(Reporter, Duration)> {
    let reporter = lock(&asker.progress).clone()?;
    Some((reporter, asker.lease))
}
