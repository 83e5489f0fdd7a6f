//! Notes on the backend about which runs have begun.
//!
//! Each run has a name of its own. The instance that takes the mutex of that name begins the run.
//! The backend remembers the last fencing token of a name after the mutex is free again. If there
//! is one, the run has begun. So two instances need not agree on the time, and no instance has to
//! write a note that could arrive too late.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use locktopus_core::{
    LockError, LockRequest, LockState, LockTarget, Locktopus, Owner, TokenRetention,
};

/// The notes about the runs of one job.
#[derive(Debug)]
pub(super) struct BegunRuns {
    locks: Locktopus,
    job: String,
    /// The job's mutex.
    target: LockTarget,
    /// How long the notes are kept.
    keep: Duration,
}

impl BegunRuns {
    /// Notes that matter for as long as `remembered`.
    pub(super) fn new(
        locks: Locktopus,
        job: String,
        target: LockTarget,
        remembered: Duration,
    ) -> Self {
        let keep = kept_for(remembered);
        Self {
            locks,
            job,
            target,
            keep,
        }
    }

    /// Whether the run due at this time has begun.
    pub(super) async fn has(&self, run: SystemTime) -> Result<bool, LockError> {
        let state = self.mark(run).inspect().await;
        Ok(was_used(&state.map_err(|error| self.of_job(error))?))
    }

    /// Notes that the run due at this time has begun. False if it has already begun, or another
    /// instance is noting it right now.
    pub(super) async fn note(&self, run: SystemTime) -> Result<bool, LockError> {
        let mark = self.mark(run).try_acquire().await;
        let Some(mark) = mark.map_err(|error| self.of_job(error))? else {
            return Ok(false);
        };
        if let Err(error) = mark.release().await {
            tracing::debug!(job = self.job, %error, "the mark of a run is free when its lease ends");
        }
        Ok(true)
    }

    pub(super) fn backend(&self) -> &'static str {
        self.locks.backend().name
    }

    /// The error as one of the job, whose name the user knows.
    fn of_job(&self, mut error: LockError) -> LockError {
        if let LockError::Backend { target, .. } = &mut error {
            *target = self.target.clone();
        }
        error
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

/// How long the mark of a run is kept. If clocks differ, the fastest instance notes the run, and
/// the slowest asks about it until the run is too old by its own clock. The job itself must not be
/// remembered for longer than its runs: a job that is not known to have run has missed nothing.
fn kept_for(remembered: Duration) -> Duration {
    (remembered * 2 + TokenRetention::SHORTEST).min(TokenRetention::LONGEST)
}

/// Whether the mutex is or was held, as far as the backend remembers.
pub(super) fn was_used(state: &LockState) -> bool {
    state.last_token.is_some() || state.holder().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_there_until_the_last_clock_asks_for_it() {
        let (minute, longest) = (TokenRetention::SHORTEST, TokenRetention::LONGEST);
        for remembered in [minute, minute * 11, longest / 2 - minute] {
            assert!(kept_for(remembered) > remembered * 2);
        }
        // The longest time for a job. Its runs are kept for even longer.
        assert_eq!(kept_for(longest - minute), longest);
    }
}
