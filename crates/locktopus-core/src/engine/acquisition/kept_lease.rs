//! Lease caching: a lease that the cohort keeps while no task of this process has it.
//!
//! The backend has known whom to notify since the grant itself
//! ([`AcquireAttempt::recall`](crate::AcquireAttempt::recall)), and this process listened before it
//! asked, so it misses no recall. After the first release of the lease, a task starts to listen. It
//! ends the keeping when another process wants the lock, when a message may have been lost, or when
//! the time is over. It also ends with the lease.
//!
//! The time counts from the first release, not from the latest. So clients that cannot recall the
//! lease wait for a bounded time, however often it is taken again. The time is over at the latest
//! when the backend may have forgotten whom to notify.

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use locktopus_contract::clock::BootInstant;
use locktopus_contract::{WakeStream, lock};
use tokio_util::sync::CancellationToken;

/// What is needed to keep a lease while no task holds it.
pub(crate) struct Keeping {
    /// Receives the recall. Taken at the first release.
    recall: Mutex<Option<WakeStream>>,
    /// How long to keep the lease, from the first release.
    keep: Duration,
    /// Until when the backend certainly knows whom to notify: for the granted lease, not counting
    /// renewals.
    known_until: BootInstant,
    /// Set by the first release.
    until: OnceLock<BootInstant>,
    /// Cancelled when the lease has ended or must go back.
    over: CancellationToken,
}

impl Keeping {
    pub(super) fn new(recall: WakeStream, keep: Duration, known_until: BootInstant) -> Self {
        Self {
            recall: Mutex::new(Some(recall)),
            keep,
            known_until,
            until: OnceLock::new(),
            over: CancellationToken::new(),
        }
    }

    /// Until when the lease is kept; `None` before the first release and once keeping is over.
    pub(super) fn until(&self) -> Option<BootInstant> {
        let until = self.until.get().copied();
        until.filter(|_| !self.over.is_cancelled())
    }

    /// Starts keeping, at the first release. The returned future completes when the lease must go
    /// back, or has ended. The caller must await it while the lease is kept.
    pub(super) fn begin(&self, now: impl Fn() -> BootInstant) -> Option<BoxFuture<'static, ()>> {
        let mut recall = lock(&self.recall).take()?;
        // A recall that came while the lock was held.
        if recall.wanted().now_or_never().is_some() {
            return None;
        }
        let until = (now() + self.keep).min(self.known_until);
        let (until, over) = (*self.until.get_or_init(|| until), self.over.clone());
        let over = async move {
            tokio::select! {
                biased;
                () = over.cancelled() => {}
                () = recall.wanted() => {}
                () = tokio::time::sleep_until(until.timer()) => {}
            }
        };
        Some(over.boxed())
    }

    /// Ends the keeping. The queue sees that the next time its mutex is locked.
    pub(super) fn end(&self) {
        self.over.cancel();
        lock(&self.recall).take();
    }
}
