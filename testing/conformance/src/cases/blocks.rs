//! A grant reserves as many tokens as its attempt asks for, starting at its floor.

use locktopus_core::{AttemptOutcome, FencingToken, OwnerId};

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::LONG;
use crate::waiter::Waiter;

/// How many tokens the cases reserve at once.
const BLOCK: u32 = 1000;
/// How far the floors are above the previous tokens: a minute of a server's clock.
const FAR: u64 = 60_000_000;

/// The next grant's token is above all tokens that this grant reserved.
pub async fn a_grant_reserves_what_was_asked_for(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let mut last = 0;
    for client in [&a, &b, &a, &b] {
        let holder = ctx.owner();
        let first = block(client, &holder, BLOCK, None).await;
        Rule::Tokens.check(
            first > last,
            format_args!("token {first} was given although those up to {last} were reserved"),
        );
        last = first + u64::from(BLOCK) - 1;
        client.give_back(&holder).await;
    }
}

/// A repeated attempt of the holder gets the same first token, and reserves no more.
pub async fn a_repeated_block_is_the_same(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    let mut first = block(&a, &holder, BLOCK, None).await;
    for (client, another) in [(&a, false), (&b, true), (&a, true)] {
        let again = block(client, &holder, BLOCK, None).await;
        Rule::Idempotence.check(
            ctx.repeats(first, again, another),
            format_args!("a block from {first} was repeated as one from {again}"),
        );
        first = again;
    }
    a.give_back(&holder).await;
}

/// A hand-off reserves the waiter's block of tokens.
pub async fn a_waiter_reserves_its_block(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (holder, next) = (ctx.owner(), ctx.owner());
    let held = block(&a, &holder, BLOCK, None).await;
    let mut attempt = b.attempt_of(&ctx.owner(), LONG);
    attempt.tokens = BLOCK;
    let mut waiter = Waiter::join_with(&b, attempt).await;
    a.give_back(&holder).await;
    let first = number(waiter.handed().await.token);
    Rule::Tokens.check(
        first >= held + u64::from(BLOCK),
        format_args!("a waiter was handed {first}, reserved since {held}"),
    );
    let again = waiter.repeat().await.flatten();
    Rule::Idempotence.check(
        number(again) == first,
        format_args!("a waiter's block from {first} was repeated as {again:?}"),
    );
    waiter.gives_back().await;
    let then = block(&a, &next, 1, None).await;
    Rule::Tokens.check(
        then >= first + u64::from(BLOCK),
        format_args!("token {then} was given, reserved by a waiter since {first}"),
    );
    a.give_back(&next).await;
}

/// A grant's token is not below the floor of its attempt, and later ones are above it.
pub async fn a_floor_raises(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (one, two, three) = (ctx.owner(), ctx.owner(), ctx.owner());
    let low = block(&a, &one, 1, None).await;
    a.give_back(&one).await;
    let high = block(&b, &two, 1, Some(low + FAR)).await;
    Rule::Tokens.check(
        high >= low + FAR,
        format_args!("token {high} is below the floor {}", low + FAR),
    );
    b.give_back(&two).await;
    // A floor below the current token changes nothing.
    let next = block(&a, &three, 1, Some(low)).await;
    Rule::Tokens.check(
        next > high,
        format_args!("token {next} followed {high}, which a floor had raised"),
    );
    a.give_back(&three).await;
}

/// The holder's repeated attempt raises its grant's token to the floor and no higher: the nodes of
/// a quorum must agree on the token that is written to them.
pub async fn a_repetition_raises_to_its_floor(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (holder, next) = (ctx.owner(), ctx.owner());
    let low = block(&a, &holder, 1, None).await;
    let near = block(&a, &holder, 1, Some(low + 1)).await;
    Rule::Tokens.check(
        near == low + 1 || ctx.is_quorum() && near > low,
        format_args!("a repetition has token {near}, its floor is {}", low + 1),
    );
    let raised = block(&b, &holder, 1, Some(low + FAR)).await;
    Rule::Tokens.check(
        raised >= low + FAR,
        format_args!(
            "a repetition has token {raised}, its floor is {}",
            low + FAR
        ),
    );
    let again = block(&a, &holder, 1, Some(low + FAR)).await;
    Rule::Idempotence.check(
        again == raised,
        format_args!("a raised token {raised} was repeated as {again}"),
    );
    a.give_back(&holder).await;
    let then = block(&a, &next, 1, None).await;
    Rule::Tokens.check(
        then > raised,
        format_args!("token {then} followed the raised token {raised}"),
    );
    a.give_back(&next).await;
}

/// One attempt, which must be granted. Returns the first token of its block.
async fn block(client: &Client, owner: &OwnerId, tokens: u32, floor: Option<u64>) -> u64 {
    let mut attempt = client.attempt_of(owner, LONG);
    attempt.tokens = tokens;
    attempt.floor = floor.and_then(FencingToken::new);
    match client.send(&attempt).await {
        AttemptOutcome::Granted { token } => number(token),
        other => Rule::Exclusion.broken(format_args!("a free lock was answered {other:?}")),
    }
}

fn number(token: Option<FencingToken>) -> u64 {
    match token {
        Some(token) => token.get(),
        None => Rule::Tokens.broken("a grant without a token"),
    }
}
