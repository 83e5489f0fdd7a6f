//! The plan of an acquisition.

use std::time::Duration;

use locktopus_contract::clock::{BootInstant, LONGEST_WAIT, timer_after};
use locktopus_contract::{FencingToken, LockTarget, OwnerId, TokenRetention};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::error::LockError;
use crate::engine::holding::lease::BackendLease;
use crate::engine::holding::services::Services;
use crate::engine::settings::WaitStrategy;
use crate::engine::wait_progress::ProgressReporter;

/// How much of a lease must be left for it to count as good as a new one.
pub(super) fn least_validity(lease: Duration, renewed: bool) -> Duration {
    if renewed { lease / 2 } else { lease * 9 / 10 }
}

/// All settings of a request, checked.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) target: LockTarget,
    pub(crate) permits: u32,
    pub(crate) lease: Duration,
    pub(crate) renewed: bool,
    pub(crate) max_hold: Option<Duration>,
    /// How long after the grant it stays held, even if released earlier; zero means no longer than
    /// the hold.
    pub(crate) hold_at_least: Duration,
    /// How long to keep the lease after a release; zero means not at all.
    pub(crate) lease_cache: Duration,
    pub(crate) strategy: WaitStrategy,
    pub(crate) wait: Wait,
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) retention: Option<TokenRetention>,
    /// Receives progress reports, if wanted.
    pub(crate) progress: Option<ProgressReporter>,
}

impl Plan {
    /// Completes when the caller's token is cancelled; never without one.
    pub(crate) async fn cancelled(&self) {
        match &self.cancel {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// The backend's grant to this owner, for a request sent at `sent`. It serves one turn, and
    /// every earlier request was answered.
    pub(crate) fn granted(
        &self,
        services: &Services,
        owner: &OwnerId,
        token: Option<FencingToken>,
        sent: BootInstant,
    ) -> BackendLease {
        let valid_until = services.settings.margin.valid_until(sent, self.lease);
        let (target, owner) = (self.target.clone(), owner.clone());
        let mut lease = BackendLease::granted(target, owner, token, self.lease, valid_until);
        (lease.permits, lease.renewed, lease.retention) =
            (self.permits, self.renewed, self.retention);
        lease.limit_hold(self.max_hold.map(|hold| sent + hold));
        lease.with_safety(services.safety())
    }

    pub(crate) fn cancellation(&self) -> LockError {
        let target = self.target.clone();
        LockError::Cancelled { target }
    }
}

impl LockError {
    /// The error of a wait that reached its limit in this process.
    pub(crate) fn out_of_time(target: &LockTarget, started: Instant) -> Self {
        Self::WaitTimeout {
            target: target.clone(),
            waited: started.elapsed(),
            holder_remaining: None,
            source: None,
        }
    }
}

/// How long to wait for a lock that another owner holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// One attempt.
    Not,
    /// At most this long.
    AtMost(Duration),
    /// Without a limit.
    Forever,
}

impl Wait {
    /// The user's limit, cut to [`LONGEST_WAIT`], which is longer than anyone waits.
    pub(crate) fn at_most(limit: Duration) -> Self {
        Self::AtMost(limit.min(LONGEST_WAIT))
    }

    /// Completes when the limit is over; never without one.
    pub(crate) async fn over(self, started: Instant) {
        match self.limit(started) {
            Some(limit) => tokio::time::sleep_until(limit).await,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn limit(self, from: Instant) -> Option<Instant> {
        match self {
            Self::Not => Some(from),
            Self::AtMost(limit) => Some(timer_after(from, limit)),
            Self::Forever => None,
        }
    }
}
