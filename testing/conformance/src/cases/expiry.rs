//! A lease lasts as long as requested, and no longer.

use std::time::Duration;

use locktopus_core::{AttemptOutcome, ExtendOutcome, ReleaseOutcome};
use tokio::time::Instant;

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, ROUNDING, until};

/// A lease that is not extended ends, and not early.
pub async fn a_lease_ends_by_itself_and_not_early(ctx: Ctx) {
    let short = ctx.short();
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (holder, next) = (ctx.owner(), ctx.owner());
    let sent = Instant::now();
    a.take(&holder, short).await;
    take_over(&b, &next, short).await;
    let lasted = sent.elapsed();
    Rule::Lease.check(
        lasted + ROUNDING >= short,
        format_args!("a lease of {short:?} ended after {lasted:?}"),
    );
    b.give_back(&next).await;
}

/// After its lease, every trace of a hold is gone.
pub async fn an_ended_hold_is_gone(ctx: Ctx) {
    let short = ctx.short();
    let a = ctx.first().await;
    let holder = ctx.owner();
    a.take(&holder, short).await;
    until(
        Rule::Lease,
        short,
        "an ended lease is shown as held",
        || async { a.state().await.holder().is_none() },
    )
    .await;
    let extended = a.extend(&holder, LONG).await;
    Rule::Ownership.check(
        extended == ExtendOutcome::Missing,
        format_args!("extending an ended lease was answered {extended:?}, not Missing"),
    );
    let released = a.release(&holder).await;
    Rule::Ownership.check(
        released == ReleaseOutcome::NotHeld,
        "an ended lease was released once more",
    );
    let next = ctx.owner();
    a.take(&next, LONG).await;
    a.give_back(&next).await;
}

/// A former holder can neither release nor extend the present hold.
pub async fn a_former_holder_cannot_touch_its_successor(ctx: Ctx) {
    let short = ctx.short();
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (former, present) = (ctx.owner(), ctx.owner());
    a.take(&former, short).await;
    take_over(&b, &present, short).await;
    let released = a.release(&former).await;
    Rule::Ownership.check(
        released == ReleaseOutcome::NotHeld,
        "a former holder released its successor's hold",
    );
    let extended = a.extend(&former, LONG * 4).await;
    Rule::Ownership.check(
        extended == ExtendOutcome::TakenOver,
        format_args!("a former holder's extension was answered {extended:?}, not TakenOver"),
    );
    let left = b.remaining(&present).await;
    Rule::Ownership.check(
        left <= LONG + ROUNDING,
        "a former holder extended its successor's lease",
    );
    b.give_back(&present).await;
}

/// Leases of a day and of a few milliseconds both last as requested; at a quorum, the short one is
/// longer.
pub async fn leases_of_any_length(ctx: Ctx) {
    let a = ctx.first().await;
    let shortest = match ctx.is_quorum() {
        true => ctx.short(),
        false => locktopus_core::MIN_LEASE,
    };
    let day = Duration::from_secs(24 * 60 * 60);
    let (short, long) = (ctx.owner(), ctx.owner());
    a.take(&short, shortest).await;
    until(
        Rule::Lease,
        shortest,
        "the shortest lease does not end",
        || async { a.state().await.holder().is_none() },
    )
    .await;
    a.take(&long, day).await;
    let left = a.remaining(&long).await;
    Rule::Lease.check(
        left <= day + ROUNDING && left > day - Duration::from_secs(60),
        format_args!("of a lease of a day, {left:?} is left"),
    );
    a.give_back(&long).await;
}

/// A lock that an operator deleted is missing, and free.
pub async fn a_deleted_lock_is_missing(ctx: Ctx) {
    let a = ctx.first().await;
    let (holder, next) = (ctx.owner(), ctx.owner());
    a.take(&holder, LONG).await;
    if !ctx.wipe().await {
        a.give_back(&holder).await;
        return;
    }
    let extended = a.extend(&holder, LONG).await;
    Rule::Ownership.check(
        extended == ExtendOutcome::Missing,
        format_args!("extending a deleted lock was answered {extended:?}, not Missing"),
    );
    a.take(&next, LONG).await;
    a.give_back(&next).await;
}

/// Tries until the holder's lease has ended.
pub(super) async fn take_over(client: &Client, next: &locktopus_core::OwnerId, short: Duration) {
    until(Rule::Lease, short, "a lease does not end", || async {
        matches!(
            client.attempt(next, LONG).await,
            AttemptOutcome::Granted { .. }
        )
    })
    .await;
}
