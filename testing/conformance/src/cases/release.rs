//! A release ends the owner's hold, and no other.

use locktopus_core::ReleaseOutcome;

use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::LONG;

/// A release through any client frees the lock at once.
pub async fn a_release_frees(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (one, two) = (ctx.owner(), ctx.owner());
    for _ in 0..3 {
        a.take(&one, LONG).await;
        b.give_back(&one).await;
        let state = a.state().await;
        Rule::Inspection.check(
            state.holder().is_none(),
            "a released lock is still shown as held",
        );
        b.take(&two, LONG).await;
        a.give_back(&two).await;
    }
}

/// A stranger's release does nothing.
pub async fn a_release_needs_the_owner(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (holder, stranger) = (ctx.owner(), ctx.owner());
    a.take(&holder, LONG).await;
    for client in [&a, &b] {
        let outcome = client.release(&stranger).await;
        Rule::Ownership.check(
            outcome == ReleaseOutcome::NotHeld,
            "a stranger's release was answered Released",
        );
    }
    b.refused(&stranger).await;
    a.holder(&holder).await;
    a.give_back(&holder).await;
}

/// Releasing a free lock is answered, and leaves no trace.
pub async fn a_release_of_nothing_is_not_held(ctx: Ctx) {
    let a = ctx.first().await;
    let nobody = ctx.owner();
    let outcome = a.release(&nobody).await;
    Rule::Ownership.check(
        outcome == ReleaseOutcome::NotHeld,
        "a lock that was never held was released",
    );
    Rule::Inspection.check(
        a.state().await.holder().is_none(),
        "releasing nothing created a lock",
    );
    let next = ctx.owner();
    a.take(&next, LONG).await;
    a.give_back(&next).await;
}
