//! How a task asks for a lock: with no limit, for a limited time, without waiting, or in a future
//! that is dropped.

use std::time::Duration;

use locktopus_core::{AnyGuard, LockError, LockRequest, WaitStrategy};
use tokio::time::timeout;

use crate::held::Held;
use crate::pace::millis;
use crate::plan::{Act, Strategy, Wait};

/// Requests a lock the way the act says.
pub(crate) async fn asked<G>(request: LockRequest<G>, act: &Act) -> Result<Option<Held>, LockError>
where
    G: AnyGuard + Into<Held> + Send + 'static,
{
    let request = request.strategy(strategy(act.strategy));
    let request = match act.fixed_lease {
        Some(lease) => request.fixed_lease(millis(lease)),
        None => request,
    };
    match act.wait {
        Wait::Try => Ok(request.try_acquire().await?.map(Into::into)),
        Wait::Forever => Ok(Some(request.acquire().await?.into())),
        Wait::AtMost(most) => busy(
            request
                .wait_at_most(millis(most))
                .acquire()
                .await
                .map(Into::into),
        ),
        Wait::Dropped(after) => within(after, request.acquire())
            .await
            .map(|held| held.map(Into::into)),
    }
}

/// How often a waiter polls.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// After an unannounced release the act polls within this time: its heartbeat and a quarter. In a
/// queue the heartbeat is at most a twelfth of the lease.
pub(crate) fn looks(lease: Duration, strategy: Strategy) -> Duration {
    let heartbeat = match strategy {
        Strategy::HandOff | Strategy::Confirm => HEARTBEAT.min(lease / 12),
        Strategy::Notify => HEARTBEAT,
        // It polls all the time anyway.
        Strategy::Poll => Duration::ZERO,
    };
    heartbeat * 5 / 4
}

fn strategy(strategy: Strategy) -> WaitStrategy {
    let heartbeat = HEARTBEAT;
    match strategy {
        Strategy::HandOff => WaitStrategy::default(),
        Strategy::Confirm => WaitStrategy::HandOff {
            heartbeat,
            confirm: true,
        },
        Strategy::Notify => WaitStrategy::Notify { heartbeat },
        Strategy::Poll => WaitStrategy::Poll {
            min: Duration::from_millis(5),
            max: Duration::from_millis(100),
        },
    }
}

/// Running out of time is not a failure.
pub(crate) fn busy(outcome: Result<Held, LockError>) -> Result<Option<Held>, LockError> {
    match outcome {
        Err(LockError::WaitTimeout { .. }) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Drops the future after a while.
pub(crate) async fn within<G>(
    after: u64,
    acquiring: impl Future<Output = Result<G, LockError>>,
) -> Result<Option<G>, LockError> {
    timeout(millis(after), acquiring).await.ok().transpose()
}
