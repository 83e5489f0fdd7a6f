//! A lock stays held without an owner after its release, until its minimum hold time is over.

use std::time::Duration;

use locktopus_core::{
    ExtendOutcome, Linger, OwnerId, ReleaseOutcome, ReleaseRequest, WaitStrategy,
};
use tokio::time::{Instant, timeout};

use super::expiry::take_over;
use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::LONG;
use crate::waiter::Waiter;

/// How long to wait for a message that must not come, from a nearby store.
const SILENCE: Duration = Duration::from_millis(100);

/// Releases the lock and leaves it held under the id `heir` for `time`.
async fn leave(client: &Client, owner: &OwnerId, heir: &OwnerId, time: Duration) -> ReleaseOutcome {
    let (target, owner) = (client.target.clone(), owner.clone());
    let request = ReleaseRequest {
        linger: Some(Linger {
            heir: heir.clone(),
            time,
        }),
        ..ReleaseRequest::new(target, owner, client.deadline())
    };
    Rule::Errors.ok(client.backend.release(&request).await, "a release")
}

/// As [`leave`]; the lock must be held.
async fn left(client: &Client, owner: &OwnerId, heir: &OwnerId, time: Duration) {
    let outcome = leave(client, owner, heir, time).await;
    Rule::Ownership.check(
        outcome == ReleaseOutcome::Released,
        "the holder's release was answered NotHeld",
    );
}

/// The first client; `None`, and the case is skipped, if nothing lingers.
async fn first(ctx: &Ctx) -> Option<Client> {
    let client = ctx.first().await;
    if client.backend.info().longest_linger.is_zero() {
        ctx.skip("this backend leaves no lock held");
        return None;
    }
    Some(client)
}

/// It ends on time and not early, although the lease was longer. It has a new token if the kind has
/// tokens.
pub async fn a_lock_can_be_left_held(ctx: Ctx) {
    let Some(a) = first(&ctx).await else { return };
    let b = ctx.second().await;
    let (owner, heir, short) = (ctx.owner(), ctx.owner(), ctx.short());
    let token = a.take(&owner, LONG).await;
    let begun = Instant::now();
    left(&a, &owner, &heir, short).await;
    b.holder(&heir).await;
    let remaining = b.refused(&ctx.owner()).await;
    Rule::Lease.check(
        remaining.is_some_and(|left| left <= short),
        format_args!("left for {short:?}, and {remaining:?} are left of it"),
    );
    take_over(&b, &ctx.owner(), short).await;
    Rule::Lease.check(
        begun.elapsed() >= short,
        format_args!("left for {short:?}, and had after {:?}", begun.elapsed()),
    );
    Rule::Tokens.check(
        b.state().await.last_token > token || !ctx.flavour().has_tokens(),
        "no new token after a lock was left held",
    );
}

/// It stays held for longer than its lease was; an eviction ends that.
pub async fn it_may_be_left_for_longer_than_its_lease(ctx: Ctx) {
    let Some(a) = first(&ctx).await else { return };
    let b = ctx.second().await;
    let (owner, heir, short) = (ctx.owner(), ctx.owner(), ctx.short());
    let _ = a.take(&owner, short).await;
    left(&a, &owner, &heir, LONG).await;
    tokio::time::sleep(short * 2).await;
    b.refused(&ctx.owner()).await;
    match b.backend.directory() {
        Some(_) => drop(b.evict().await),
        None => b.give_back(&heir).await,
    }
    let next = ctx.owner();
    b.take(&next, LONG).await;
    b.give_back(&next).await;
}

/// The owner that left it holds nothing: a release or an extension by that owner, before or after,
/// changes nothing.
pub async fn who_left_it_has_no_part_in_it(ctx: Ctx) {
    let Some(a) = first(&ctx).await else { return };
    let b = ctx.second().await;
    let (owner, heir) = (ctx.owner(), ctx.owner());
    let _ = a.take(&owner, LONG).await;
    left(&a, &owner, &heir, LONG / 2).await;
    for client in [&a, &b] {
        let extended = client.extend(&owner, LONG * 2).await;
        Rule::Ownership.check(
            extended == ExtendOutcome::TakenOver,
            format_args!("who left the lock extended it: {extended:?}"),
        );
        let released = client.release(&owner).await;
        Rule::Ownership.check(
            released == ReleaseOutcome::NotHeld,
            "who left the lock released it again",
        );
    }
    let remaining = b.remaining(&heir).await;
    Rule::Lease.check(
        remaining <= LONG / 2,
        format_args!("left for {:?}, and {remaining:?} are left of it", LONG / 2),
    );
    // The first answer may have been lost: repeating the request has the same effect.
    left(&b, &owner, &heir, LONG / 2).await;
    b.give_back(&heir).await;
}

/// A stranger cannot leave a lock held.
pub async fn a_stranger_leaves_nothing(ctx: Ctx) {
    let Some(a) = first(&ctx).await else { return };
    let (owner, stranger) = (ctx.owner(), ctx.owner());
    let nothing = leave(&a, &stranger, &ctx.owner(), LONG).await;
    Rule::Ownership.check(
        nothing == ReleaseOutcome::NotHeld && a.state().await.holder().is_none(),
        "leaving a free lock made it held",
    );
    let _ = a.take(&owner, LONG).await;
    let nothing = leave(&a, &stranger, &ctx.owner(), LONG).await;
    Rule::Ownership.check(
        nothing == ReleaseOutcome::NotHeld,
        "a stranger left the holder's lock",
    );
    a.holder(&owner).await;
    a.give_back(&owner).await;
}

/// A waiter is not handed a lock that was left held, and gets it when the time is over.
pub async fn a_waiter_is_not_handed_what_was_left(ctx: Ctx) {
    let Some(a) = first(&ctx).await else { return };
    let b = ctx.second().await;
    let (owner, short) = (ctx.owner(), ctx.short());
    let _ = a.take(&owner, LONG).await;
    let mut waiter = Waiter::join(&b, &ctx.owner()).await;
    let begun = Instant::now();
    left(&a, &owner, &ctx.owner(), short).await;
    let handed = timeout(SILENCE + ctx.far(), waiter.handed()).await;
    Rule::HandOff.check(
        handed.is_err(),
        format_args!("a lock that was left held was handed on: {handed:?}"),
    );
    let _ = waiter.asks().await;
    Rule::Lease.check(
        begun.elapsed() >= short,
        format_args!("left for {short:?}, and had after {:?}", begun.elapsed()),
    );
    waiter.gives_back().await;
}

/// A user's job that ends at once does not run again before its time, and then it does.
pub async fn a_job_that_ends_early_is_not_run_again(ctx: Ctx) {
    if first(&ctx).await.is_none() {
        return;
    }
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let least = ctx.short() * 2;
    let request = |locks| ctx.request(locks).hold_at_least(least);
    let begun = Instant::now();
    let ran = request(&a).try_run(|_| async {}).await;
    let ran = Rule::Api.ok(ran, "a job");
    Rule::Api.check(ran.is_some(), "a job was skipped that nobody does");
    while begun.elapsed() < least {
        for locks in [&a, &b] {
            let again = Rule::Api.ok(request(locks).try_run(|_| async {}).await, "a job");
            // It may have started just when the time was over.
            Rule::Api.check(
                again.is_none() || begun.elapsed() >= least,
                format_args!("a job was run again after {:?}", begun.elapsed()),
            );
        }
        tokio::time::sleep(least / 20).await;
    }
    // The second one ends its hold by dropping the guard.
    let begun = Instant::now();
    let guard = ctx.request(&b).hold_at_least(least).acquire().await;
    drop(Rule::Api.ok(guard, "acquiring"));
    // Waiters are not notified, so this one polls.
    let looks = WaitStrategy::Poll {
        min: least / 20,
        max: least / 20,
    };
    let next = ctx.request(&a).strategy(looks);
    let next = next.wait_at_most(least + ctx.slack()).acquire().await;
    let next = Rule::Api.ok(next, "acquiring");
    Rule::Api.check(
        begun.elapsed() >= least,
        format_args!(
            "held at least {least:?}, and had after {:?}",
            begun.elapsed()
        ),
    );
    Rule::Api.ok(next.release().await, "a release");
}
