//! Queueing, as users of `Locktopus` see it.

use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::join_all;
use locktopus_core::{CancellationToken, LockError, LockRequest, WaitStrategy};
use tokio::time::timeout;

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{HEARTBEAT, LONG, SLACK, until};

/// Waiters get the lock in order of arrival.
pub async fn waiters_are_served_in_order(ctx: Ctx) {
    let slack = ctx.slack();
    // Each has a `Locktopus` of its own: waiters of one may pass the lock to each other.
    let locks = join_all((0..6).map(|i| ctx.locks(i))).await;
    let observer = ctx.first().await;
    let holder = ctx.owner();
    observer.take(&holder, LONG).await;
    let served = Mutex::new(Vec::new());
    let waits = async {
        join_all((0..6).zip(&locks).map(|(i, locks)| {
            let (request, served, observer) = (ctx.request(locks), &served, &observer);
            async move {
                queued(observer, i).await;
                let guard = Rule::Api.ok(request.acquire().await, "waiting for a turn");
                served.lock().expect("no task panics here").push(i);
                Rule::Api.ok(guard.release().await, "a release");
            }
        }))
        .await;
    };
    let releases = async {
        queued(&observer, 6).await;
        all_listen(&ctx, 6).await;
        observer.give_back(&holder).await;
    };
    let done = timeout(slack * 9, async { tokio::join!(waits, releases) }).await;
    Rule::HandOff.check(done.is_ok(), "waiters in a queue do not get their turns");
    let served = served.into_inner().expect("no task panics here");
    Rule::Queue.check(
        served == [0, 1, 2, 3, 4, 5],
        format_args!("waiters were served in the order {served:?}"),
    );
}

/// Waits until `count` waiters are queued. They may come one after the other.
pub(super) async fn queued(lock: &Client, count: u32) {
    until(
        Rule::Queue,
        SLACK * count,
        "a waiter does not get into the queue",
        || async { lock.state().await.waiters.len() >= count as usize },
    )
    .await;
}

/// Waits until the clients of all waiters listen. A release skips a queued waiter that does not
/// listen, and leaves it its place. A client's first subscription takes as long as connecting.
async fn all_listen(ctx: &Ctx, waiters: usize) {
    if !ctx.wakes().await {
        return;
    }
    for i in 0..waiters {
        let (backend, target) = (ctx.backend(i).await, ctx.target());
        until(
            Rule::Queue,
            Duration::ZERO,
            "a waiter in the queue does not listen",
            || async { backend.listen(&target).is_some() },
        )
        .await;
    }
}

/// Waiters in the queue, waiters that need a wake-up and polling waiters all get their turn.
pub async fn every_strategy_gets_its_turn(ctx: Ctx) {
    let locks = [ctx.locks(0).await, ctx.locks(1).await];
    let guard = Rule::Api.ok(ctx.request(&locks[0]).acquire().await, "acquiring");
    let strategies = [
        WaitStrategy::Notify {
            heartbeat: HEARTBEAT,
        },
        WaitStrategy::HandOff {
            heartbeat: HEARTBEAT,
            confirm: true,
        },
        WaitStrategy::Poll {
            min: Duration::from_millis(2),
            max: Duration::from_millis(20),
        },
        WaitStrategy::HandOff {
            heartbeat: HEARTBEAT,
            confirm: false,
        },
    ];
    let waits = strategies.into_iter().enumerate().map(|(i, strategy)| {
        let request = ctx.request(&locks[i % 2]).strategy(strategy);
        takes_its_turn(request, strategy, ctx.slack())
    });
    let release = async {
        ctx.let_it_act(Duration::from_millis(50)).await;
        Rule::Api.ok(guard.release().await, "a release");
    };
    tokio::join!(join_all(waits), release);
}

async fn takes_its_turn(request: LockRequest, strategy: WaitStrategy, slack: Duration) {
    let Ok(guard) = timeout(slack, request.acquire()).await else {
        Rule::Wakes.broken(format_args!("no turn within {slack:?} for {strategy:?}"))
    };
    let guard = Rule::Api.ok(guard, "acquiring");
    Rule::Api.ok(guard.ensure_valid(), "a lock that was just taken");
    Rule::Api.ok(guard.release().await, "a release");
}

/// A pushed grant and a confirmed one both match the store: same owner, same token, a new lease.
pub async fn a_confirmed_grant_is_a_grant(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let observer = ctx.first().await;
    for confirm in [false, true] {
        let guard = Rule::Api.ok(ctx.request(&a).acquire().await, "acquiring");
        let before = guard.token();
        let strategy = WaitStrategy::HandOff {
            heartbeat: HEARTBEAT,
            confirm,
        };
        let waiter = tokio::spawn(ctx.request(&b).strategy(strategy).into_future());
        queued(&observer, 1).await;
        Rule::Api.ok(guard.release().await, "a release");
        let Ok(Ok(guard)) = timeout(slack, waiter).await else {
            Rule::HandOff.broken("the first in the queue did not get the released lock")
        };
        let guard = Rule::Api.ok(guard, "acquiring");
        let shown = observer.remaining(guard.owner_id()).await;
        Rule::Lease.check(
            shown > LONG,
            format_args!("of a lease handed over just now, {shown:?} is left"),
        );
        if ctx.flavour().has_tokens() {
            let last = observer.state().await.last_token;
            Rule::Tokens.check(
                // A guard's token may be the first of several that its process reserved.
                last >= guard.token() && guard.token() > before,
                format_args!(
                    "after {before:?} a guard has {:?}, the store {last:?}",
                    guard.token()
                ),
            );
        }
        Rule::Api.ok(guard.release().await, "a release");
    }
}

/// A cancelled or dropped waiter does not block those behind it.
pub async fn a_wait_that_ends_lets_the_next_one_in(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let c = ctx.locks(1).await;
    let (observer, holder) = (ctx.first().await, ctx.owner());
    observer.take(&holder, LONG).await;
    let token = CancellationToken::new();
    let cancelled = ctx.request(&a).cancel_on(token.clone());
    let cancelled = tokio::spawn(cancelled.into_future());
    queued(&observer, 1).await;
    let dropped = tokio::spawn(ctx.request(&b).into_future());
    queued(&observer, 2).await;
    let last = tokio::spawn(ctx.request(&c).into_future());
    queued(&observer, 3).await;
    dropped.abort();
    drop(dropped.await);
    token.cancel();
    let ended = timeout(slack, cancelled).await;
    Rule::Api.check(
        matches!(ended, Ok(Ok(Err(LockError::Cancelled { .. })))),
        format_args!("a cancelled wait ended with {ended:?}"),
    );
    until(
        Rule::CancelSafety,
        Duration::ZERO,
        "a waiter that is gone keeps its place",
        || async { observer.state().await.waiters.len() == 1 },
    )
    .await;
    observer.give_back(&holder).await;
    let Ok(Ok(guard)) = timeout(slack, last).await else {
        Rule::HandOff.broken("waiters that are gone took the turn of one that is not")
    };
    Rule::Api.ok(
        Rule::Api.ok(guard, "acquiring").release().await,
        "a release",
    );
}
