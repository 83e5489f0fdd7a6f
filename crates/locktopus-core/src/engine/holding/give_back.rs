//! The debt to the backend when a lease has ended, and the release that settles it.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::clock::timer_in;
use locktopus_contract::{Executed, ReleaseOutcome};
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::engine::error::{LockError, LostCause, Phase};
use crate::engine::holding::lease::BackendLease;
use crate::engine::holding::services::Services;
use crate::engine::holding::shared_owner::SharedOwner;

/// A lease that no task of this process has any longer, and that must go back to the backend.
/// Dropping it hands it to the reaper.
#[must_use = "dropping it gives the lease back in the background"]
pub(crate) struct Owed {
    services: Arc<Services>,
    lease: Arc<BackendLease>,
    open: bool,
    /// A shutdown waits for it. Dropped last, after the reaper has taken over.
    _under_way: TaskTrackerToken,
}

impl Owed {
    pub(crate) fn new(services: Arc<Services>, lease: Arc<BackendLease>) -> Self {
        Self {
            _under_way: services.attempts.token(),
            services,
            lease,
            open: true,
        }
    }

    /// Another process continues with the lease.
    pub(crate) fn left_to_others(mut self) {
        self.open = false;
    }

    /// Gives the lease back to the backend, and waits for the answer. If the future is dropped, the
    /// reaper continues.
    pub(crate) async fn give_back(
        mut self,
        lost_before: Option<LostCause>,
    ) -> Result<(), LockError> {
        let lease = Arc::clone(&self.lease);
        let deadline = timer_in(self.services.call_timeout());
        let pending = self.services.pending_release_of(&lease);
        let mut pause = Duration::from_millis(5);
        let mut may_have_run = false;
        let outcome = loop {
            let request = pending.request(deadline, &self.services.ids);
            match self.services.release(&request).await {
                Ok(outcome) => break outcome,
                Err(source) => {
                    may_have_run |= source.executed() == Executed::Maybe;
                    if !source.is_transient() || Instant::now() + pause >= deadline {
                        // Dropping `self` hands the rest to the reaper.
                        let target = lease.target.clone();
                        if let Some(cause) = lost_before {
                            return Err(LockError::Lost { target, cause });
                        }
                        return Err(LockError::Backend {
                            target,
                            phase: Phase::Release,
                            source,
                        });
                    }
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
            }
        };
        // If an attempt may still arrive, the reaper handles it.
        if !lease.late_attempt {
            self.open = false;
            SharedOwner::returned_by(&self.services, &lease, pending.release.last);
        }
        let cause = match (lost_before, outcome) {
            (Some(cause), _) => cause,
            (None, ReleaseOutcome::Released) => return Ok(()),
            // The first request released it; only its answer was lost.
            (None, ReleaseOutcome::NotHeld) if may_have_run => return Ok(()),
            (None, ReleaseOutcome::NotHeld) => LostCause::Missing,
        };
        let cause = self
            .services
            .explain(&lease.target, &lease.owner, cause)
            .await;
        Err(LockError::Lost {
            target: lease.target.clone(),
            cause,
        })
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        let pending = self.services.pending_release_of(&self.lease);
        let (last, lease) = (pending.release.last, Arc::clone(&self.lease));
        let services = Arc::clone(&self.services);
        self.services.reap_then(pending, move || {
            SharedOwner::returned_by(&services, &lease, last);
        });
    }
}
