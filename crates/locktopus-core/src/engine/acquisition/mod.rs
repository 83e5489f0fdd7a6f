//! How a lock is acquired, from top to bottom.
//!
//! | file | step |
//! |---|---|
//! | `mod` | starts: in the process if others of it hold or want the lock, else at the backend |
//! | `plan` | the checked request |
//! | `cohort`, `member`, `lead` | tasks that want one lock; their leader asks the backend |
//! | `cohort_queue`, `stage` | their queue, as state without a lock, a clock or a task |
//! | `passing`, `kept_lease`, `lease_cache_options` | how they pass a lease on, and keep it |
//! | `attempts` | the one loop that takes locks from the backend: attempt, wait, attempt again |
//! | `waiting` | how that loop waits: pushed grants, wake-ups, heartbeats, polling |
//! | `local_progress` | progress reports to waiters of a cohort |
//! | `state` | what the loop may have at the backend, and who gives it back |
//! | `granted` | from a grant to a held lease |

mod attempts;
pub(crate) mod cohort;
mod cohort_queue;
mod granted;
mod kept_lease;
mod lead;
pub(crate) mod lease_cache_options;
mod local_progress;
mod member;
pub(crate) mod passing;
mod plan;
mod stage;
mod state;
mod waiting;

use std::sync::Arc;

use locktopus_contract::BackendErrorKind;
use locktopus_contract::clock::BootInstant;
use tokio::time::Instant;

use self::attempts::Acquisition;
use self::cohort::FETCH_TIMEOUT;
use self::lead::Stop;
use self::local_progress::LeaderAnswer;
use self::member::Member;
pub(crate) use self::plan::{Plan, Wait};
use self::state::{AcquisitionState, Cleanup};
use crate::engine::error::LockError;
use crate::engine::holding::hold::Hold;
use crate::engine::holding::lease::BackendLease;
use crate::engine::holding::services::Services;
use crate::engine::wait_progress::ProgressReporter;

/// Takes the lock, or says why not. `Ok(None)`: the plan allowed one attempt, and another owner
/// holds the lock.
///
/// Reports the wait to spans and metrics.
pub(crate) async fn acquire(
    services: &Arc<Services>,
    plan: &Plan,
) -> Result<Option<Hold>, LockError> {
    let waiting = services.observer.waits(&plan.target);
    let answer = waiting.around(member::acquire(services, plan)).await;
    match &answer {
        Ok(Some(held)) => {
            let turn = held.turn();
            turn.observed(waiting.granted(turn.token));
        }
        Ok(None) => waiting.busy(),
        Err(error) => waiting.failed(error),
    }
    answer
}

/// Takes the lock from the backend. With a `lead`, as the leader of its cohort, which continues
/// from `left_behind` by the previous leader. The wait limit counts from `started`.
///
/// Not an async function, because that would keep its arguments beside the acquisition.
pub(crate) fn from_backend<'a>(
    services: &'a Arc<Services>,
    plan: &'a Plan,
    started: Instant,
    lead: Option<Member>,
    left_behind: Option<Box<AcquisitionState>>,
) -> impl Future<Output = Result<Option<Hold>, Stop>> + Send + use<'a> {
    let mut acquisition = Acquisition::new(services, plan, started, lead, left_behind);
    async move {
        tokio::select! {
            biased;
            () = acquisition.services.closing.cancelled() => Err(LockError::ShutDown.into()),
            () = acquisition.plan.cancelled() => Err(acquisition.plan.cancellation().into()),
            outcome = acquisition.run() => outcome.map_err(|stop| as_shutdown(acquisition.services, stop)),
        }
    }
}

/// A shutdown on another thread may start and finish during an attempt, and close the backend under
/// it.
fn as_shutdown(services: &Services, stop: Stop) -> Stop {
    match stop {
        Stop::Failed(LockError::Backend { source, .. })
            if source.kind() == BackendErrorKind::Closed && services.closing.is_cancelled() =>
        {
            LockError::ShutDown.into()
        }
        stop => stop,
    }
}
