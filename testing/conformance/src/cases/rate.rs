//! A rate limiter grants N permits in each period, and they return without a release.

use std::time::Duration;

use locktopus_core::RateLimiter;
use tokio::time::{Instant, timeout};

use super::api_queue::queued;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, ROUNDING, until};

/// The rate limiter of this case, through two clients.
async fn limiters(ctx: &Ctx, permits: u32, per: Duration) -> (RateLimiter, RateLimiter) {
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let (a, b) = (a.rate_limiter(ctx.name()), b.rate_limiter(ctx.name()));
    let free = Rule::Counter.ok(a.set_rate(permits, per).await, "setting a rate");
    let again = Rule::Counter.ok(b.initialise(permits + 1, LONG).await, "setting a rate");
    Rule::Counter.check(
        free == i64::from(permits) && !again,
        format_args!("of {permits} permits {free} are free, and set again: {again}"),
    );
    (a, b)
}

/// No period has more permits than the rate allows, and waiting for the next one takes no longer
/// than that.
pub async fn permits_come_back_after_a_period(ctx: Ctx) {
    let per = ctx.short();
    let (a, b) = limiters(&ctx, 2, per).await;
    let begun = Instant::now();
    for round in 1..=3 {
        for limiter in [&a, &b] {
            let taken = timeout(per + ctx.slack(), limiter.acquire()).await;
            let Ok(taken) = taken else {
                Rule::Permits.broken("a permit that came back was not to be had")
            };
            Rule::Permits.ok(taken, "taking a permit");
        }
        let (took, least) = (begun.elapsed(), per * (round - 1));
        let early = format!("{round} times two permits came within {took:?}");
        Rule::Permits.check(took + ROUNDING >= least, early);
    }
}

/// Clients that only wait are served in order, as soon as enough permits came back.
pub async fn waiters_are_handed_permits_in_order(ctx: Ctx) {
    let (a, b) = limiters(&ctx, 2, LONG).await;
    Rule::Permits.ok(a.acquire_many(2).await, "taking permits");
    let observer = ctx.bare(0).await;
    let (first, second) = (a.clone(), b.clone());
    let first = tokio::spawn(async move { first.acquire_many(2).await });
    queued(&observer, 1).await;
    let second = tokio::spawn(async move { second.acquire().await });
    queued(&observer, 2).await;
    let per = ctx.short();
    let begun = Instant::now();
    // Acquired permits come back within one new period from now.
    Rule::Counter.ok(b.set_rate(2, per).await, "changing a rate");
    let Ok(Ok(second)) = timeout(per * 2 + ctx.slack() * 2, second).await else {
        Rule::HandOff.broken("permits came back and the second waiter did not get one")
    };
    Rule::Permits.ok(second, "waiting for a permit");
    Rule::Queue.check(first.is_finished(), "the second waiter was served first");
    Rule::Permits.check(
        begun.elapsed() + ROUNDING >= per * 2,
        format_args!("two periods were over within {:?}", begun.elapsed()),
    );
}

/// A higher rate also serves waiters, and a waiter whose future is dropped leaves the queue. A
/// shorter period also applies to permits acquired before.
pub async fn a_higher_rate_serves_waiters(ctx: Ctx) {
    let (a, b) = limiters(&ctx, 1, LONG).await;
    Rule::Permits.ok(a.acquire().await, "taking a permit");
    let tried = Rule::Permits.ok(b.try_acquire().await, "a try");
    Rule::Permits.check(!tried, "more permits were had than there are");
    let observer = ctx.bare(0).await;
    let gone = tokio::spawn({
        let a = a.clone();
        async move { a.acquire().await }
    });
    queued(&observer, 1).await;
    gone.abort();
    until(
        Rule::CancelSafety,
        LONG,
        "a waiter that is gone stays",
        || async { observer.state().await.waiters.is_empty() },
    )
    .await;
    let waiting = tokio::spawn(async move { b.acquire().await });
    queued(&observer, 1).await;
    let free = Rule::Counter.ok(a.set_rate(2, LONG).await, "changing a rate");
    Rule::Counter.check(free == 1, format_args!("{free} of two permits are free"));
    let Ok(Ok(taken)) = timeout(ctx.slack(), waiting).await else {
        Rule::HandOff.broken("a higher rate did not serve the waiter")
    };
    Rule::Permits.ok(taken, "waiting for a permit");
    let per = ctx.short();
    let lower = Rule::Counter.ok(a.set_rate(1, per).await, "changing a rate");
    Rule::Counter.check(
        lower == -1,
        format_args!("{lower} permits are free, not -1"),
    );
    let what = "what was taken does not come back a new period after the rate was changed";
    until(Rule::Permits, per, what, || async {
        Rule::Counter.ok(a.available().await, "counting") == Some(1)
    })
    .await;
}
