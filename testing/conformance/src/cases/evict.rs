//! An eviction ends every hold of any owner, and hands the lock on.

use locktopus_core::{ExtendOutcome, ReleaseOutcome};

use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, ROUNDING};
use crate::waiter::Waiter;

/// Every trace of the hold is gone, and the eviction returns its owner.
pub async fn an_eviction_ends_the_hold(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (holder, next) = (ctx.owner(), ctx.owner());
    for _ in 0..2 {
        a.take(&holder, LONG).await;
        let evicted = b.evict().await.evicted;
        Rule::Admin.check(
            evicted == [holder.clone()],
            format_args!("{evicted:?} are said to be evicted, not {holder:?}"),
        );
        Rule::Admin.check(
            a.state().await.holder().is_none(),
            "an evicted lock is still shown as held",
        );
        let extended = a.extend(&holder, LONG).await;
        Rule::Ownership.check(
            extended != ExtendOutcome::Extended,
            "an evicted holder extended its lease",
        );
        b.take(&next, LONG).await;
        let extended = a.extend(&holder, LONG * 4).await;
        Rule::Ownership.check(
            extended != ExtendOutcome::Extended && b.remaining(&next).await <= LONG + ROUNDING,
            "an evicted holder extended its lease, or its successor's",
        );
        let released = a.release(&holder).await;
        Rule::Ownership.check(
            released == ReleaseOutcome::NotHeld,
            "an evicted holder's release was answered Released",
        );
        b.holder(&next).await;
        b.give_back(&next).await;
    }
}

/// Evicting a free lock returns no holder and leaves it free.
pub async fn an_eviction_of_nothing_is_harmless(ctx: Ctx) {
    let a = ctx.first().await;
    let evicted = a.evict().await.evicted;
    Rule::Admin.check(
        evicted.is_empty() && a.state().await.holder().is_none(),
        format_args!("{evicted:?} were evicted from a free lock"),
    );
    let next = ctx.owner();
    a.take(&next, LONG).await;
    a.give_back(&next).await;
}

/// The first waiter gets the lock; the others keep their places.
pub async fn an_eviction_hands_on(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    a.take(&ctx.owner(), LONG).await;
    let mut first = Waiter::join(&b, &ctx.owner()).await;
    let mut second = Waiter::join(&a, &ctx.owner()).await;
    let _ = a.evict().await;
    first.handed().await;
    b.holder(first.owner()).await;
    Rule::Queue.check(
        second.position().await == Some(0),
        "an eviction took a waiter's place",
    );
    first.gives_back().await;
    second.handed().await;
    second.gives_back().await;
}

/// The evicted holder's token is not above the fence, and every later token is.
pub async fn an_eviction_fences(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (holder, next) = (ctx.owner(), ctx.owner());
    let mut attempt = a.attempt_of(&holder, LONG);
    attempt.tokens = 1000;
    let granted = a.send(&attempt).await;
    let locktopus_core::AttemptOutcome::Granted { token: Some(token) } = granted else {
        Rule::Tokens.broken(format_args!("a free lock was answered {granted:?}"))
    };
    let fence = b.evict().await.fence;
    let Some(fence) = fence else {
        Rule::Tokens.broken("an eviction says nothing about tokens")
    };
    Rule::Tokens.check(
        fence.get() >= token.get() + 999,
        format_args!("1000 tokens from {token} on were reserved, and the fence is {fence}"),
    );
    let then = b.take(&next, LONG).await;
    Rule::Tokens.check(
        then > Some(fence),
        format_args!("token {then:?} followed the fence {fence}"),
    );
    b.give_back(&next).await;
}
