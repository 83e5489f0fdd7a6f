//! Lease caching: a lease that the local queue keeps while nobody of this process has it.
//!
//! The backend knows whom to tell since the grant itself ([`AcquireAttempt::recall`](crate::AcquireAttempt::recall)),
//! and this process listened before it asked, so nothing that was said is missed. When the lease is released for
//! the first time, a task begins to listen. It ends the keeping when somebody else wants the lock, when a message may
//! have been lost, or when the time is over; or ends with the lease.
//!
//! The time counts from the first release, not from the latest, so that those who cannot ask for the lock wait for a
//! bounded time however often it is taken again. It ends at the latest when the backend may have forgotten whom to
//! tell.

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use locktopus_contract::clock::BootInstant;
use locktopus_contract::{WakeStream, lock};
use tokio_util::sync::CancellationToken;

/// What it takes to keep a lease after its release.
pub(crate) struct RecallSubscription {
    /// Hears that the lock is wanted.
    pub(crate) hints: WakeStream,
    /// For how long.
    pub(crate) keep: Duration,
}

/// Resolves when a kept lease must be given back.
pub(super) struct Recall {
    hints: WakeStream,
    until: BootInstant,
    over: CancellationToken,
}

impl Recall {
    /// Waits until the lease must be given back, or has ended.
    pub(super) async fn over(mut self) {
        tokio::select! {
            biased;
            () = self.over.cancelled() => {}
            () = self.hints.wanted() => {}
            () = tokio::time::sleep_until(self.until.timer()) => {}
        }
    }
}

/// What it takes to keep a lease while nobody holds it.
pub(super) struct Keeping {
    /// Until the first release.
    subscription: Mutex<Option<RecallSubscription>>,
    /// Until when the backend certainly knows whom to tell: for the lease that it granted, renewals not counted.
    known_until: BootInstant,
    /// Set by the first release.
    until: OnceLock<BootInstant>,
    /// Cancelled when the lease has ended or must be given back.
    over: CancellationToken,
}

impl Keeping {
    pub(super) fn new(subscription: RecallSubscription, known_until: BootInstant) -> Self {
        Self {
            subscription: Mutex::new(Some(subscription)),
            known_until,
            until: OnceLock::new(),
            over: CancellationToken::new(),
        }
    }

    /// Until when the lease is kept; `None` before the first release, and when keeping is over.
    pub(super) fn until(&self) -> Option<BootInstant> {
        let until = self.until.get().copied();
        until.filter(|_| !self.over.is_cancelled())
    }

    /// Starts with the first release. The caller must await the returned `Recall` while the lease
    /// is kept.
    pub(super) fn begin(&self, now: impl Fn() -> BootInstant) -> Option<Recall> {
        let RecallSubscription { mut hints, keep } = lock(&self.subscription).take()?;
        // What was said while the lock was held.
        if hints.wanted().now_or_never().is_some() {
            return None;
        }
        let until = *self
            .until
            .get_or_init(|| (now() + keep).min(self.known_until));
        let over = self.over.clone();
        Some(Recall { hints, until, over })
    }

    /// From now on the lease is not kept. Whoever looks under the local queue's lock after this sees it.
    pub(super) fn end(&self) {
        self.over.cancel();
        lock(&self.subscription).take();
    }
}
