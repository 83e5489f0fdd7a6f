//! A release under way.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Held;
use crate::backend_error::Executed;
use crate::error::{LockError, LostCause, Phase};
use crate::request::{ReleaseOutcome, ReleaseRequest};
use crate::rw_lock::Loan;

/// A release under way. If its future is dropped, the reaper takes over.
pub(super) struct Release {
    pub(super) held: Option<Held>,
    /// A shutdown waits for it. Dropped last, after the reaper has taken over.
    pub(super) _under_way: TaskTrackerToken,
}

impl Release {
    pub(super) async fn finish(mut self, lost_before: Option<LostCause>) -> Result<(), LockError> {
        let held = self.held.as_ref().expect("set until the end of this call");
        let deadline = Instant::now() + held.services.call_timeout();
        let request = ReleaseRequest {
            target: held.state.target.clone(),
            owner: held.state.owner.clone(),
            permits: held.state.permits,
            deadline,
        };
        let mut pause = Duration::from_millis(5);
        let mut may_have_run = false;
        let outcome = loop {
            match held.services.release(&request).await {
                Ok(outcome) => break outcome,
                Err(source) => {
                    may_have_run |= source.executed() == Executed::Maybe;
                    if !source.is_transient() || Instant::now() + pause >= deadline {
                        // `self` still owns the hold: dropping it hands the rest to the reaper.
                        let target = held.state.target.clone();
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
        let held = self.held.take().expect("set until the end of this call");
        if held.state.late_attempt {
            held.reap();
        } else {
            Loan::returned_by(&held.state);
        }
        let cause = match (lost_before, outcome) {
            (Some(cause), _) => cause,
            (None, ReleaseOutcome::Released) => return Ok(()),
            // The first try did it; only its answer was lost.
            (None, ReleaseOutcome::NotHeld) if may_have_run => return Ok(()),
            (None, ReleaseOutcome::NotHeld) => LostCause::Missing,
        };
        Err(LockError::Lost {
            target: held.state.target.clone(),
            cause,
        })
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            held.reap();
        }
    }
}
