//! Inspecting a lock changes nothing for anyone.

use std::time::Duration;

use tokio::time::timeout;

use super::permits::{clients, wants};
use super::totals::never;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, SLACK, until};

/// The client that finds returned permits announces them. A client that only inspects announces
/// nothing, so it must leave them for others to find.
pub async fn permits_that_come_back_are_announced_whoever_looked(ctx: Ctx) {
    let short = ctx.short();
    let (a, b) = clients(&ctx, 1).await;
    let mut attempt = wants(&a, &ctx.owner(), 1);
    attempt.lease = short;
    let _ = a.send(&attempt).await;
    let mut listener = b.subscribe().await;
    until(Rule::Lease, short, "a lease does not end", || async {
        a.state().await.available == Some(1) && a.number().await == Some(1)
    })
    .await;
    while timeout(Duration::from_millis(20), listener.next())
        .await
        .is_ok()
    {}
    let _ = (a.state().await, a.number().await);
    // A request for more than there are finds the returned permits and must announce them.
    never(&a, 2, Some(1)).await;
    Rule::Wakes.check(
        timeout(SLACK, listener.next()).await.is_ok(),
        "a permit that came back is announced to nobody after somebody has looked",
    );
    let mut next = wants(&b, &ctx.owner(), 1);
    next.lease = LONG;
    let _ = b.send(&next).await;
    let _ = b.release_of(&next).await;
}
