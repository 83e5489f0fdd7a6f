//! Each operation changes the number of permits exactly once.

use locktopus_core::{CounterAction, CounterOutcome, ExtendOutcome, OwnerId};

use super::permits::{clients, free, lacks, returns, takes, wants};
use super::totals::never;
use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::LONG;
use crate::waiter::Waiter;

fn said(outcome: CounterOutcome, value: i64, changed: bool, what: &str) {
    Rule::Counter.check(
        outcome.value == Some(value) && outcome.changed == changed,
        format_args!("{what} was answered {outcome:?}, not {value} (changed: {changed})"),
    );
}

/// A semaphore is given its permits once; a second time changes nothing.
pub async fn permits_are_given_once(ctx: Ctx) {
    let (a, b) = clients(&ctx, 3).await;
    let again = b.count(CounterAction::Initialise(7)).await;
    said(again, 3, false, "a second Initialise");
    let all = takes(&a, &ctx.owner(), 3).await;
    let again = b.count(CounterAction::Initialise(7)).await;
    said(again, 0, false, "Initialise while all permits are held");
    lacks(&b, &ctx.owner(), 1).await;
    returns(&a, &all).await;
    free(&b, 3, "after all").await;
}

/// Permits can be added, taken away, and drained.
pub async fn permits_are_added_and_drained(ctx: Ctx) {
    let (a, b) = clients(&ctx, 3).await;
    said(a.count(CounterAction::Add(2)).await, 5, true, "Add(2) to 3");
    said(
        b.count(CounterAction::Add(-1)).await,
        4,
        true,
        "Add(-1) to 5",
    );
    let one = takes(&a, &ctx.owner(), 1).await;
    said(b.count(CounterAction::Drain).await, 3, true, "Drain of 3");
    lacks(&a, &ctx.owner(), 1).await;
    said(
        a.count(CounterAction::Drain).await,
        0,
        false,
        "Drain of none",
    );
    returns(&a, &one).await;
    free(&b, 1, "one came back after a drain").await;
    said(a.count(CounterAction::Add(3)).await, 4, true, "Add(3) to 1");
    free(&b, 4, "after all").await;
}

/// The total may fall below the number held: then none are available until enough have come back.
pub async fn a_total_may_fall_below_what_is_held(ctx: Ctx) {
    let (a, b) = clients(&ctx, 3).await;
    let one = takes(&a, &ctx.owner(), 1).await;
    let two = takes(&b, &ctx.owner(), 2).await;
    said(
        b.count(CounterAction::Resize(1)).await,
        -2,
        true,
        "Resize(1) while 3 are held",
    );
    free(&a, -2, "three of one permits are held").await;
    lacks(&b, &ctx.owner(), 1).await;
    returns(&b, &one).await;
    free(&a, -1, "two of one permits are held").await;
    lacks(&b, &ctx.owner(), 1).await;
    returns(&a, &two).await;
    free(&a, 1, "none of one permit is held").await;
    let last = takes(&a, &ctx.owner(), 1).await;
    lacks(&b, &ctx.owner(), 1).await;
    said(
        a.count(CounterAction::Resize(5)).await,
        4,
        true,
        "Resize(5) while 1 is held",
    );
    returns(&b, &last).await;
    free(&a, 5, "after all").await;
}

/// An operation repeated with its id counts once, and gets the same answer again.
pub async fn an_operation_counts_once(ctx: Ctx) {
    let (a, b) = clients(&ctx, 3).await;
    for action in [
        CounterAction::Add(2),
        CounterAction::Add(-1),
        CounterAction::Drain,
        CounterAction::Resize(6),
    ] {
        let operation = OwnerId::generate();
        let first = a.count_as(&operation, action).await;
        let between = a.number().await;
        for client in [&b, &a] {
            let again = client.count_as(&operation, action).await;
            Rule::Idempotence.check(
                again == first && client.number().await == between,
                format_args!("{action:?} was answered {first:?}, repeated {again:?}"),
            );
        }
    }
    free(&a, 6, "after all").await;
}

/// Added permits go to waiters.
pub async fn more_permits_go_to_waiters(ctx: Ctx) {
    let (a, b) = clients(&ctx, 2).await;
    let two = takes(&a, &ctx.owner(), 2).await;
    let mut first = Waiter::join_with(&b, wants(&b, &ctx.owner(), 2)).await;
    let mut second = Waiter::join_with(&b, wants(&b, &ctx.owner(), 1)).await;
    let _ = a.count(CounterAction::Add(2)).await;
    first.handed().await;
    Rule::Queue.check(
        second.position().await == Some(0),
        "more permits than were added went to waiters",
    );
    let _ = a.count(CounterAction::Resize(5)).await;
    second.handed().await;
    free(&a, 0, "all five are held").await;
    first.gives_back().await;
    second.gives_back().await;
    returns(&a, &two).await;
    free(&b, 5, "after all").await;
}

/// A deleted semaphore grants nothing until it is given permits again.
pub async fn permits_can_be_forgotten(ctx: Ctx) {
    let (a, b) = clients(&ctx, 2).await;
    let gone = b.count(CounterAction::Delete).await;
    Rule::Counter.check(
        gone.value.is_none() && gone.changed,
        format_args!("Delete was answered {gone:?}"),
    );
    let again = a.count(CounterAction::Delete).await;
    Rule::Counter.check(
        again.value.is_none() && !again.changed,
        format_args!("a second Delete was answered {again:?}"),
    );
    never(&a, 1, None).await;
    clients(&ctx, 1).await;
    let one = takes(&b, &ctx.owner(), 1).await;
    returns(&b, &one).await;
}

/// If the number is lost and set again, permits that were held are part of it: returning them adds
/// none.
pub async fn a_number_that_is_lost_makes_no_more_permits(ctx: Ctx) {
    let (a, b) = clients(&ctx, 3).await;
    for forgotten in [false, true] {
        for given in [
            CounterAction::Initialise(3),
            CounterAction::Resize(3),
            CounterAction::Add(3),
        ] {
            let held = [
                takes(&a, &ctx.owner(), 2).await,
                takes(&b, &ctx.owner(), 1).await,
            ];
            if forgotten {
                let _ = b.count(CounterAction::Delete).await;
                let extended = a.try_extend(&held[0].owner, LONG).await;
                Rule::Permits.check(
                    extended.is_ok_and(|outcome| outcome != ExtendOutcome::Extended),
                    "permits of a semaphore that was forgotten were extended",
                );
            } else if !ctx.wipe().await {
                // Only the backend itself can lose the number here.
                for attempt in &held {
                    returns(&a, attempt).await;
                }
                continue;
            }
            let _ = b.count(given).await;
            whole(&b, 3, given, "was given").await;
            for attempt in &held {
                let _ = a.release_of(attempt).await;
                whole(&b, 3, given, "was given, and permits came back").await;
            }
            free(&a, 3, "after all").await;
        }
    }
}

/// Free and held permits add up to `total`.
async fn whole(client: &Client, total: i64, given: CounterAction, when: &str) {
    let state = client.state().await;
    let held: u64 = state.holders.iter().map(|holder| holder.holds).sum();
    let free = state.available.unwrap_or_default();
    Rule::Permits.check(
        i64::try_from(held).is_ok_and(|held| held + free == total),
        format_args!("after {given:?} {when}, {held} permits are held and {free} are free, not {total} together"),
    );
}
