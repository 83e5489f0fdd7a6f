//! Which runs were begun, on the backend.
//!
//! A run has a name of its own, and is begun by whoever takes the mutex of that name. The backend remembers the last fencing
//! token of a name after the mutex is free again: where there is one, the run was begun. So two instances need not agree
//! what time it is, and nothing has to be written that an instance could write too late.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::contract::lock_state::LockState;
use crate::engine::error::LockError;
use crate::handles::lock_request::LockRequest;
use crate::handles::locktopus::Locktopus;
use crate::handles::owner_handle::Owner;

/// The notes on the runs of one job.
#[derive(Debug)]
pub(super) struct Begun {
    locks: Locktopus,
    job: String,
    /// How long they are kept.
    keep: Duration,
}

impl Begun {
    pub(super) fn new(locks: Locktopus, job: String, keep: Duration) -> Self {
        Self { locks, job, keep }
    }

    /// Whether the run of this time was begun.
    pub(super) async fn has(&self, run: SystemTime) -> Result<bool, LockError> {
        Ok(was_used(&self.mark(run).inspect().await?))
    }

    /// Notes that the run of this time is begun; false if it was before, and is being noted at this moment.
    pub(super) async fn note(&self, run: SystemTime) -> Result<bool, LockError> {
        let Some(mark) = self.mark(run).try_acquire().await? else {
            return Ok(false);
        };
        if let Err(error) = mark.release().await {
            tracing::debug!(job = self.job, %error, "the mark of a run is free when its lease ends");
        }
        Ok(true)
    }

    fn mark(&self, run: SystemTime) -> LockRequest {
        let since = run.duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{}@{}", self.job, since.as_millis());
        self.locks
            .mutex(name)
            .owner(&Owner::new())
            .lease_cache(Duration::ZERO)
            .token_retention(self.keep)
    }
}

/// Whether anybody holds the mutex or did, as far as the backend remembers.
pub(super) fn was_used(state: &LockState) -> bool {
    state.last_token.is_some() || state.holder().is_some()
}
