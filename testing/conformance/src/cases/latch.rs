//! A latch counts down once for each operation, and at zero all waiters return.

use std::time::Duration;

use futures_util::future::join_all;
use locktopus_core::{BackendErrorKind, CounterAction, CounterOutcome, Executed, OwnerId};
use tokio::time::timeout;

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::LONG;

/// Far longer than any message takes.
const SOON: Duration = Duration::from_secs(5);

async fn latch(ctx: &Ctx, count: u64) -> (Client, Client) {
    let (a, b) = (ctx.bare(0).await, ctx.bare(1).await);
    let set = a.count(CounterAction::Initialise(count)).await;
    said(set, i64::try_from(count).ok(), true, "Initialise");
    (a, b)
}

fn said(outcome: CounterOutcome, value: Option<i64>, changed: bool, what: &str) {
    Rule::Counter.check(
        outcome.value == value && outcome.changed == changed,
        format_args!("{what} was answered {outcome:?}, not {value:?} (changed: {changed})"),
    );
}

/// Whether no waiter needs to wait: a latch at zero may be stored as missing.
fn open(count: Option<i64>) -> bool {
    count.unwrap_or(0) == 0
}

/// A latch is set once, and each count through any client lowers it by one.
pub async fn a_latch_counts_down(ctx: Ctx) {
    let (a, b) = latch(&ctx, 3).await;
    let again = b.count(CounterAction::Initialise(9)).await;
    said(again, Some(3), false, "a second Initialise");
    for (client, left) in [(&b, 2), (&a, 1), (&b, 0)] {
        let counted = client.count(CounterAction::CountDown).await;
        said(counted, Some(left), true, "CountDown");
        let shown = a.number().await;
        Rule::Counter.check(
            shown.unwrap_or(0) == left,
            format_args!("after a count to {left} the latch shows {shown:?}"),
        );
    }
}

/// All listeners on any client are woken when the count is zero.
pub async fn zero_wakes_everybody(ctx: Ctx) {
    let (a, b) = latch(&ctx, 2).await;
    let mut listening = Vec::new();
    for client in [&a, &b, &b, &a] {
        listening.push((client.clone(), client.subscribe().await));
    }
    let waits = listening.into_iter().map(|(client, mut hints)| async move {
        while !open(client.number().await) {
            if timeout(SOON, hints.next()).await.is_err() {
                Rule::Wakes.broken("a latch was counted down and a waiter heard nothing");
            }
        }
    });
    let counts = async {
        for client in [&a, &b] {
            // Each waiter checks once before it listens.
            ctx.let_it_act(Duration::from_millis(50)).await;
            let _ = client.count(CounterAction::CountDown).await;
        }
    };
    tokio::join!(join_all(waits), counts);
}

/// Counting a latch that is at zero, or was never set, changes nothing.
pub async fn below_zero_is_harmless(ctx: Ctx) {
    let fresh = ctx.bare(0).await;
    let counted = fresh.count(CounterAction::CountDown).await;
    said(counted, Some(0), false, "CountDown of no latch");
    Rule::Counter.check(
        open(fresh.number().await),
        "counting a latch that was never set made one",
    );
    let (a, b) = latch(&ctx, 1).await;
    said(
        a.count(CounterAction::CountDown).await,
        Some(0),
        true,
        "CountDown",
    );
    for client in [&b, &a] {
        let counted = client.count(CounterAction::CountDown).await;
        said(counted, Some(0), false, "CountDown at zero");
    }
    Rule::Counter.check(open(a.number().await), "a latch went below zero");
}

/// A count repeated with its id counts once.
pub async fn a_count_counts_once(ctx: Ctx) {
    let (a, b) = latch(&ctx, 3).await;
    for left in [2, 1, 0] {
        let operation = OwnerId::generate();
        for client in [&a, &b, &a] {
            let counted = client.count_as(&operation, CounterAction::CountDown).await;
            said(counted, Some(left), true, "a CountDown that is repeated");
        }
    }
    let operation = OwnerId::generate();
    for client in [&a, &b] {
        let set = client
            .count_as(&operation, CounterAction::Initialise(2))
            .await;
        said(set, Some(2), true, "an Initialise that is repeated");
    }
}

/// A latch is deleted once. It can be set again after a deletion, as after zero.
pub async fn a_latch_is_deleted_and_set_again(ctx: Ctx) {
    let (a, b) = latch(&ctx, 3).await;
    let gone = b.count(CounterAction::Delete).await;
    said(gone, None, true, "Delete");
    said(
        a.count(CounterAction::Delete).await,
        None,
        false,
        "a second Delete",
    );
    Rule::Counter.check(open(a.number().await), "a deleted latch has a count");
    for round in 0..2 {
        let set = b.count(CounterAction::Initialise(1)).await;
        said(set, Some(1), true, "Initialise of a latch that is over");
        let counted = a.count(CounterAction::CountDown).await;
        said(
            counted,
            Some(0),
            true,
            &format!("CountDown in round {round}"),
        );
    }
}

/// An attempt to hold a latch is refused, and has no effect.
pub async fn a_latch_is_not_held(ctx: Ctx) {
    let (a, b) = latch(&ctx, 1).await;
    match a.try_attempt(&ctx.owner(), LONG).await {
        Err(error) => Rule::Errors.check(
            error.kind() == BackendErrorKind::Unsupported && error.executed() == Executed::No,
            format_args!("an attempt to hold a latch ended with {error:?}"),
        ),
        Ok(outcome) => Rule::Errors.broken(format_args!(
            "an attempt to hold a latch was answered {outcome:?}"
        )),
    }
    Rule::Counter.check(
        a.backend.group(&a.target).is_none(),
        "a latch has a group of locks to be taken with",
    );
    let left = b.number().await;
    Rule::Counter.check(
        left == Some(1),
        format_args!("an attempt to hold a latch left it at {left:?}"),
    );
}
