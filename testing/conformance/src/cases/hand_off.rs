//! A release hands the lock to the first waiter at once, and notifies it.

use std::time::Duration;

use locktopus_core::ReleaseOutcome;
use tokio::time::Instant;

use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, ROUNDING};
use crate::waiter::Waiter;

/// Now and then a backend may leave a release to clients that cannot queue, and only tell the
/// waiter to check. It must hand on at least one of this many releases directly.
const ROUNDS: usize = 8;
/// As soon as a release is answered, the first waiter holds the lock. The token in its notification
/// is the one its repeated attempt gets, and newer than its last answer.
pub async fn a_release_makes_the_first_waiter_holder(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let mut pushed = 0;
    for _ in 0..ROUNDS {
        let holder = ctx.owner();
        a.take(&holder, LONG).await;
        let mut first = Waiter::join(&b, &ctx.owner()).await;
        let second = Waiter::join(&a, &ctx.owner()).await;
        let last_token = first.last_token;
        a.give_back(&holder).await;
        let state = a.state().await;
        let holds = state.holder().is_some_and(|h| h.owner == *first.owner());
        Rule::HandOff.check(
            holds || state.holder().is_none(),
            "a released lock went to somebody else than the first waiter",
        );
        Rule::HandOff.check(
            state.position(second.owner()) == Some(usize::from(!holds)),
            format_args!("after one release the queue is {:?}", state.waiters),
        );
        let handed = first.handed().await;
        if holds && handed.pushed {
            pushed += 1;
            Rule::HandOff.check(
                handed.token.is_some_and(|token| token.get() > last_token),
                format_args!("handed over with {:?}, after {last_token}", handed.token),
            );
            let again = first.repeat().await;
            let expected = handed.token.filter(|_| ctx.flavour().has_tokens());
            Rule::HandOff.check(
                again == Some(expected),
                format_args!(
                    "handed over with {:?}, its attempt says {again:?}",
                    handed.token
                ),
            );
        }
        let _ = second.leaves().await;
        first.gives_back().await;
        if pushed > 0 {
            return;
        }
    }
    Rule::HandOff.broken(format_args!("{ROUNDS} releases were not handed on"));
}

/// A hand-off starts the waiter's lease; its attempt does not.
pub async fn a_handed_lease_counts_in_full(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    let mut waiter = Waiter::join(&b, &ctx.owner()).await;
    ctx.let_it_act(Duration::from_millis(300)).await;
    let released = Instant::now();
    a.give_back(&holder).await;
    waiter.handed().await;
    let left = a.remaining(waiter.owner()).await;
    Rule::Lease.check(
        left + released.elapsed() + ROUNDING >= LONG && left <= LONG + ROUNDING,
        format_args!(
            "of a lease of {LONG:?} handed over {:?} ago, {left:?} is left",
            released.elapsed()
        ),
    );
    waiter.gives_back().await;
}

/// A release skips a waiter that gave up before.
pub async fn a_cancelled_waiter_is_skipped(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    let first = Waiter::join(&b, &ctx.owner()).await;
    let mut second = Waiter::join(&b, &ctx.owner()).await;
    let outcome = first.leaves().await;
    Rule::Queue.check(
        outcome == ReleaseOutcome::NotHeld,
        "giving up a place was answered Released",
    );
    a.give_back(&holder).await;
    second.handed().await;
    a.holder(second.owner()).await;
    second.gives_back().await;
}

/// A waiter that gives up just after a hand-off passes the lock on.
pub async fn a_grant_that_is_given_up_goes_on(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    for _ in 0..ROUNDS {
        let holder = ctx.owner();
        a.take(&holder, LONG).await;
        let first = Waiter::join(&b, &ctx.owner()).await;
        let mut second = Waiter::join(&a, &ctx.owner()).await;
        a.give_back(&holder).await;
        let gone = first.owner().clone();
        let handed = first.leaves().await == ReleaseOutcome::Released;
        if handed {
            second.handed().await;
        } else {
            second.asks().await;
        }
        a.holder(second.owner()).await;
        let again = a.release(&gone).await;
        Rule::Ownership.check(
            again == ReleaseOutcome::NotHeld,
            "a grant was given up twice",
        );
        second.gives_back().await;
        if handed {
            return;
        }
    }
    Rule::HandOff.broken(format_args!("{ROUNDS} releases were not handed on"));
}

/// A repeated release hands nothing on.
pub async fn a_repeated_release_hands_on_once(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    let mut first = Waiter::join(&b, &ctx.owner()).await;
    let mut second = Waiter::join(&a, &ctx.owner()).await;
    a.give_back(&holder).await;
    first.handed().await;
    for client in [&a, &b] {
        let again = client.release(&holder).await;
        Rule::Idempotence.check(
            again == ReleaseOutcome::NotHeld,
            "a repeated release was answered Released",
        );
        client.holder(first.owner()).await;
        Rule::HandOff.check(
            second.position().await == Some(0),
            "a repeated release handed the lock on once more",
        );
    }
    first.gives_back().await;
    second.handed().await;
    second.gives_back().await;
}
