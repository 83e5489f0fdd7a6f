//! The reaper: in the background, gives back the locks of dropped guards and futures.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant, timer_in};
use locktopus_contract::internal::OwnerIds;
use locktopus_contract::{LockKind, LockTarget, OwnerId, ReleaseRequest};
use tokio::time::{Instant, timeout_at};

use crate::engine::holding::lease::BackendLease;
use crate::engine::holding::limits::Debt;
use crate::engine::holding::linger;
use crate::engine::holding::services::Services;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long after its deadline an attempt may still take effect. Backends refuse later ones.
const MAX_LATENESS: Duration = Duration::from_millis(250);

/// A release that is still to be made.
#[derive(Debug)]
pub(crate) struct PendingRelease {
    /// The request. Each repetition gets its own deadline and linger time.
    pub(crate) release: ReleaseRequest,
    /// After this instant the lease has expired at the backend.
    pub(crate) until: BootInstant,
    /// An attempt may still be under way and arrive after the release: release once more.
    pub(crate) late_attempt: bool,
    /// Until this instant the lock stays held without an owner.
    pub(crate) linger_until: Option<BootInstant>,
}

impl PendingRelease {
    /// The release of what this owner may hold for this long from now. No attempt follows under its
    /// id.
    pub(crate) fn new(
        target: LockTarget,
        owner: OwnerId,
        lasts: Duration,
        late_attempt: bool,
    ) -> Self {
        let mut release = ReleaseRequest::new(target, owner, Instant::now());
        release.last = true;
        Self {
            release,
            until: clock::now() + lasts,
            late_attempt,
            linger_until: None,
        }
    }

    /// The release request, as of now.
    pub(crate) fn request(&self, deadline: Instant, ids: &OwnerIds) -> ReleaseRequest {
        ReleaseRequest {
            deadline,
            linger: linger::left(self.release.target.kind(), self.linger_until, ids),
            ..self.release.clone()
        }
    }
}

impl Services {
    /// Takes over a pending release. Never blocks and never panics; without a live runtime the
    /// lease expires instead.
    pub(crate) fn reap(self: &Arc<Self>, pending: PendingRelease) {
        self.reap_then(pending, || ());
    }

    /// Like [`reap`](Self::reap). Calls `settled` once the release is finished, unless everything
    /// shuts down first.
    pub(crate) fn reap_then(
        self: &Arc<Self>,
        pending: PendingRelease,
        settled: impl Fn() + Send + Sync + 'static,
    ) {
        let owed = self.debts.owe(self.backend.shard(&pending.release.target));
        let debt = Arc::new((pending, owed, settled));
        self.in_background(Some(&self.tasks), move |services| {
            let debt = Arc::clone(&debt);
            async move {
                let (pending, owed, settled) = &*debt;
                tokio::select! {
                    biased;
                    () = services.closed.cancelled() => {}
                    () = services.give_back(pending, owed) => settled(),
                }
            }
        });
    }

    /// The release for a lease that ended without an answered release. The lock may outlast the
    /// lease's validity: a renewal whose answer was lost, or one longer than the maximum hold time,
    /// keeps it on the server.
    pub(crate) fn pending_release_of(&self, lease: &BackendLease) -> PendingRelease {
        let (target, owner) = (lease.target.clone(), lease.owner.clone());
        let lasts = lease.longest_lease() + self.call_timeout();
        let mut pending = PendingRelease::new(target, owner, lasts, lease.late_attempt);
        pending.linger_until = lease.linger_until();
        let release = &mut pending.release;
        (release.permits, release.token_retention) = (lease.permits, lease.retention);
        // A writer may read again under its id.
        release.last = *lease.target.kind() != LockKind::Read
            || lease
                .shared_owner()
                .is_none_or(|loan| loan.writer_is_gone());
        pending
    }

    /// Releases the readers' half under this lease's id. No attempt follows under it.
    pub(crate) fn last_release_of_reader(&self, lease: &BackendLease) -> PendingRelease {
        let mut pending = self.pending_release_of(lease);
        pending.late_attempt = false;
        let release = &mut pending.release;
        release.target = LockTarget::new(lease.target.name().clone(), LockKind::Read);
        release.last = true;
        pending
    }

    /// Tries to release until that is certain, or the lease has expired. It stops then even if a
    /// server is down, or too many releases of the shard are under way.
    async fn give_back(&self, pending: &PendingRelease, owed: &Debt) {
        let patience = self.call_timeout();
        // After a late attempt, each release has time for its answer, however short the lease.
        let limit = || match pending.late_attempt {
            true => pending.until.max(clock::now() + patience),
            false => pending.until,
        };
        let mut given_back = self.give_back_until(pending, owed, limit()).await;
        owed.answered();
        if given_back && pending.late_attempt {
            // An attempt under way may have arrived after this release. If its caller gave up at
            // once, its deadline is a whole call away.
            tokio::time::sleep(patience + MAX_LATENESS).await;
            given_back = self.give_back_until(pending, owed, limit()).await;
        }
        if !given_back {
            tracing::warn!(lock = %pending.release.target, "background release given up; the lease has ended");
        }
    }

    async fn give_back_until(
        &self,
        pending: &PendingRelease,
        owed: &Debt,
        limit: BootInstant,
    ) -> bool {
        let given_back = self.try_to_give_back(pending, owed, limit);
        timeout_at(limit.timer(), given_back).await == Ok(true)
    }

    /// False if it takes until `limit`.
    async fn try_to_give_back(
        &self,
        pending: &PendingRelease,
        owed: &Debt,
        limit: BootInstant,
    ) -> bool {
        let mut pause = FIRST_PAUSE;
        loop {
            let limit_of_shard = self
                .releases
                .of_shard(self.backend.shard(&pending.release.target));
            let permit = limit_of_shard.acquire().await;
            // Many may have waited for this permit, and each would send one more request.
            if clock::now() >= limit {
                return false;
            }
            let deadline = timer_in(self.call_timeout());
            let answer = self.release(&pending.request(deadline, &self.ids)).await;
            drop(permit);
            match answer {
                Ok(_) => return true,
                Err(error) => {
                    tracing::debug!(lock = %pending.release.target, %error, "background release failed");
                    // The server answers, so attempts need not wait for this release.
                    if !error.is_transient() {
                        owed.answered();
                    }
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
