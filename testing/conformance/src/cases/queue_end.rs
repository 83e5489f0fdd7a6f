//! Places expire on time, and dead waiters do not block the queue.

use std::time::Duration;

use futures_util::future::join_all;
use locktopus_core::AcquireAttempt;
use tokio::time::{Instant, timeout};

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, ROUNDING, SLACK, until};
use crate::waiter::Waiter;

/// A crowd that would take far longer than a case if its members were waited for one by one.
const CROWD: usize = 100;
/// A lease long enough for others to queue meanwhile, if requests are answered at once.
const ENOUGH: Duration = Duration::from_secs(3);

/// A place that is not repeated is kept as long as requested, and no longer.
pub async fn a_place_lapses_and_not_early(ctx: Ctx) {
    let short = ctx.short();
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (holder, silent) = (ctx.owner(), ctx.owner());
    a.take(&holder, LONG).await;
    let sent = Instant::now();
    let _ = b.send(&mortal(&b, &silent, short)).await;
    let shown = a.state().await.position(&silent).is_some();
    Rule::Queue.check(
        shown || sent.elapsed() > short,
        "a place that was just given is not shown",
    );
    until(
        Rule::Queue,
        short,
        "a place that is not repeated does not lapse",
        || async { a.state().await.position(&silent).is_none() },
    )
    .await;
    let kept = sent.elapsed();
    Rule::Queue.check(
        kept + ROUNDING >= short,
        format_args!("a place for {short:?} was kept for {kept:?}"),
    );
    a.give_back(&holder).await;
    let next = ctx.owner();
    a.take(&next, LONG).await;
    a.give_back(&next).await;
}

/// A repeated place outlasts its first expiry.
pub async fn a_repeated_place_stays(ctx: Ctx) {
    let short = ctx.short();
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    let mut attempt = b.attempt_of(&ctx.owner(), LONG);
    attempt.place = Some(short * 2);
    let begun = Instant::now();
    let mut first = Waiter::join_with(&b, attempt).await;
    let second = Waiter::join(&a, &ctx.owner()).await;
    while begun.elapsed() < short * 3 {
        let sent = Instant::now();
        Rule::Queue.check(first.repeat().await.is_none(), "a held lock was granted");
        // On a machine that stopped for that long, the place may have expired.
        let shown = (first.position().await, second.position().await);
        Rule::Queue.check(
            shown == (Some(0), Some(1)) || sent.elapsed() + short / 4 > short * 2,
            format_args!("repeated in time, the places shown are {shown:?}"),
        );
        tokio::time::sleep(short / 4).await;
    }
    let _ = second.leaves().await;
    let _ = first.leaves().await;
    a.give_back(&holder).await;
}

/// A silent waiter holds up those behind it no longer than its place and its lease.
pub async fn a_dead_waiter_is_passed(ctx: Ctx) {
    passed(&ctx, 1).await;
}

/// A hundred of them do not either: they expire together, not one after the other.
pub async fn many_dead_waiters_are_passed_together(ctx: Ctx) {
    passed(&ctx, CROWD).await;
}

async fn passed(ctx: &Ctx, count: usize) {
    let short = ctx.short();
    let slack = ctx.slack();
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    let dead: Vec<_> = (0..count)
        .map(|_| mortal(&b, &ctx.owner(), short))
        .collect();
    join_all(dead.iter().map(|attempt| b.send(attempt))).await;
    let mut waiter = Waiter::join(&a, &ctx.owner()).await;
    a.give_back(&holder).await;
    let begun = Instant::now();
    // A dead waiter may get the lock just before its place expires; then its lease counts, too.
    let bound = short * 2;
    while waiter.repeat().await.is_none() {
        Rule::Queue.check(
            begun.elapsed() < bound + slack,
            format_args!("{count} dead waiters hold up a live one for more than {bound:?}"),
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    waiter.gives_back().await;
}

/// A lease ends while waiters are queued, and the first gives up without checking. The next is
/// notified, as after a release, and need not find out by polling.
pub async fn a_head_that_leaves_a_free_lock_lets_the_next_in(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let lease = held_for_a_while(&ctx, &a).await;
    let first = Waiter::join(&a, &ctx.owner()).await;
    let mut second = Waiter::join(&b, &ctx.owner()).await;
    ended(&a, lease).await;
    let _ = first.leaves().await;
    second.handed().await;
    second.gives_back().await;
}

/// The only queued waiter gives up in the same way: waiters without a place are notified.
pub async fn the_last_that_leaves_a_free_lock_tells_the_others(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let lease = held_for_a_while(&ctx, &a).await;
    let last = Waiter::join(&a, &ctx.owner()).await;
    ended(&a, lease).await;
    let mut other = b.subscribe().await;
    let _ = last.leaves().await;
    Rule::Wakes.check(
        timeout(SLACK, other.next()).await.is_ok(),
        "the queue of a free lock became empty, and nobody was told",
    );
    let next = ctx.owner();
    b.take(&next, LONG).await;
    b.give_back(&next).await;
}

/// Acquires the lock with a lease long enough for others to queue on a busy machine too.
async fn held_for_a_while(ctx: &Ctx, client: &Client) -> Duration {
    let (owner, begun) = (ctx.owner(), Instant::now());
    client.take(&owner, LONG).await;
    client.give_back(&owner).await;
    let lease = ENOUGH.max(begun.elapsed() * 10);
    client.take(&ctx.owner(), lease).await;
    lease
}

/// Polls until the lock is not held any more.
async fn ended(client: &Client, lease: Duration) {
    until(Rule::Lease, lease, "a lease does not end", || async {
        client.state().await.holders.is_empty()
    })
    .await;
}

/// Queues once, for a short lease, and then stays silent.
fn mortal(client: &Client, owner: &locktopus_core::OwnerId, short: Duration) -> AcquireAttempt {
    let mut attempt = client.attempt_of(owner, short);
    attempt.place = Some(short);
    attempt
}
