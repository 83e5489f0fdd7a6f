//! Waiting, as users of `Locktopus` see it.

use std::time::Duration;

use locktopus_core::{CancellationToken, LockError};
use tokio::time::{Instant, timeout};

use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, until};

/// `try_acquire` returns at once: `None` for a held lock, a guard for a free one.
pub async fn a_try_does_not_wait(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let tried = ctx.request(&a).try_acquire().await;
    let Some(guard) = Rule::Api.ok(tried, "a try") else {
        Rule::Api.broken("a free lock was not given to a try")
    };
    let started = Instant::now();
    let tried = Rule::Api.ok(ctx.request(&b).try_acquire().await, "a try");
    Rule::Exclusion.check(tried.is_none(), "a held lock was given to a try");
    Rule::Api.check(started.elapsed() < slack, "a try waited for the holder");
    Rule::Api.ok(guard.release().await, "a release");
    let again = Rule::Api.ok(ctx.request(&b).try_acquire().await, "a try");
    let guard = again.unwrap_or_else(|| Rule::Api.broken("a released lock is not free"));
    Rule::Api.ok(guard.release().await, "a release");
}

/// `wait_at_most` ends on time with `WaitTimeout`.
pub async fn a_wait_ends_in_time(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let guard = Rule::Api.ok(ctx.request(&a).acquire().await, "acquiring");
    let wait = Duration::from_millis(200);
    let started = Instant::now();
    let waited = ctx.request(&b).wait_at_most(wait).acquire().await;
    let took = started.elapsed();
    match waited {
        Err(LockError::WaitTimeout { waited, .. }) => Rule::Api.check(
            took >= wait && took < wait + slack && waited <= took,
            format_args!("a wait of at most {wait:?} took {took:?}"),
        ),
        other => Rule::Api.broken(format_args!("a wait ended with {other:?}, not WaitTimeout")),
    }
    Rule::Api.ok(guard.release().await, "a release");
}

/// A cancellation token ends a wait at once.
pub async fn a_cancelled_wait_ends(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let guard = Rule::Api.ok(ctx.request(&a).acquire().await, "acquiring");
    let token = CancellationToken::new();
    let wait = ctx.request(&b).cancel_on(token.clone()).acquire();
    let cancel = async {
        ctx.let_it_act(Duration::from_millis(100)).await;
        token.cancel();
    };
    let (waited, ()) = tokio::join!(timeout(slack, wait), cancel);
    let cancelled = matches!(waited, Ok(Err(LockError::Cancelled { .. })));
    Rule::Api.check(
        cancelled,
        format_args!("a cancelled wait ended with {waited:?}"),
    );
    Rule::Api.ok(guard.ensure_valid(), "the other's hold");
    Rule::Api.ok(guard.release().await, "a release");
}

/// A waiter without a limit gets the lock soon after its release, through a hint where hints exist.
pub async fn a_waiter_gets_the_lock(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    for _ in 0..3 {
        let guard = Rule::Api.ok(ctx.request(&a).acquire().await, "acquiring");
        let waiter = tokio::spawn(ctx.request(&b).into_future());
        ctx.let_it_act(Duration::from_millis(50)).await;
        Rule::Exclusion.check(!waiter.is_finished(), "the waiter did not wait");
        Rule::Api.ok(guard.release().await, "a release");
        let guard = timeout(slack, waiter).await;
        let Ok(Ok(guard)) = guard else {
            Rule::Wakes.broken(format_args!(
                "the waiter did not get the released lock within {slack:?}"
            ))
        };
        Rule::Api.ok(
            Rule::Api.ok(guard, "acquiring").release().await,
            "a release",
        );
    }
}

/// A waiter gets a dead holder's lock soon after the lease has ended, without any hint.
pub async fn a_waiter_gets_an_expired_lock(ctx: Ctx) {
    let slack = ctx.slack();
    let short = ctx.short();
    let (a, b) = (ctx.first().await, ctx.locks(1).await);
    let dead = ctx.owner();
    a.take(&dead, short).await;
    let guard = timeout(short + slack, ctx.request(&b).acquire()).await;
    let Ok(guard) = guard else {
        Rule::Api.broken("the waiter did not get the lock of a dead holder")
    };
    let guard = Rule::Api.ok(guard, "acquiring");
    Rule::Api.ok(guard.release().await, "a release");
}

/// A dropped waiter leaves the lock free, and leaves hints to other waiters.
pub async fn a_dropped_waiter_leaves_nothing(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let guard = Rule::Api.ok(ctx.request(&a).acquire().await, "acquiring");
    let first = tokio::spawn(ctx.request(&b).into_future());
    ctx.let_it_act(Duration::from_millis(50)).await;
    let second = tokio::spawn(ctx.request(&b).into_future());
    ctx.let_it_act(Duration::from_millis(50)).await;
    first.abort();
    Rule::Api.ok(guard.release().await, "a release");
    // It may have acquired the lock before it noticed.
    drop(first.await);
    let Ok(Ok(guard)) = timeout(slack, second).await else {
        Rule::CancelSafety.broken("a dropped waiter took its successor's turn")
    };
    Rule::Api.ok(
        Rule::Api.ok(guard, "acquiring").release().await,
        "a release",
    );
    until(
        Rule::CancelSafety,
        ctx.settling().await,
        "a dropped waiter left something behind",
        || async {
            let state = Rule::Api.ok(ctx.request(&a).inspect().await, "an inspection");
            b.background_tasks() == 0 && b.held() == 0 && state.holder().is_none()
        },
    )
    .await;
}

/// Ten waiters of two clients all get their turn.
pub async fn waiters_get_their_turns(ctx: Ctx) {
    let locks = [ctx.locks(0).await, ctx.locks(1).await];
    let guard = Rule::Api.ok(ctx.request(&locks[0]).acquire().await, "acquiring");
    let waiters = (0..10).map(|i| {
        let request = ctx.request(&locks[i % 2]).wait_at_most(LONG / 2);
        async move {
            let guard = Rule::Api.ok(request.acquire().await, "waiting for a turn");
            Rule::Api.ok(guard.release().await, "a release");
        }
    });
    let release = async {
        ctx.let_it_act(Duration::from_millis(50)).await;
        Rule::Api.ok(guard.release().await, "a release");
    };
    tokio::join!(futures_util::future::join_all(waiters), release);
}
