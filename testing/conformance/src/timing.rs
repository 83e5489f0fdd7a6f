//! How long things may take in a case, and how long leases last.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::lasting::relies_on_no_lease;
use crate::rule::Rule;

/// A lease whose end a case waits for, on a nearby store; see [`Ctx::short`](crate::Ctx::short).
/// Long enough for a busy server in a container.
pub const SHORT: Duration = Duration::from_millis(400);
/// A lease that does not end while a case runs.
pub const LONG: Duration = Duration::from_secs(30);
/// Servers count whole milliseconds and may round.
pub(crate) const ROUNDING: Duration = Duration::from_millis(2);
/// How late things may happen on a busy machine, on a nearby store; see
/// [`Ctx::slack`](crate::Ctx::slack).
pub const SLACK: Duration = Duration::from_secs(3);

/// How often waiters poll: never while a case runs.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(50);

tokio::task_local! {
    /// How far away the store is, for helpers without a [`Ctx`](crate::Ctx). A case is one task.
    pub(crate) static DISTANCE: Duration;
}

/// Twenty round trips.
fn further() -> Duration {
    DISTANCE.try_with(|far| *far * 20).unwrap_or_default()
}

/// A lease that outlasts a case that makes hundreds of calls one after the other.
pub(crate) fn longest() -> Duration {
    LONG + DISTANCE.try_with(|far| *far * 1_000).unwrap_or_default()
}

/// Waits until `check` holds. Fails the case if it does not within `limit` and
/// [`Ctx::slack`](crate::Ctx::slack).
pub(crate) async fn until<F, Fut>(rule: Rule, limit: Duration, what: &str, mut check: F)
where
    F: FnMut() -> Fut + Send,
    Fut: Future<Output = bool> + Send,
{
    relies_on_no_lease();
    let end = Instant::now() + limit + SLACK + further();
    while !check().await {
        rule.check(
            Instant::now() < end,
            format_args!("{what}: not within {limit:?}"),
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
