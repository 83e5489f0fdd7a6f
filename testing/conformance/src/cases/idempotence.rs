//! Running any request twice has the effect of running it once.

use std::time::Duration;

use locktopus_core::ReleaseOutcome;

use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::LONG;

const SOME: Duration = Duration::from_secs(10);

/// The holder's repeated attempt through any client is the same grant: one hold, one token, one
/// release.
pub async fn a_repeated_attempt_is_one_grant(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (holder, next) = (ctx.owner(), ctx.owner());
    let mut token = a.take(&holder, LONG).await;
    for (client, another) in [(&a, false), (&b, true), (&a, true)] {
        let again = client.take(&holder, LONG).await;
        Rule::Idempotence.check(
            ctx.repeats(token, again, another),
            format_args!("a repeated attempt was granted with {again:?} instead of {token:?}"),
        );
        token = again;
    }
    let holds = a.holder(&holder).await.holds;
    Rule::Idempotence.check(
        holds == 1,
        format_args!("{holds} holds after one acquisition"),
    );
    a.give_back(&holder).await;
    Rule::Idempotence.check(
        b.state().await.holder().is_none(),
        "one release did not end a hold that was attempted more than once",
    );
    b.take(&next, LONG).await;
    b.give_back(&next).await;
}

/// A repeated attempt with a shorter lease keeps the longer one.
pub async fn a_repeated_attempt_never_shortens(ctx: Ctx) {
    let a = ctx.first().await;
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    a.take(&holder, SOME / 10).await;
    let left = a.remaining(&holder).await;
    Rule::Idempotence.check(
        left > SOME,
        format_args!("a repeated attempt shortened a lease of {LONG:?} to {left:?}"),
    );
    a.give_back(&holder).await;
}

/// `Granted` promises the requested lease, for a repeated attempt too.
pub async fn a_repeated_attempt_may_lengthen(ctx: Ctx) {
    let a = ctx.first().await;
    let holder = ctx.owner();
    a.take(&holder, SOME).await;
    a.take(&holder, LONG).await;
    let left = a.remaining(&holder).await;
    Rule::Lease.check(
        left > SOME,
        format_args!("an attempt for {LONG:?} was granted with {left:?} left"),
    );
    a.give_back(&holder).await;
}

/// The second release finds nothing, even if another owner holds the lock by then.
pub async fn a_repeated_release_is_not_held(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (holder, next) = (ctx.owner(), ctx.owner());
    a.take(&holder, LONG).await;
    a.give_back(&holder).await;
    let again = b.release(&holder).await;
    Rule::Idempotence.check(
        again == ReleaseOutcome::NotHeld,
        "a repeated release was answered Released",
    );
    b.take(&next, LONG).await;
    let again = a.release(&holder).await;
    Rule::Idempotence.check(
        again == ReleaseOutcome::NotHeld,
        "a repeated release was answered Released",
    );
    b.holder(&next).await;
    b.give_back(&next).await;
}
