//! Between a grant and its end, no other owner is granted the same lock.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use locktopus_core::AttemptOutcome;

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, ROUNDING};

/// A held lock is refused to all other owners, from every client, until its release.
pub async fn one_owner_at_a_time(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (holder, stranger) = (ctx.owner(), ctx.owner());
    a.take(&holder, LONG).await;
    a.refused(&stranger).await;
    b.refused(&stranger).await;
    a.holder(&holder).await;
    a.give_back(&holder).await;
    b.take(&stranger, LONG).await;
    a.refused(&holder).await;
    b.give_back(&stranger).await;
}

/// Holding one name says nothing about another.
pub async fn names_are_independent(ctx: Ctx) {
    let a = ctx.first().await;
    let b = ctx.prepared(a.on(ctx.target_with("x"))).await;
    let (one, two) = (ctx.owner(), ctx.owner());
    a.take(&one, LONG).await;
    b.take(&two, LONG).await;
    a.give_back(&one).await;
    b.holder(&two).await;
    b.give_back(&two).await;
}

/// Exactly one of many simultaneous attempts is granted; at a quorum none, if they split the votes.
pub async fn one_of_many_wins(ctx: Ctx) {
    let clients = [ctx.first().await, ctx.second().await];
    for _ in 0..8 {
        let granted = AtomicUsize::new(0);
        let attempts = (0..16).map(|i| attempt_once(&ctx, &clients[i % 2], &granted));
        let winners: Vec<_> = join_all(attempts).await.into_iter().flatten().collect();
        let count = granted.load(Ordering::Relaxed);
        Rule::Exclusion.check(
            count == 1 || count == 0 && ctx.is_quorum(),
            format_args!("{count} of 16 simultaneous attempts were granted"),
        );
        for winner in winners {
            clients[0].give_back(&winner).await;
        }
    }
}

async fn attempt_once(
    ctx: &Ctx,
    client: &Client,
    granted: &AtomicUsize,
) -> Option<locktopus_core::OwnerId> {
    let owner = ctx.owner();
    match client.attempt(&owner, LONG).await {
        AttemptOutcome::Granted { .. } => {
            granted.fetch_add(1, Ordering::Relaxed);
            Some(owner)
        }
        _ => None,
    }
}

/// A refusal includes the rest of the holder's lease, so that waiters can sleep that long.
pub async fn a_refusal_tells_what_is_left(ctx: Ctx) {
    let a = ctx.first().await;
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    let remaining = a.refused(&ctx.owner()).await;
    let told = remaining.is_some_and(|left| left <= LONG + ROUNDING && left > LONG / 2);
    Rule::Lease.check(
        told,
        format_args!("of a lease of {LONG:?} just begun, {remaining:?} is said to be left"),
    );
    a.give_back(&holder).await;
}
