//! Requests for more permits than exist.

use std::error::Error as _;

use locktopus_core::{BackendErrorKind, CounterAction, Executed, TooFewPermits};

use super::permits::{clients, free, lacks, returns, takes, wants};
use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::LONG;
use crate::waiter::Waiter;

/// Checks that an attempt for more than `total` permits is an error at once, with and without a
/// place in the queue. `None`: the semaphore has no number.
pub(super) async fn never(client: &Client, permits: u32, total: Option<u64>) {
    for place in [None, Some(LONG)] {
        let owner = client.target.kind().new_owner();
        let mut attempt = wants(client, &owner, permits);
        attempt.place = place;
        let Err(error) = client.backend.attempt(&attempt).await else {
            Rule::Permits.broken(format_args!(
                "{permits} permits of {total:?} were asked for, and that was no error"
            ))
        };
        let source = error.source();
        let told = source.and_then(|source| source.downcast_ref::<TooFewPermits>());
        let right = told.is_some_and(|told| {
            (told.asked, told.total) == (permits, total) && told.target == client.target
        });
        Rule::Permits.check(
            right && error.kind() == BackendErrorKind::TooFewPermits,
            format_args!("{permits} permits of {total:?} were refused as {error:?}"),
        );
        Rule::Errors.check(
            error.executed() == Executed::No && !error.is_transient(),
            format_args!("permits that there are not are to be had later: {error:?}"),
        );
        let state = client.state().await;
        Rule::Queue.check(
            state.position(&owner).is_none(),
            "one that asked for more permits than there are has a place in the queue",
        );
    }
}

/// An attempt can request as many permits as exist in total, whether they are free, held or
/// drained.
pub async fn more_than_there_are_is_an_error_at_once(ctx: Ctx) {
    let (a, b) = clients(&ctx, 3).await;
    never(&a, 4, Some(3)).await;
    let two = takes(&b, &ctx.owner(), 2).await;
    lacks(&a, &ctx.owner(), 3).await;
    never(&a, 4, Some(3)).await;
    let _ = a.count(CounterAction::Add(2)).await;
    lacks(&a, &ctx.owner(), 5).await;
    never(&b, 6, Some(5)).await;
    // Drained permits may come back, so a request for them waits.
    let _ = b.count(CounterAction::Drain).await;
    lacks(&a, &ctx.owner(), 5).await;
    never(&a, 6, Some(5)).await;
    let _ = a.count(CounterAction::Add(3)).await;
    free(&b, 3, "what was drained was put back").await;
    never(&b, 6, Some(5)).await;
    let _ = a.count(CounterAction::Add(-1)).await;
    never(&b, 5, Some(4)).await;
    let _ = a.count(CounterAction::Initialise(9)).await;
    never(&b, 5, Some(4)).await;
    let _ = b.count(CounterAction::Resize(1)).await;
    lacks(&a, &ctx.owner(), 1).await;
    never(&a, 2, Some(1)).await;
    returns(&a, &two).await;
    let _ = b.count(CounterAction::Drain).await;
    lacks(&a, &ctx.owner(), 1).await;
    let _ = b.count(CounterAction::Resize(0)).await;
    never(&a, 1, Some(0)).await;
}

/// Checks that a waiter learns at its next attempt that there are too few permits.
async fn is_told(waiter: &Waiter) {
    let looked = waiter.client.backend.attempt(&waiter.attempt).await;
    Rule::Permits.check(
        looked.is_err_and(|error| error.kind() == BackendErrorKind::TooFewPermits),
        "one that waits for more permits than there are is not told",
    );
}

/// A waiter for more permits than now exist blocks no other, even before it tries again.
pub async fn waiters_for_too_many_hold_up_nobody(ctx: Ctx) {
    let (a, b) = clients(&ctx, 5).await;
    let three = takes(&a, &ctx.owner(), 3).await;
    let big = Waiter::join_with(&b, wants(&b, &ctx.owner(), 5)).await;
    let mut one = Waiter::join_with(&a, wants(&a, &ctx.owner(), 1)).await;
    let mut two = Waiter::join_with(&b, wants(&b, &ctx.owner(), 2)).await;
    // The smaller number itself leaves one permit to those behind, a release two more.
    let _ = a.count(CounterAction::Resize(4)).await;
    one.handed().await;
    returns(&a, &three).await;
    two.handed().await;
    // Newcomers do not wait behind it either.
    let newcomer = takes(&a, &ctx.owner(), 1).await;
    lacks(&a, &ctx.owner(), 1).await;
    returns(&a, &newcomer).await;
    one.gives_back().await;
    two.gives_back().await;
    is_told(&big).await;
    let _ = big.leaves().await;
    // The number of free permits stays the same, and the total does not.
    let _ = a.count(CounterAction::Drain).await;
    let big = Waiter::join_with(&b, wants(&b, &ctx.owner(), 4)).await;
    let mut one = Waiter::join_with(&a, wants(&a, &ctx.owner(), 1)).await;
    let _ = a.count(CounterAction::Add(2)).await;
    Rule::Queue.check(
        one.repeat().await.is_none(),
        "one that wants few permits overtook one that wants many",
    );
    let _ = a.count(CounterAction::Resize(2)).await;
    one.handed().await;
    one.gives_back().await;
    is_told(&big).await;
    let _ = big.leaves().await;
    free(&b, 2, "after all").await;
}

/// A waiter for more permits than now exist learns it at its next attempt, and leaves the queue.
pub async fn waiters_for_too_many_are_told(ctx: Ctx) {
    let (a, b) = clients(&ctx, 3).await;
    let all = takes(&a, &ctx.owner(), 3).await;
    let big = Waiter::join_with(&b, wants(&b, &ctx.owner(), 3)).await;
    let mut small = Waiter::join_with(&a, wants(&a, &ctx.owner(), 1)).await;
    let _ = a.count(CounterAction::Resize(2)).await;
    is_told(&big).await;
    returns(&a, &all).await;
    let _ = big.leaves().await;
    small.handed().await;
    small.gives_back().await;
    free(&a, 2, "after all").await;
    // The same after the number is gone.
    let held = takes(&a, &ctx.owner(), 2).await;
    let waiter = Waiter::join_with(&b, wants(&b, &ctx.owner(), 1)).await;
    let _ = a.count(CounterAction::Delete).await;
    is_told(&waiter).await;
    let _ = waiter.leaves().await;
    let _ = a.release_of(&held).await;
}
