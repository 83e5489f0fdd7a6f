//! A release that starts after a subscription wakes one of the process's waiters.

use std::time::Duration;

use locktopus_core::{AttemptOutcome, OwnerId, WakeStream};
use tokio::time::timeout;

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, until};

/// Far longer than any hint takes, far shorter than any lease in these cases.
const SOON: Duration = Duration::from_secs(5);

/// Every release wakes the subscriber, many times over one subscription.
pub async fn a_release_wakes_a_subscriber(ctx: Ctx) {
    if !ctx.wakes().await {
        return ctx.skip("no hints");
    }
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (holder, waiter) = (ctx.owner(), ctx.owner());
    let mut hints = b.subscribe().await;
    for _ in 0..10 {
        a.take(&holder, LONG).await;
        a.give_back(&holder).await;
        win(&b, &waiter, &mut hints).await;
        b.give_back(&waiter).await;
    }
    hints.won();
}

/// One waiter of each client is woken: the clients do not know each other.
pub async fn every_client_is_woken(ctx: Ctx) {
    if !ctx.wakes().await {
        return ctx.skip("no hints");
    }
    if ctx.has_shared_waiters() {
        return ctx.skip("all clients are one process");
    }
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    let (mut one, mut two) = (a.subscribe().await, b.subscribe().await);
    a.take(&holder, LONG).await;
    a.give_back(&holder).await;
    heard(&mut one).await;
    heard(&mut two).await;
}

/// A woken waiter that leaves passes the hint on.
pub async fn an_unused_hint_is_passed_on(ctx: Ctx) {
    if !ctx.wakes().await {
        return ctx.skip("no hints");
    }
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    let (mut one, mut two) = (b.subscribe().await, b.subscribe().await);
    a.give_back(&holder).await;
    let first = timeout(SOON, async {
        tokio::select! { _ = one.next() => true, _ = two.next() => false }
    });
    let mut other = match first.await {
        Ok(true) => {
            drop(one);
            two
        }
        Ok(false) => {
            drop(two);
            one
        }
        Err(_) => Rule::Wakes.broken("a release woke nobody"),
    };
    heard(&mut other).await;
}

/// Subscriptions come and go; the remaining ones and later ones are woken.
pub async fn a_dropped_subscription_harms_nobody(ctx: Ctx) {
    if !ctx.wakes().await {
        return ctx.skip("no hints");
    }
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (holder, waiter) = (ctx.owner(), ctx.owner());
    for stays in [false, true, false] {
        let kept = if stays {
            Some(b.subscribe().await)
        } else {
            None
        };
        let gone = b.subscribe().await;
        a.take(&holder, LONG).await;
        drop(gone);
        let mut hints = match kept {
            Some(kept) => kept,
            None => b.subscribe().await,
        };
        a.give_back(&holder).await;
        win(&b, &waiter, &mut hints).await;
        b.give_back(&waiter).await;
    }
}

/// Two waiters of one client need two releases; the second is the first waiter's own.
pub async fn two_subscribers_two_releases(ctx: Ctx) {
    if !ctx.wakes().await {
        return ctx.skip("no hints");
    }
    let (a, b) = (ctx.first().await, ctx.second().await);
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    let waiters = [
        b.subscribe().await,
        b.subscribe().await,
        b.subscribe().await,
    ];
    let waiters = waiters.map(|mut hints| {
        let (b, owner) = (b.clone(), ctx.owner());
        async move {
            win(&b, &owner, &mut hints).await;
            hints.won();
            b.give_back(&owner).await;
        }
    });
    let ((), _) = tokio::join!(
        a.give_back(&holder),
        futures_util::future::join_all(waiters)
    );
}

/// A waiter that joins earlier listeners, if the backend supports it, is woken as they are.
pub async fn who_joins_the_listeners_misses_nothing(ctx: Ctx) {
    if !ctx.wakes().await {
        return ctx.skip("no hints");
    }
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (holder, waiter) = (ctx.owner(), ctx.owner());
    for listened_before in [false, true] {
        let subscribed = match listened_before {
            true => Some(b.subscribe().await),
            false => None,
        };
        let Some(mut hints) = b.backend.listen(&b.target) else {
            continue;
        };
        drop(subscribed);
        a.take(&holder, LONG).await;
        hints.claim(&waiter);
        let mut attempt = b.attempt_of(&waiter, LONG);
        attempt.place = Some(LONG);
        let queued = matches!(b.send(&attempt).await, AttemptOutcome::Queued { .. });
        Rule::Queue.check(queued, "a held lock gave no place");
        a.give_back(&holder).await;
        heard(&mut hints).await;
        until(
            Rule::HandOff,
            Duration::ZERO,
            "the waiter's turn",
            || async { matches!(b.send(&attempt).await, AttemptOutcome::Granted { .. }) },
        )
        .await;
        b.give_back(&waiter).await;
    }
}

/// Tries on each hint, and never otherwise, until it holds the lock.
async fn win(client: &Client, waiter: &OwnerId, hints: &mut WakeStream) {
    loop {
        heard(hints).await;
        if let AttemptOutcome::Granted { .. } = client.attempt(waiter, LONG).await {
            return;
        }
    }
}

async fn heard(hints: &mut WakeStream) {
    if timeout(SOON, hints.next()).await.is_err() {
        Rule::Wakes.broken(format_args!(
            "the lock was released and the waiter heard nothing for {SOON:?}"
        ));
    }
}
