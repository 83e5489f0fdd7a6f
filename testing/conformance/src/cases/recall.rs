//! A holder that asked for it is notified when another owner wants its lock.

use std::time::Duration;

use locktopus_core::{AcquireAttempt, AttemptOutcome, OwnerId, Wake, WakeStream};
use tokio::time::timeout;

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, SLACK};
use crate::waiter::Waiter;

/// How long to wait for a message that must not come, from a nearby store.
const SILENCE: Duration = Duration::from_millis(100);

/// A holder that listens.
struct Holder {
    client: Client,
    attempt: AcquireAttempt,
    heard: WakeStream,
    silence: Duration,
}

impl Holder {
    /// Listens, then acquires the lock. `None`, and the case is skipped, if holders are never
    /// notified.
    async fn take(ctx: &Ctx, client: &Client, recall: bool) -> Option<Self> {
        if !client.backend.info().supports_recall {
            ctx.skip("this backend does not tell holders that they are wanted");
            return None;
        }
        let heard = client.subscribe().await;
        let attempt = AcquireAttempt {
            recall,
            ..client.attempt_of(&ctx.owner(), LONG)
        };
        heard.claim(&attempt.owner);
        granted(client, &attempt).await;
        let client = client.clone();
        Some(Self {
            client,
            attempt,
            heard,
            silence: SILENCE + ctx.far(),
        })
    }

    fn owner(&self) -> &OwnerId {
        &self.attempt.owner
    }

    async fn is_told(&mut self) {
        loop {
            match timeout(SLACK, self.heard.next()).await {
                Ok(Wake::Wanted) => return,
                Ok(_) => {}
                Err(_) => Rule::Recall.broken("others want the lock, and its holder was not told"),
            }
        }
    }

    async fn hears_nothing(&mut self, why: &str) {
        while let Ok(wake) = timeout(self.silence, self.heard.next()).await {
            Rule::Recall.check(
                wake != Wake::Wanted,
                format_args!("a holder was told that it is wanted, {why}"),
            );
        }
    }
}

async fn granted(client: &Client, attempt: &AcquireAttempt) {
    let answer = client.send(attempt).await;
    Rule::Exclusion.check(
        matches!(answer, AttemptOutcome::Granted { .. }),
        format_args!("a free lock, or the owner's own, was answered {answer:?}"),
    );
}

/// One attempt of another client is enough. The holder's own calls notify no one.
pub async fn a_holder_that_asked_is_told(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let Some(mut holder) = Holder::take(&ctx, &a, true).await else {
        return;
    };
    granted(&a, &holder.attempt).await;
    let _ = a.extend(holder.owner(), LONG).await;
    let _ = b.state().await;
    holder.hears_nothing("by nobody else").await;
    b.refused(&ctx.owner()).await;
    holder.is_told().await;
    a.give_back(holder.owner()).await;
}

/// A waiter does too, and then gets the lock by its release. If the waiter asked as well, it is
/// notified in turn.
pub async fn a_waiter_tells_the_holder(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    for client in [&a, &b, &a] {
        let Some(mut holder) = Holder::take(&ctx, client, true).await else {
            return;
        };
        let mut waiter = Waiter::join(&b, &ctx.owner()).await;
        holder.is_told().await;
        client.give_back(holder.owner()).await;
        waiter.handed().await;
        waiter.gives_back().await;
    }
}

/// A group that wants the lock does too.
pub async fn a_group_tells_the_holder(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let Some(mut holder) = Holder::take(&ctx, &a, true).await else {
        return;
    };
    let free = b.on(ctx.target_with(":free"));
    let attempts = if b.backend.group(&free.target) == b.backend.group(&b.target) {
        vec![
            free.attempt_of(&ctx.owner(), LONG),
            b.attempt_of(&ctx.owner(), LONG),
        ]
    } else {
        vec![b.attempt_of(&ctx.owner(), LONG)]
    };
    if b.backend.group(&b.target).is_some() {
        let answer = b.backend.attempt_all(&attempts).await;
        let _ = Rule::Errors.ok(answer, "an attempt for a group");
        holder.is_told().await;
    }
    a.give_back(holder.owner()).await;
}

/// An eviction does too.
pub async fn an_eviction_tells_the_holder(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let Some(mut holder) = Holder::take(&ctx, &a, true).await else {
        return;
    };
    let _ = b.evict().await;
    holder.is_told().await;
}

/// Other holders are not notified.
pub async fn a_holder_that_did_not_ask_is_not_told(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let Some(mut holder) = Holder::take(&ctx, &a, false).await else {
        return;
    };
    b.refused(&ctx.owner()).await;
    let waiter = Waiter::join(&b, &ctx.owner()).await;
    holder.hears_nothing("and did not ask to be").await;
    let _ = waiter.leaves().await;
    a.give_back(holder.owner()).await;
}

/// A former holder is not notified of requests to its successor, nor the successor in its place.
pub async fn a_former_holder_is_not_told(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let Some(mut former) = Holder::take(&ctx, &a, true).await else {
        return;
    };
    a.give_back(former.owner()).await;
    let Some(mut holder) = Holder::take(&ctx, &b, false).await else {
        return;
    };
    a.refused(&ctx.owner()).await;
    former.hears_nothing("and holds it no longer").await;
    holder.hears_nothing("and did not ask to be").await;
    let _ = former.client.release(former.owner()).await;
    b.give_back(holder.owner()).await;
}

/// A backend or a kind that never notifies takes the attempt like any other.
pub async fn asking_to_be_told_changes_nothing_else(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    for place in [None, Some(LONG)] {
        let attempt = AcquireAttempt {
            recall: true,
            place: place
                .filter(|_| a.backend.info().supports_queue && ctx.flavour().kind().hands_off()),
            ..a.attempt_of(&ctx.owner(), LONG)
        };
        granted(&a, &attempt).await;
        a.holder(&attempt.owner).await;
        b.refused(&ctx.owner()).await;
        granted(&a, &attempt).await;
        a.give_back(&attempt.owner).await;
        let next = ctx.owner();
        b.take(&next, LONG).await;
        b.give_back(&next).await;
    }
}
