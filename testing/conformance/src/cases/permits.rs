//! Permits of a semaphore are neither lost nor invented.

use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::future::join_all;
use locktopus_core::{
    AcquireAttempt, AttemptOutcome, ExtendOutcome, ExtendRequest, HolderState, LockState, OwnerId,
    ReleaseOutcome,
};
use tokio::time::Instant;

use super::totals::never;
use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, ROUNDING, until};
use crate::waiter::Waiter;

/// Two clients on a semaphore of `permits`.
pub(super) async fn clients(ctx: &Ctx, permits: u64) -> (Client, Client) {
    let (a, b) = (ctx.bare(0).await, ctx.bare(1).await);
    let given = a.initialise(permits).await;
    Rule::Counter.check(
        given.changed && given.value == i64::try_from(permits).ok(),
        format_args!("a fresh semaphore given {permits} permits says {given:?}"),
    );
    (a, b)
}

/// An attempt for several permits.
pub(super) fn wants(client: &Client, owner: &OwnerId, permits: u32) -> AcquireAttempt {
    let mut attempt = client.attempt_of(owner, LONG);
    attempt.permits = permits;
    attempt
}

/// Acquires permits that must be available.
pub(super) async fn takes(client: &Client, owner: &OwnerId, permits: u32) -> AcquireAttempt {
    let attempt = wants(client, owner, permits);
    granted(client, &attempt).await;
    attempt
}

async fn granted(client: &Client, attempt: &AcquireAttempt) {
    match client.send(attempt).await {
        AttemptOutcome::Granted { token: None } => {}
        other => Rule::Permits.broken(format_args!(
            "{} permits that were free, or the owner's own, were answered {other:?}",
            attempt.permits
        )),
    }
}

/// Requests permits that must not be available.
pub(super) async fn lacks(client: &Client, owner: &OwnerId, permits: u32) {
    let outcome = client.send(&wants(client, owner, permits)).await;
    Rule::Permits.check(
        matches!(outcome, AttemptOutcome::Busy { .. }),
        format_args!("{permits} permits that were not free were answered {outcome:?}"),
    );
}

/// Returns permits, which must have been held.
pub(super) async fn returns(client: &Client, attempt: &AcquireAttempt) {
    let outcome = client.release_of(attempt).await;
    Rule::Permits.check(
        outcome == ReleaseOutcome::Released,
        "permits that were held were answered NotHeld",
    );
}

/// Checks how many permits are shown as free.
pub(super) async fn free(client: &Client, expected: i64, when: &str) {
    let (shown, number) = (client.state().await.available, client.number().await);
    Rule::Permits.check(
        shown == Some(expected) && number == Some(expected),
        format_args!("{when}: {shown:?} permits are shown and {number:?} counted, not {expected}"),
    );
}

/// Whether the holder shown is this owner. Each of several expiring permits may show under its own
/// id, which differs in the last two bytes.
fn belongs(holder: &HolderState, owner: &OwnerId) -> bool {
    let (shown, owner) = (holder.owner.expose(), owner.expose());
    shown == owner || shown.len() == 16 && owner.len() == 16 && shown[..14] == owner[..14]
}

fn held_by(state: &LockState, owner: &OwnerId) -> u64 {
    let own = state.holders.iter().filter(|h| belongs(h, owner));
    own.map(|holder| holder.holds).sum()
}

/// A semaphore without permits grants nothing, and returns that as an error.
pub async fn nothing_is_had_before_there_are_permits(ctx: Ctx) {
    let (a, b) = (ctx.bare(0).await, ctx.bare(1).await);
    never(&a, 1, None).await;
    let state = b.state().await;
    Rule::Permits.check(
        state.available.is_none() && state.holders.is_empty() && b.number().await.is_none(),
        format_args!("a semaphore that was given nothing has the state {state:?}"),
    );
    let released = a.release(&ctx.owner()).await;
    Rule::Permits.check(
        released == ReleaseOutcome::NotHeld && b.number().await.is_none(),
        "a release gave permits to a semaphore that had none",
    );
    clients(&ctx, 1).await;
    let owner = ctx.owner();
    let one = takes(&a, &owner, 1).await;
    returns(&a, &one).await;
}

/// All permits can be acquired, in any portions.
pub async fn permits_are_counted(ctx: Ctx) {
    let (a, b) = clients(&ctx, 5).await;
    let (one, two, three) = (ctx.owner(), ctx.owner(), ctx.owner());
    let first = takes(&a, &one, 2).await;
    let second = takes(&b, &two, 2).await;
    lacks(&a, &ctx.owner(), 2).await;
    let third = takes(&a, &three, 1).await;
    lacks(&b, &ctx.owner(), 1).await;
    free(&b, 0, "all five are held").await;
    let state = a.state().await;
    let shown = [&one, &two, &three].map(|owner| held_by(&state, owner));
    Rule::Inspection.check(
        shown == [2, 2, 1],
        format_args!("holders of 2, 2 and 1 permits are shown with {shown:?}"),
    );
    for attempt in [&second, &third, &first] {
        returns(&b, attempt).await;
    }
    free(&a, 5, "all five came back").await;
    never(&a, 6, Some(5)).await;
}

/// One release returns every permit of its acquisition, at once.
pub async fn a_release_returns_all_permits(ctx: Ctx) {
    let (a, b) = clients(&ctx, 4).await;
    for round in 0..3 {
        let (holder, next) = (ctx.owner(), ctx.owner());
        let four = takes(&a, &holder, 4).await;
        free(&b, 0, "all four are held").await;
        returns(&b, &four).await;
        free(&a, 4, &format!("after release {round}")).await;
        let again = takes(&b, &next, 4).await;
        returns(&a, &again).await;
    }
    Rule::Permits.check(
        a.state().await.holders.is_empty(),
        "holders are shown although all permits came back",
    );
}

/// A repeated attempt or release does not count.
pub async fn a_repetition_takes_and_returns_once(ctx: Ctx) {
    let (a, b) = clients(&ctx, 5).await;
    let holder = ctx.owner();
    let two = takes(&a, &holder, 2).await;
    for client in [&b, &a] {
        granted(client, &two).await;
        free(client, 3, "two of five are held, after a repetition").await;
    }
    let shown = held_by(&a.state().await, &holder);
    Rule::Idempotence.check(
        shown == 2,
        format_args!("two permits, repeated, are shown as {shown}"),
    );
    returns(&b, &two).await;
    for client in [&a, &b] {
        let again = client.release_of(&two).await;
        Rule::Idempotence.check(
            again == ReleaseOutcome::NotHeld,
            "permits were returned twice",
        );
        free(client, 5, "all came back, after a repeated release").await;
    }
}

/// A waiter for many permits gets them before later waiters that need fewer.
pub async fn a_big_request_is_not_starved(ctx: Ctx) {
    let (a, b) = clients(&ctx, 3).await;
    let two = takes(&a, &ctx.owner(), 2).await;
    let mut big = Waiter::join_with(&b, wants(&b, &ctx.owner(), 3)).await;
    lacks(&a, &ctx.owner(), 1).await;
    lacks(&b, &ctx.owner(), 1).await;
    let mut small = Waiter::join_with(&a, wants(&a, &ctx.owner(), 1)).await;
    Rule::Queue.check(
        small.ahead == 1,
        format_args!("behind a big request {} are said to be ahead", small.ahead),
    );
    free(&a, 1, "one is free and kept for a big request").await;
    returns(&a, &two).await;
    big.handed().await;
    free(&b, 0, "the big request has all").await;
    Rule::Queue.check(
        small.position().await == Some(0),
        "the small request behind a big one lost its place",
    );
    big.gives_back().await;
    small.handed().await;
    small.gives_back().await;
    free(&a, 3, "after all").await;
}

/// When a big request gives up, those behind it get the permits reserved for it.
pub async fn a_big_request_that_goes_lets_others_in(ctx: Ctx) {
    let (a, b) = clients(&ctx, 3).await;
    let two = takes(&a, &ctx.owner(), 2).await;
    let big = Waiter::join_with(&b, wants(&b, &ctx.owner(), 3)).await;
    let mut small = Waiter::join_with(&a, wants(&a, &ctx.owner(), 1)).await;
    let left = big.leaves().await;
    Rule::Queue.check(
        left == ReleaseOutcome::NotHeld,
        "giving up a place was answered Released",
    );
    small.handed().await;
    small.gives_back().await;
    returns(&b, &two).await;
    free(&a, 3, "after all").await;
}

/// Returned permits go to as many waiters as they suffice for, and no further.
pub async fn several_waiters_go_at_once(ctx: Ctx) {
    let (a, b) = clients(&ctx, 3).await;
    let all = takes(&a, &ctx.owner(), 3).await;
    let mut one = Waiter::join_with(&b, wants(&b, &ctx.owner(), 1)).await;
    let mut two = Waiter::join_with(&a, wants(&a, &ctx.owner(), 2)).await;
    let mut last = Waiter::join_with(&b, wants(&b, &ctx.owner(), 1)).await;
    returns(&b, &all).await;
    one.handed().await;
    two.handed().await;
    let state = a.state().await;
    let shown = [one.owner(), two.owner(), last.owner()].map(|owner| held_by(&state, owner));
    Rule::HandOff.check(
        shown == [1, 2, 0] && state.position(last.owner()) == Some(0),
        format_args!("waiters for 1, 2 and 1 of three permits are shown with {shown:?}"),
    );
    two.gives_back().await;
    last.handed().await;
    one.gives_back().await;
    last.gives_back().await;
    free(&b, 3, "after all").await;
}

/// Permits of a silent holder come back when its lease ends, and not before.
pub async fn a_lease_that_ends_returns_its_permits(ctx: Ctx) {
    let short = ctx.short();
    let (a, b) = clients(&ctx, 3).await;
    let mut mortal = wants(&a, &ctx.owner(), 3);
    mortal.lease = short;
    let sent = Instant::now();
    granted(&a, &mortal).await;
    let next = wants(&b, &ctx.owner(), 2);
    until(Rule::Lease, short, "a lease does not end", || async {
        matches!(b.send(&next).await, AttemptOutcome::Granted { .. })
    })
    .await;
    let lasted = sent.elapsed();
    Rule::Lease.check(
        lasted + ROUNDING >= short,
        format_args!("a lease of {short:?} ended after {lasted:?}"),
    );
    free(&a, 1, "two of three are held, after a lease that ended").await;
    let late = a.release_of(&mortal).await;
    Rule::Permits.check(
        late == ReleaseOutcome::NotHeld,
        "permits that had come back by themselves were returned once more",
    );
    let outcome = extend(&a, &mortal).await;
    Rule::Ownership.check(
        outcome == ExtendOutcome::Missing,
        format_args!("extending a lease that had ended was answered {outcome:?}"),
    );
    free(&a, 1, "after a late release and a late extension").await;
    returns(&b, &next).await;
    free(&a, 3, "after all").await;
}

/// The end of one holder's lease does not end another's.
pub async fn permits_end_one_by_one(ctx: Ctx) {
    let short = ctx.short();
    let (a, b) = clients(&ctx, 3).await;
    let mut brief = wants(&a, &ctx.owner(), 2);
    brief.lease = short;
    let lasting = takes(&b, &ctx.owner(), 1).await;
    granted(&a, &brief).await;
    until(Rule::Lease, short, "a lease does not end", || async {
        held_by(&a.state().await, &brief.owner) == 0
    })
    .await;
    let state = b.state().await;
    Rule::Permits.check(
        held_by(&state, &lasting.owner) == 1 && state.available == Some(2),
        format_args!("after one of two leases the state is {state:?}"),
    );
    returns(&b, &lasting).await;
    free(&a, 3, "after all").await;
}

/// An extension keeps all permits of an acquisition past its first lease.
pub async fn an_extension_keeps_the_permits(ctx: Ctx) {
    let short = ctx.short();
    let (a, b) = clients(&ctx, 3).await;
    let mut holder = wants(&a, &ctx.owner(), 2);
    holder.lease = short * 2;
    let mut brief = wants(&a, &ctx.owner(), 1);
    brief.lease = short * 2;
    granted(&a, &holder).await;
    granted(&b, &brief).await;
    let outcome = extend(&b, &holder).await;
    Rule::Ownership.check(
        outcome == ExtendOutcome::Extended,
        format_args!("the holder's extension was answered {outcome:?}"),
    );
    until(Rule::Lease, short * 2, "a lease does not end", || async {
        held_by(&a.state().await, &brief.owner) == 0
    })
    .await;
    free(&a, 1, "two of three were extended").await;
    lacks(&b, &ctx.owner(), 2).await;
    let left = a.state().await.holders;
    let shortest = left.iter().filter_map(|holder| holder.remaining).min();
    Rule::Lease.check(
        shortest.is_some_and(|left| left > short * 3),
        format_args!("of leases extended to {LONG:?}, {shortest:?} is left"),
    );
    returns(&a, &holder).await;
    free(&b, 3, "after all").await;
}

async fn extend(client: &Client, attempt: &AcquireAttempt) -> ExtendOutcome {
    let mut request = ExtendRequest::new(attempt.target.clone(), attempt.owner.clone(), LONG);
    request.permits = attempt.permits;
    let mut answers = client.backend.extend(&[request], client.deadline()).await;
    Rule::Errors.ok(answers.remove(0), "an extension")
}

/// An eviction returns the permits of every holder.
pub async fn an_eviction_returns_permits(ctx: Ctx) {
    let (a, b) = clients(&ctx, 5).await;
    let two = takes(&a, &ctx.owner(), 2).await;
    takes(&b, &ctx.owner(), 1).await;
    let eviction = a.evict().await;
    Rule::Admin.check(
        eviction.evicted.len() >= 2 && eviction.fence.is_none(),
        format_args!("two holders were evicted: {eviction:?}"),
    );
    free(&b, 5, "after an eviction").await;
    let late = b.release_of(&two).await;
    Rule::Permits.check(
        late == ReleaseOutcome::NotHeld,
        "permits of an evicted holder were returned once more",
    );
    free(&a, 5, "after an evicted holder's release").await;
}

/// In a crowd of two clients there are never more holders than permits, and in the end all have
/// come back.
pub async fn a_crowd_shares_the_permits(ctx: Ctx) {
    const PERMITS: i64 = 4;
    let (a, b) = clients(&ctx, PERMITS.unsigned_abs()).await;
    let inside = AtomicI64::new(0);
    let clients = [&a, &b];
    join_all((0..40_u32).map(|i| {
        let (client, inside) = (clients[i as usize % 2], &inside);
        let mut attempt = wants(client, &ctx.owner(), 1 + i % 3);
        attempt.place = Some(LONG);
        async move {
            gets_in(client, &attempt).await;
            let permits = i64::from(attempt.permits);
            let now = inside.fetch_add(permits, Ordering::AcqRel) + permits;
            Rule::Exclusion.check(
                now <= PERMITS,
                format_args!("{now} of {PERMITS} permits are held"),
            );
            tokio::task::yield_now().await;
            inside.fetch_sub(permits, Ordering::AcqRel);
            returns(client, &attempt).await;
        }
    }))
    .await;
    free(&a, PERMITS, "after a crowd").await;
}

/// Tries until it is granted.
async fn gets_in(client: &Client, attempt: &AcquireAttempt) {
    until(
        Rule::Queue,
        LONG,
        "one of a crowd does not get its permits",
        || async {
            let mut again = attempt.clone();
            again.deadline = client.deadline();
            let outcome = client.send(&again).await;
            matches!(outcome, AttemptOutcome::Granted { .. })
        },
    )
    .await;
}
