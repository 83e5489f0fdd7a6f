//! Waits for a condition, with a limit and a reason if it is not met.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::topology::error::TopologyError;

/// How long a start may take.
pub(crate) const START: Duration = Duration::from_secs(60);

const EVERY: Duration = Duration::from_millis(15);

/// Repeats `look` until it succeeds. The last refusal becomes part of the error.
pub(crate) async fn until<T, F, Fut>(
    what: impl FnOnce() -> String + Send,
    within: Duration,
    mut look: F,
) -> Result<T, TopologyError>
where
    F: FnMut() -> Fut + Send,
    Fut: Future<Output = Result<T, String>> + Send,
    T: Send,
{
    let deadline = Instant::now() + within;
    loop {
        let last_seen = match look().await {
            Ok(value) => return Ok(value),
            Err(reason) => reason,
        };
        if Instant::now() >= deadline {
            return Err(TopologyError::NotReached {
                what: what(),
                within,
                last_seen,
            });
        }
        sleep(EVERY).await;
    }
}
