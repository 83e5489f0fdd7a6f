//! What an acquisition is to do, and where it begins.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use crate::attempts::jitter;
use crate::attempts::{Acquisition, Stop};
use crate::clock::{LONGEST, timer_after};
use crate::cohort::{self, Lead};
use crate::error::LockError;
use crate::guard::LockGuard;
use crate::kind::LockTarget;
use crate::services::Services;
use crate::settings::WaitStrategy;
use crate::token_retention::TokenRetention;
use crate::wait_progress::Reporter;

/// Everything a request decided, checked.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) target: LockTarget,
    pub(crate) permits: u32,
    pub(crate) lease: Duration,
    pub(crate) renewed: bool,
    pub(crate) max_hold: Option<Duration>,
    /// For how long to keep the lease after a release; zero: not at all.
    pub(crate) keep: Duration,
    pub(crate) strategy: WaitStrategy,
    pub(crate) wait: Wait,
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) retention: Option<TokenRetention>,
    /// Who wants to know how the wait goes on.
    pub(crate) progress: Option<Reporter>,
}

impl Plan {
    /// Completes when the caller's token is cancelled; never without one.
    pub(crate) async fn cancelled(&self) {
        match &self.cancel {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn cancellation(&self) -> LockError {
        let target = self.target.clone();
        LockError::Cancelled { target }
    }

    /// The error of a wait that reached its limit in this process.
    pub(crate) fn out_of_time(&self, started: Instant) -> LockError {
        LockError::WaitTimeout {
            target: self.target.clone(),
            waited: started.elapsed(),
            holder_remaining: None,
            source: None,
        }
    }
}

/// How long to wait for a lock that somebody else holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// One attempt.
    Not,
    /// At most this long.
    AtMost(Duration),
    /// For ever.
    Forever,
}

impl Wait {
    /// As long as a user says. Longer than anybody waits is not longer than [`LONGEST`].
    pub(crate) fn at_most(limit: Duration) -> Self {
        Self::AtMost(limit.min(LONGEST))
    }

    pub(crate) fn limit(self, from: Instant) -> Option<Instant> {
        match self {
            Self::Not => Some(from),
            Self::AtMost(limit) => Some(timer_after(from, limit)),
            Self::Forever => None,
        }
    }
}

/// Takes the lock, or says why not. `Ok(None)`: one attempt was allowed and somebody else holds the lock.
///
/// Within the process first, where others may hold the lock or be on the way to it; else from the backend.
pub(crate) async fn acquire(
    services: &Arc<Services>,
    plan: &Plan,
) -> Result<Option<LockGuard>, LockError> {
    let started = Instant::now();
    if cohort::serves(services, plan) {
        return cohort::acquire(services, plan, started).await;
    }
    alone(services, plan, started).await
}

/// Takes the lock from the backend, for nobody else.
pub(crate) async fn alone(
    services: &Arc<Services>,
    plan: &Plan,
    started: Instant,
) -> Result<Option<LockGuard>, LockError> {
    // Boxed: those who wait in a line of this process need no room for this.
    match Box::pin(from_backend(services, plan, started, None)).await {
        Ok(guard) => Ok(guard),
        Err(Stop::Failed(error)) => Err(error),
        // Only those who lead others are deposed.
        Err(Stop::Deposed) => Ok(None),
    }
}

/// Takes the lock from the backend, as the leader of those who wait in this process if there is a `lead`. The wait
/// limit counts from `started`.
pub(crate) async fn from_backend(
    services: &Arc<Services>,
    plan: &Plan,
    started: Instant,
    lead: Option<Lead>,
) -> Result<Option<LockGuard>, Stop> {
    tokio::select! {
        biased;
        () = services.closing.cancelled() => Err(LockError::ShutDown.into()),
        () = plan.cancelled() => Err(plan.cancellation().into()),
        outcome = Acquisition::new(services, plan, started, lead).run() => outcome,
    }
}
