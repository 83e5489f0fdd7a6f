//! Reading under the id of a writer.
//!
//! The acquire loop cannot do this. The grant comes at once, so there is no waiting or queueing.
//! The owner id is not fresh, so if that loop gave it up and tried with another one, it would block
//! behind the writer for ever.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::clock::{self, timer_in};
use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, Executed, LockTarget, OwnerId,
};
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::engine::acquisition::Plan;
use crate::engine::error::{LockError, LostCause, Phase};
use crate::engine::holding::lease::BackendLease;
use crate::engine::holding::reaper::PendingRelease;
use crate::engine::holding::services::Services;
use crate::engine::holding::shared_owner::SharedOwner;
use crate::handles::guard::LockGuard;
use crate::handles::lock_request::guard_of_grant;

const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// How many call timeouts it may take in all: the release of an earlier reader comes first.
const MAX_CALL_TIMEOUTS: u32 = 4;

/// Takes the readers' half of a lock for `writer`, which holds the other half.
pub(crate) async fn read_as_writer(
    services: &Arc<Services>,
    plan: &Plan,
    writer: &LockGuard,
) -> Result<LockGuard, LockError> {
    writer.ensure_valid()?;
    let target = || plan.target.clone();
    let reading = tokio::select! {
        biased;
        () = services.closing.cancelled() => return Err(LockError::ShutDown),
        () = plan.cancelled() => return Err(LockError::Cancelled { target: target() }),
        reading = take(services, plan, writer) => reading?,
    };
    // Otherwise another writer may have been in between. Returning drops the reader, which releases
    // it.
    writer.ensure_valid()?;
    Ok(reading)
}

async fn take(
    services: &Arc<Services>,
    plan: &Plan,
    writer: &LockGuard,
) -> Result<LockGuard, LockError> {
    let limit = timer_in(services.call_timeout() * MAX_CALL_TIMEOUTS);
    let mut unsettled: Option<Unsettled<'_>> = None;
    let mut pause = FIRST_PAUSE;
    loop {
        let lent = writer.turn().lease.shared_owner();
        let error = if unsettled.is_none() && lent.is_some_and(|loan| !loan.is_returned()) {
            still_lent(services)
        } else {
            let unsettled = unsettled.get_or_insert_with(|| Unsettled::new(services, plan, writer));
            match unsettled.attempt(plan, writer).await? {
                Ok(reading) => return Ok(reading),
                Err(error) => error,
            }
        };
        if !error.is_transient() || Instant::now() + pause >= limit {
            return Err(LockError::Backend {
                target: plan.target.clone(),
                phase: Phase::Acquire,
                source: error,
            });
        }
        tracing::debug!(lock = %plan.target, %error, "attempt failed, will try again");
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

fn still_lent(services: &Services) -> BackendError {
    let message = "an earlier reader under this writer's id is still being given back";
    services.error(BackendErrorKind::Unavailable, Executed::No, message)
}

/// Attempts that may leave a hold behind. Dropping this gives it back.
struct Unsettled<'a> {
    services: &'a Arc<Services>,
    target: &'a LockTarget,
    owner: &'a OwnerId,
    writer: &'a Arc<BackendLease>,
    lease: Duration,
    loan: Arc<SharedOwner>,
    sent: bool,
    /// An attempt without an answer may still arrive.
    late_attempt: bool,
    /// Makes a shutdown wait until the reaper has this. `None` once there is nothing to give back.
    open: Option<TaskTrackerToken>,
}

impl<'a> Unsettled<'a> {
    fn new(services: &'a Arc<Services>, plan: &'a Plan, writer: &'a LockGuard) -> Self {
        let lease = &writer.turn().lease;
        let loan = SharedOwner::of(lease);
        lease.set_shared_owner(&loan);
        Self {
            services,
            target: &plan.target,
            owner: writer.owner_id(),
            writer: lease,
            lease: plan.lease,
            loan,
            sent: false,
            late_attempt: false,
            open: Some(services.attempts.token()),
        }
    }

    async fn attempt(
        &mut self,
        plan: &Plan,
        writer: &LockGuard,
    ) -> Result<Result<LockGuard, BackendError>, LockError> {
        let services = self.services;
        let (mut sent, deadline) = (clock::now(), timer_in(services.call_timeout()));
        let (target, owner) = (self.target.clone(), self.owner.clone());
        let attempt = AcquireAttempt::new(target, owner, plan.lease, deadline);
        let (owes, was_late) = (self.sent, self.late_attempt);
        let (was_sent, late_attempt) = (&mut self.sent, &mut self.late_attempt);
        // Late until the answer comes, even if the future is dropped here.
        let sends = |_| (*was_sent, *late_attempt, sent) = (true, true, clock::now());
        let answer = services.attempt(&attempt, owes, sends).await;
        self.late_attempt = was_late;
        match answer {
            Ok(AttemptOutcome::Granted { .. }) => {
                let valid_until = services.settings.margin.valid_until(sent, plan.lease);
                if valid_until <= clock::now() {
                    return Ok(Err(services.too_slow()));
                }
                let reading = guard_of_grant(services, plan, self.owner, None, sent, was_late)?;
                reading.turn().lease.set_shared_owner(&self.loan);
                self.open = None;
                Ok(Ok(reading))
            }
            // A writer is never refused, so it no longer holds the lock.
            Ok(AttemptOutcome::Busy { .. } | AttemptOutcome::Queued { .. }) => {
                if !was_late {
                    self.loan.give_back();
                    self.open = None;
                }
                Err(LockError::Lost {
                    target: writer.target().clone(),
                    cause: LostCause::TakenOver,
                })
            }
            Err(error) => {
                self.late_attempt |= error.executed() == Executed::Maybe;
                Ok(Err(error))
            }
        }
    }
}

impl Drop for Unsettled<'_> {
    fn drop(&mut self) {
        if self.open.is_some() && !self.sent {
            self.loan.give_back();
        } else if self.open.is_some() {
            let (target, owner) = (self.target.clone(), self.owner.clone());
            let lasts = self.lease + self.services.call_timeout();
            let mut pending = PendingRelease::new(target, owner, lasts, self.late_attempt);
            // The writer may read again.
            pending.release.last = false;
            // Of the waiters that a reader hands the lock to, only writers get a token, and they
            // use the same setting as this one.
            pending.release.token_retention = self.services.settings.token_retention;
            let (loan, writer) = (Arc::clone(&self.loan), Arc::clone(self.writer));
            let services = Arc::clone(self.services);
            self.services.reap_then(pending, move || {
                loan.give_back();
                loan.end_reading(&services, &writer);
            });
        }
    }
}
