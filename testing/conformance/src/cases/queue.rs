//! The queue is served first come, first served, without overtaking.

use locktopus_core::{AcquireAttempt, AttemptOutcome, GroupOutcome};

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, until};
use crate::waiter::Waiter;

/// Waiters of several clients get the lock in order of arrival.
pub async fn first_come_first_served(ctx: Ctx) {
    let clients = [ctx.first().await, ctx.second().await];
    let holder = ctx.owner();
    clients[0].take(&holder, LONG).await;
    let mut waiters = Vec::new();
    for i in 0..6 {
        waiters.push(Waiter::join(&clients[i % 2], &ctx.owner()).await);
    }
    let shown = clients[1].state().await.waiters;
    let order: Vec<_> = shown.into_iter().map(|waiter| waiter.owner).collect();
    let came: Vec<_> = waiters.iter().map(|w| w.owner().clone()).collect();
    Rule::Queue.check(
        order == came,
        format_args!("waiters that came as {came:?} are shown as {order:?}"),
    );
    clients[0].give_back(&holder).await;
    for waiter in &mut waiters {
        waiter.handed().await;
        clients[0].holder(waiter.owner()).await;
        waiter.gives_back().await;
    }
}

/// A repeated attempt keeps its place and moves no other waiter.
pub async fn a_place_keeps_its_order(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    let mut one = Waiter::join(&b, &ctx.owner()).await;
    let mut two = Waiter::join(&a, &ctx.owner()).await;
    for _ in 0..3 {
        stays(&mut one, 0).await;
        stays(&mut two, 1).await;
        stays(&mut one, 0).await;
    }
    a.give_back(&holder).await;
    one.handed().await;
    stays(&mut two, 0).await;
    one.gives_back().await;
    two.handed().await;
    two.gives_back().await;
}

async fn stays(waiter: &mut Waiter, place: usize) {
    let granted = waiter.repeat().await;
    Rule::Queue.check(granted.is_none(), "a waiter was granted a held lock");
    let shown = waiter.position().await;
    Rule::Queue.check(
        waiter.ahead == place as u64 && shown == Some(place),
        format_args!(
            "a waiter with {place} ahead was told of {}, and is shown at {shown:?}",
            waiter.ahead
        ),
    );
}

/// A waiter learns how many are ahead, and when they have gone.
pub async fn a_place_is_counted(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    let mut waiters = Vec::new();
    for _ in 0..4 {
        waiters.push(Waiter::join(&b, &ctx.owner()).await);
    }
    for (ahead, waiter) in (0_u64..).zip(&waiters) {
        Rule::Queue.check(
            waiter.ahead == ahead,
            format_args!("{} are said to be ahead instead of {ahead}", waiter.ahead),
        );
    }
    let mut last = waiters.pop().expect("four are waiting");
    for waiter in waiters {
        let _ = waiter.leaves().await;
    }
    stays(&mut last, 0).await;
    let _ = last.leaves().await;
    a.give_back(&holder).await;
}

/// An attempt marked as its owner's first takes a place like any other, but may learn less.
pub async fn a_first_attempt_is_in_line_too(ctx: Ctx) {
    let clients = [ctx.first().await, ctx.second().await];
    let holder = ctx.owner();
    clients[0].take(&holder, LONG).await;
    let mut waiters = Vec::new();
    for i in 0..4 {
        let client = &clients[i % 2];
        let attempt = AcquireAttempt {
            first: true,
            ..client.attempt_of(&ctx.owner(), LONG)
        };
        let waiter = Waiter::join_with(client, attempt).await;
        let told = waiter.ahead;
        Rule::Queue.check(
            told == i as u64 || told == i.min(1) as u64,
            format_args!("one who came with {i} ahead was told of {told}"),
        );
        waiters.push(waiter);
    }
    stays(&mut waiters[3], 3).await;
    clients[0].give_back(&holder).await;
    for waiter in &mut waiters {
        waiter.handed().await;
        clients[0].holder(waiter.owner()).await;
        waiter.gives_back().await;
    }
}

/// A release removes the owner's place, and is answered `NotHeld`.
pub async fn a_release_gives_up_a_place(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    let waiter = Waiter::join(&b, &ctx.owner()).await;
    let outcome = a.release(waiter.owner()).await;
    Rule::Queue.check(
        outcome == locktopus_core::ReleaseOutcome::NotHeld,
        "giving up a place was answered Released",
    );
    Rule::Queue.check(
        waiter.position().await.is_none(),
        "a place was given up and is still shown",
    );
    a.holder(&holder).await;
    a.give_back(&holder).await;
    Rule::Queue.check(
        a.state().await.holder().is_none(),
        "a lock went to a waiter that had given up",
    );
}

/// An attempt that asks for no place leaves none.
pub async fn a_refusal_leaves_no_place(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    b.refused(&ctx.owner()).await;
    Rule::Queue.check(
        a.state().await.waiters.is_empty(),
        "an attempt that did not ask for a place got one",
    );
    a.give_back(&holder).await;
}

/// When the holder's lease has ended, the lock belongs to the live waiter, no matter who tries
/// first or how.
pub async fn nobody_overtakes_a_waiter(ctx: Ctx) {
    let short = ctx.short();
    let (a, b) = (ctx.first().await, ctx.second().await);
    a.take(&ctx.owner(), short).await;
    let mut waiter = Waiter::join(&b, &ctx.owner()).await;
    let (trying, queueing, grouped) = (ctx.owner(), ctx.owner(), ctx.owner());
    until(
        Rule::Queue,
        short,
        "the first waiter does not get a lock whose lease has ended",
        || async {
            a.refused(&trying).await;
            let mut attempt = a.attempt_of(&queueing, LONG);
            attempt.place = Some(LONG);
            let queued = matches!(a.send(&attempt).await, AttemptOutcome::Queued { .. });
            Rule::Queue.check(queued, "a newcomer overtook a waiter");
            not_as_group(&a, &grouped).await;
            a.is_held_by(waiter.owner()).await
        },
    )
    .await;
    waiter.asks().await;
    let _ = a.release(&queueing).await;
    waiter.gives_back().await;
}

async fn not_as_group(client: &Client, stranger: &locktopus_core::OwnerId) {
    if client.backend.group(&client.target).is_none() {
        return;
    }
    let attempts = [client.attempt_of(stranger, LONG)];
    let outcome = client.backend.attempt_all(&attempts).await;
    Rule::Queue.check(
        matches!(outcome, Ok(GroupOutcome::Busy { index: 0, .. })),
        format_args!("an attempt for a group overtook a waiter: {outcome:?}"),
    );
}
