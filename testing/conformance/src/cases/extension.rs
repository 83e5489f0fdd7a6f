//! An extension moves the end of the owner's lease, and does nothing else.

use std::time::Duration;

use locktopus_core::{ExtendOutcome, ExtendRequest, LockTarget, OwnerId, TokenRetention};

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, ROUNDING};

/// A lease that a case extends in time.
const SOME: Duration = Duration::from_secs(10);

/// After an extension the lease lasts as long as requested.
pub async fn an_extension_moves_the_end(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    a.take(&holder, SOME).await;
    extended(&a, &holder, LONG).await;
    let left = a.remaining(&holder).await;
    Rule::Lease.check(
        left > SOME && left <= LONG + ROUNDING,
        format_args!("{left:?} is left of a lease extended to {LONG:?}"),
    );
    b.refused(&ctx.owner()).await;
    // Through another client too: a lease belongs to its owner, not to a connection.
    extended(&b, &holder, LONG * 2).await;
    let left = a.remaining(&holder).await;
    Rule::Lease.check(
        left > LONG,
        format_args!("{left:?} is left of a lease extended to {:?}", LONG * 2),
    );
    a.give_back(&holder).await;
}

/// An extension shorter than the rest of the lease changes nothing.
pub async fn an_extension_never_shortens(ctx: Ctx) {
    let a = ctx.first().await;
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    extended(&a, &holder, SOME / 10).await;
    let left = a.remaining(&holder).await;
    Rule::Lease.check(
        left > SOME,
        format_args!("an extension shortened a lease of {LONG:?} to {left:?}"),
    );
    a.give_back(&holder).await;
}

/// Extending a missing lock does not create it.
pub async fn an_extension_never_creates(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (nobody, next) = (ctx.owner(), ctx.owner());
    for round in ["never held", "released"] {
        let outcome = a.extend(&nobody, LONG).await;
        Rule::Ownership.check(
            outcome == ExtendOutcome::Missing,
            format_args!("extending a lock that was {round} was answered {outcome:?}"),
        );
        Rule::Ownership.check(
            a.state().await.holder().is_none(),
            format_args!("extending created a lock that was {round}"),
        );
        b.take(&next, LONG).await;
        b.give_back(&next).await;
        a.take(&nobody, LONG).await;
        a.give_back(&nobody).await;
    }
}

/// A stranger's extension is refused and leaves the lease alone.
pub async fn an_extension_needs_the_owner(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    a.take(&holder, SOME).await;
    let outcome = b.extend(&ctx.owner(), LONG).await;
    Rule::Ownership.check(
        outcome == ExtendOutcome::TakenOver,
        format_args!("a stranger's extension was answered {outcome:?}, not TakenOver"),
    );
    let left = a.remaining(&holder).await;
    Rule::Ownership.check(left <= SOME + ROUNDING, "a stranger extended the lease");
    a.give_back(&holder).await;
}

/// A batch has one answer for each request, in order, and a failure hides no other answer.
pub async fn batches_answer_in_order(ctx: Ctx) {
    let a = ctx.first().await;
    let targets = same_shard(&ctx, &a, 9);
    let (mine, other) = (ctx.owner(), ctx.owner());
    let mut expected = Vec::new();
    for (i, target) in targets.iter().enumerate() {
        let lock = a.on(target.clone());
        expected.push(match i % 3 {
            0 => {
                lock.take(&mine, SOME).await;
                ExtendOutcome::Extended
            }
            1 => ExtendOutcome::Missing,
            _ => {
                lock.take(&other, SOME).await;
                ExtendOutcome::TakenOver
            }
        });
    }
    // An empty batch is no error either.
    Rule::Errors.check(
        a.backend.extend(&[], a.deadline()).await.is_empty(),
        "answers for no request",
    );
    let request = |target: &LockTarget| ExtendRequest::new(target.clone(), mine.clone(), LONG);
    let batch: Vec<_> = targets.iter().map(request).collect();
    let answers = a.backend.extend(&batch, a.deadline()).await;
    let answers: Result<Vec<_>, _> = answers.into_iter().collect();
    let answers = Rule::Errors.ok(answers, "an extension in a batch");
    Rule::Ownership.check(
        answers == expected,
        format_args!("a batch was answered {answers:?} instead of {expected:?}"),
    );
    for (i, target) in targets.into_iter().enumerate() {
        let lock = a.on(target);
        match i % 3 {
            0 => {
                Rule::Lease.check(
                    lock.remaining(&mine).await > SOME,
                    "a lock of a batch was not extended",
                );
                lock.give_back(&mine).await;
            }
            1 => Rule::Ownership.check(
                lock.state().await.holder().is_none(),
                "a batch created a lock",
            ),
            _ => lock.give_back(&other).await,
        }
    }
}

/// An extension may ask for the last token to be kept for longer. Otherwise it works like any
/// other: it moves the end, and creates nothing, not even a token.
pub async fn an_extension_may_keep_the_token(ctx: Ctx) {
    let a = ctx.first().await;
    let (holder, next) = (ctx.owner(), ctx.owner());
    let extension = ExtendRequest {
        keep_token: Some(TokenRetention::SHORTEST * 2),
        ..ExtendRequest::new(a.target.clone(), holder.clone(), LONG)
    };
    let extend = async || {
        let batch = [extension.clone()];
        let answer = a.backend.extend(&batch, a.deadline()).await.pop();
        let answer =
            answer.unwrap_or_else(|| Rule::Errors.broken("an extension without an answer"));
        Rule::Errors.ok(answer, "an extension that keeps the token")
    };
    let outcome = extend().await;
    let state = a.state().await;
    Rule::Ownership.check(
        outcome == ExtendOutcome::Missing && state.holder().is_none() && state.last_token.is_none(),
        format_args!("keeping a token where nothing was held: {outcome:?}, {state:?}"),
    );
    let token = a.take(&holder, SOME).await;
    let (outcome, left) = (extend().await, a.remaining(&holder).await);
    Rule::Lease.check(
        outcome == ExtendOutcome::Extended && left > SOME,
        format_args!("keeping a token as well: {outcome:?}, and {left:?} is left"),
    );
    Rule::Tokens.check(
        a.state().await.last_token == token,
        "keeping a token changed it",
    );
    a.give_back(&holder).await;
    let later = a.take(&next, SOME).await;
    Rule::Tokens.check(later > token, "a token did not grow after it was kept");
    a.give_back(&next).await;
}

/// Locks that are extended together. A store with many shards may yield fewer than requested.
fn same_shard(ctx: &Ctx, client: &Client, count: usize) -> Vec<LockTarget> {
    let shard = client.backend.shard(&ctx.target_with("0"));
    (0..20_000)
        .map(|i| ctx.target_with(&i.to_string()))
        .filter(|target| client.backend.shard(target) == shard)
        .take(count)
        .collect()
}

async fn extended(client: &Client, holder: &OwnerId, lease: Duration) {
    let outcome = client.extend(holder, lease).await;
    Rule::Ownership.check(
        outcome == ExtendOutcome::Extended,
        format_args!("the holder's extension was answered {outcome:?}"),
    );
}
