//! How a lock is acquired, from top to bottom.
//!
//! | file | step |
//! |---|---|
//! | `mod` | begins: within the process if others of it hold the lock or wait for it, else at the backend |
//! | `plan` | what was asked for, checked |
//! | `cohort`, `member`, `lead` | tasks of this process that want the same lock; one of them leads: it asks the backend for all |
//! | `local_queue`, `slot`, `hand_off` | their queue, without a network |
//! | `passing`, `kept_lease`, `lease_cache_options` | how they pass a lease on, and keep it |
//! | `attempts` | the one loop that takes locks from the backend: attempt, wait, attempt again |
//! | `waiting` | how that loop waits: pushed grants, wake-ups, heartbeats, polling |
//! | `local_progress` | what waiters of the local queue are told of their wait |
//! | `state` | what the loop may have at the backend, and who answers for it |
//! | `granted` | from a grant to a held lease |
//! | `engine` | what all acquisitions of one `Locktopus` share |
//! | `sync` | the locks and atomics of the local queue, which a test replaces by loom's |

mod attempts;
pub(crate) mod cohort;
mod engine;
mod granted;
mod hand_off;
mod kept_lease;
mod lead;
pub(crate) mod lease_cache_options;
mod local_progress;
mod local_queue;
mod member;
pub(crate) mod passing;
mod plan;
mod slot;
mod state;
mod sync;
mod waiting;

use std::sync::Arc;

use locktopus_contract::clock::BootInstant;
use locktopus_contract::{BackendErrorKind, OwnerId};
use tokio::time::Instant;

use self::attempts::Acquisition;
use self::cohort::{Asker, PATIENCE};
pub(crate) use self::engine::Engine;
use self::lead::{Lead, Stop};
pub(crate) use self::plan::{Plan, Wait};
use self::state::AcquisitionState;
use crate::engine::error::LockError;
use crate::engine::holding::held::Held;
use crate::engine::holding::lease::Lease;

/// Takes the lock, or says why not. `Ok(None)`: one attempt was allowed and somebody else holds the lock.
///
/// Within the process first, where others may hold the lock or be on the way to it; else from the backend.
pub(crate) async fn acquire(engine: &Arc<Engine>, plan: &Plan) -> Result<Option<Held>, LockError> {
    let waiting = engine.observer.waits(&plan.target);
    let answer = waiting.around(unobserved(engine, plan)).await;
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

async fn unobserved(engine: &Arc<Engine>, plan: &Plan) -> Result<Option<Held>, LockError> {
    let started = Instant::now();
    if cohort::serves(engine, plan) {
        return member::acquire(engine, plan, started).await;
    }
    alone(engine, plan, started).await
}

/// Takes the lock from the backend, for nobody else.
pub(crate) async fn alone(
    engine: &Arc<Engine>,
    plan: &Plan,
    started: Instant,
) -> Result<Option<Held>, LockError> {
    // Boxed: those who wait in a local queue of this process need no room for this.
    match Box::pin(from_backend(engine, plan, started, None)).await {
        Ok(held) => Ok(held),
        Err(Stop::Failed(error)) => Err(error),
        // Only those who lead others are deposed.
        Err(Stop::Deposed) => Ok(None),
    }
}

/// Takes the lock from the backend, as the leader of those who wait in this process if there is a `lead`. The wait
/// limit counts from `started`.
///
/// Not an asynchronous function: its future would have room for its arguments and for what is made of them.
pub(crate) fn from_backend<'a>(
    engine: &'a Arc<Engine>,
    plan: &'a Plan,
    started: Instant,
    lead: Option<Lead>,
) -> impl Future<Output = Result<Option<Held>, Stop>> + Send + use<'a> {
    let mut acquisition = Acquisition::new(engine, plan, started, lead);
    async move {
        tokio::select! {
            biased;
            () = engine.closing.cancelled() => Err(LockError::ShutDown.into()),
            () = plan.cancelled() => Err(plan.cancellation().into()),
            outcome = acquisition.run() => outcome.map_err(|stop| told(engine, stop)),
        }
    }
}

/// A shutdown that begins and ends on another thread while an attempt is on its way closes the backend under it.
fn told(engine: &Engine, stop: Stop) -> Stop {
    match stop {
        Stop::Failed(LockError::Backend { source, .. })
            if source.kind() == BackendErrorKind::Closed && engine.closing.is_cancelled() =>
        {
            LockError::ShutDown.into()
        }
        stop => stop,
    }
}
