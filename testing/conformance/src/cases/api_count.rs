//! Semaphores and latches, as users of `Locktopus` see them.

use std::time::Duration;

use locktopus_core::{CancellationToken, LockError, Locktopus, Semaphore};
use tokio::time::{Instant, timeout};

use super::api_queue::queued;
use crate::ctx::Ctx;
use crate::flavour::Flavour;
use crate::rule::Rule;
use crate::timing::until;

/// A semaphore of `permits`, through two clients.
async fn semaphores(ctx: &Ctx, permits: u32) -> (Semaphore, Semaphore) {
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let of = |locks: &Locktopus| match ctx.flavour() {
        Flavour::Permits => locks.permit_semaphore(ctx.name()),
        _ => locks.semaphore(ctx.name()),
    };
    let (a, b) = (of(&a), of(&b));
    Rule::Api.ok(a.resize(permits).await, "resizing");
    (a, b)
}

async fn free(semaphore: &Semaphore, expected: i64, when: &str) {
    let free = Rule::Api.ok(semaphore.available().await, "counting");
    Rule::Permits.check(
        free == Some(expected),
        format_args!("{when}: {free:?} permits are free, not {expected}"),
    );
}

/// Permits are acquired, waited for and returned in portions.
pub async fn permits_are_shared_out(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = semaphores(&ctx, 3).await;
    let again = Rule::Api.ok(b.initialise(9).await, "initialising");
    Rule::Counter.check(!again, "permits were given twice");
    let two = Rule::Api.ok(a.permits(2).acquire().await, "taking permits");
    Rule::Api.check(
        two.permits() == 2 && two.token().is_none(),
        "a guard of two permits does not say so",
    );
    free(&b, 1, "two of three are held").await;
    let tried = Rule::Api.ok(b.permits(2).try_acquire().await, "a try");
    Rule::Permits.check(tried.is_none(), "more permits were had than there are");
    let one = Rule::Api.ok(b.permits(1).try_acquire().await, "a try");
    let one = one.unwrap_or_else(|| Rule::Permits.broken("a free permit was not to be had"));
    let observer = ctx.first().await;
    let waiting = tokio::spawn(b.permits(3).into_future());
    queued(&observer, 1).await;
    Rule::Api.ok(two.release().await, "a release");
    Rule::Permits.check(!waiting.is_finished(), "three permits of two were had");
    Rule::Api.ok(one.release().await, "a release");
    let Ok(Ok(three)) = timeout(slack, waiting).await else {
        Rule::HandOff.broken("permits came back and the waiter did not get them")
    };
    let three = Rule::Api.ok(three, "taking permits");
    free(&a, 0, "all three are held").await;
    Rule::Api.ok(three.release().await, "a release");
    free(&a, 3, "after all").await;
}

/// A waiter for drained permits gets them when they are put back.
pub async fn a_waiter_gets_permits_that_are_given(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = semaphores(&ctx, 3).await;
    let observer = ctx.first().await;
    let drained = Rule::Api.ok(a.drain().await, "draining");
    Rule::Counter.check(drained == 3, format_args!("{drained} were drained of 3"));
    let waiting = tokio::spawn(b.permits(3).into_future());
    queued(&observer, 1).await;
    let added = Rule::Api.ok(a.add(3).await, "adding");
    Rule::Counter.check(added == 3, format_args!("0 and 3 permits are {added}"));
    let Ok(Ok(guard)) = timeout(slack, waiting).await else {
        Rule::HandOff.broken("permits were added and the waiter did not get them")
    };
    let guard = Rule::Api.ok(guard, "taking permits");
    let drained = Rule::Api.ok(a.drain().await, "draining");
    Rule::Counter.check(drained == 0, format_args!("{drained} were drained of none"));
    Rule::Api.ok(guard.release().await, "a release");
    let drained = Rule::Api.ok(b.drain().await, "draining");
    Rule::Counter.check(drained == 3, format_args!("{drained} were drained of 3"));
    free(&a, 0, "after a drain").await;
}

/// Requesting permits of a semaphore without a number, or more permits than exist, is an error at
/// once, however they are requested.
pub async fn permits_that_there_are_not_are_an_error(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = semaphores(&ctx, 2).await;
    let all = Rule::Api.ok(a.permits(2).acquire().await, "taking permits");
    Rule::Api.ok(all.release().await, "a release");
    told(slack, &b, 3, Some(2)).await;
    Rule::Api.ok(a.delete().await, "deleting");
    told(slack, &b, 1, None).await;
}

async fn told(slack: Duration, semaphore: &Semaphore, permits: u32, total: Option<u64>) {
    let tried = semaphore.permits(permits).try_acquire().await.map(drop);
    let waited = timeout(slack, semaphore.permits(permits).acquire()).await;
    let Ok(waited) = waited else {
        Rule::Permits.broken("permits that there are not are waited for")
    };
    let while_waited = semaphore.permits(permits).wait_at_most(slack * 10);
    let Ok(briefly) = timeout(slack, while_waited.acquire()).await else {
        Rule::Permits.broken("permits that there are not are waited for")
    };
    for answer in [tried, waited.map(drop), briefly.map(drop)] {
        let told = answer.as_ref().err().and_then(LockError::too_few_permits);
        let right = told.is_some_and(|told| (told.asked, told.total) == (permits, total));
        let busy = answer.as_ref().is_err_and(LockError::is_busy);
        Rule::Permits.check(
            right && !busy,
            format_args!("{permits} permits of {total:?} were answered {answer:?}"),
        );
    }
}

/// A dropped or cancelled wait takes no permits and blocks no other waiter.
pub async fn a_wait_for_permits_can_be_dropped(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = semaphores(&ctx, 2).await;
    let observer = ctx.first().await;
    let one = Rule::Api.ok(a.permits(1).acquire().await, "taking permits");
    let token = CancellationToken::new();
    let cancelled = b.permits(2).cancel_on(token.clone());
    let cancelled = tokio::spawn(cancelled.into_future());
    queued(&observer, 1).await;
    let dropped = tokio::spawn(b.permits(2).into_future());
    queued(&observer, 2).await;
    token.cancel();
    dropped.abort();
    drop(dropped.await);
    let ended = timeout(slack, cancelled).await;
    Rule::Api.check(
        matches!(ended, Ok(Ok(Err(LockError::Cancelled { .. })))),
        format_args!("a cancelled wait ended with {ended:?}"),
    );
    let small = timeout(slack, b.permits(1).acquire()).await;
    let Ok(small) = small else {
        Rule::CancelSafety.broken("a permit is free, and those who waited for two are in the way")
    };
    Rule::Api.ok(
        Rule::Api.ok(small, "taking permits").release().await,
        "a release",
    );
    drop(one);
    until(
        Rule::Permits,
        Duration::ZERO,
        "permits of dropped guards and waits do not come back",
        || async { Rule::Api.ok(a.available().await, "counting") == Some(2) },
    )
    .await;
}

/// Permits of a dead holder return with the end of its lease, and go to waiters.
pub async fn permits_of_a_dead_holder_come_back(ctx: Ctx) {
    let short = ctx.short();
    let slack = ctx.slack();
    let (_, b) = semaphores(&ctx, 2).await;
    let dead = ctx.first().await;
    let mut attempt = dead.attempt_of(&ctx.owner(), short);
    attempt.permits = 2;
    let _ = dead.send(&attempt).await;
    let guard = timeout(short + slack, b.permits(2).acquire()).await;
    let Ok(guard) = guard else {
        Rule::Api.broken("the waiter did not get the permits of a dead holder")
    };
    Rule::Api.ok(
        Rule::Api.ok(guard, "taking permits").release().await,
        "a release",
    );
    free(&b, 2, "after all").await;
}

/// All waiters of a latch return when it reaches zero, and later ones return at once.
pub async fn a_latch_is_waited_for(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let (one, two) = (a.latch(ctx.name()), b.latch(ctx.name()));
    let set = Rule::Api.ok(one.initialise(2).await, "setting a latch");
    Rule::Counter.check(set, "a fresh latch was not set");
    let waits: Vec<_> = [&one, &two, &two]
        .map(|latch| {
            tokio::spawn(
                latch
                    .wait()
                    .heartbeat(Duration::from_secs(50))
                    .into_future(),
            )
        })
        .into();
    // Long enough for them to listen. They do not miss an earlier message either.
    ctx.let_it_act(Duration::from_millis(50)).await;
    let left = Rule::Api.ok(two.count_down().await, "counting down");
    Rule::Counter.check(left == 1, format_args!("{left} are left of 2 after 1"));
    ctx.let_it_act(Duration::from_millis(20)).await;
    Rule::Api.check(
        waits.iter().all(|wait| !wait.is_finished()),
        "a wait ended before the latch was at zero",
    );
    Rule::Api.ok(one.count_down().await, "counting down");
    for wait in waits {
        let done = timeout(slack, wait).await;
        Rule::Wakes.check(
            matches!(done, Ok(Ok(Ok(_)))),
            format_args!("a latch is at zero, and a wait for it ended with {done:?}"),
        );
    }
    let done = timeout(slack, two.wait().into_future()).await;
    Rule::Api.check(matches!(done, Ok(Ok(_))), "an open latch is waited for");
    let count = Rule::Api.ok(two.count().await, "reading a latch");
    Rule::Counter.check(count == 0, format_args!("an open latch is at {count}"));
}

/// A wait for a latch ends on time or when cancelled, and leaves the latch unchanged.
pub async fn a_wait_for_a_latch_ends(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let (one, two) = (a.latch(ctx.name()), b.latch(ctx.name()));
    Rule::Api.ok(one.initialise(1).await, "setting a latch");
    let limit = Duration::from_millis(100);
    let begun = Instant::now();
    let waited = timeout(slack, two.wait().at_most(limit).into_future()).await;
    Rule::Api.check(
        matches!(waited, Ok(Err(LockError::WaitTimeout { .. }))) && begun.elapsed() >= limit,
        format_args!("a wait of at most {limit:?} ended with {waited:?}"),
    );
    let token = CancellationToken::new();
    token.cancel();
    let waited = timeout(slack, two.wait().cancel_on(token).into_future()).await;
    Rule::Api.check(
        matches!(waited, Ok(Err(LockError::Cancelled { .. }))),
        format_args!("a cancelled wait ended with {waited:?}"),
    );
    let count = Rule::Api.ok(one.count().await, "reading a latch");
    Rule::Counter.check(count == 1, format_args!("waiting left a latch at {count}"));
    let gone = Rule::Api.ok(two.delete().await, "deleting a latch");
    Rule::Counter.check(gone, "a latch was not deleted");
}
