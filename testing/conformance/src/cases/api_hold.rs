//! Holding a lock, as users of `Locktopus` see it.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{LockError, Locktopus, LostCause, SafetyMode};
use tokio::time::{Instant, timeout};

use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, until};

/// A lease that the watchdog renews several times during a case on a nearby store. Long enough that
/// a busy machine renews in time.
const RENEWED: Duration = Duration::from_millis(2_400);
/// It is longer by this many exchanges: a renewal must be answered within a third of the lease, and
/// needs up to two exchanges.
const EXCHANGES: u32 = 8;

/// The lease of a lock that `locks` renews.
fn renewed_lease(ctx: &Ctx, locks: &Locktopus) -> Duration {
    let nearby = match locks.backend().safety {
        // The nodes of a quorum must answer within a tenth of the lease.
        _ if ctx.is_quorum() => RENEWED * 3,
        // Answers wait for a replica, one after the other.
        SafetyMode::Replicated { .. } => RENEWED * 2,
        _ => RENEWED,
    };
    nearby + ctx.far() * EXCHANGES
}

/// The watchdog keeps a lock for several leases, and stops at the release.
pub async fn the_watchdog_renews(ctx: Ctx) {
    let (a, b) = (ctx.locks(0).await, ctx.second().await);
    let renewed = renewed_lease(&ctx, &a);
    let guard = ctx.request(&a).renewed_lease(renewed).acquire().await;
    let guard = Rule::Api.ok(guard, "acquiring");
    let end = Instant::now() + renewed * 2;
    while Instant::now() < end {
        b.refused(&ctx.owner()).await;
        Rule::Api.ok(guard.ensure_valid(), "a renewed lock");
        tokio::time::sleep(renewed / 10).await;
    }
    let owner = guard.owner_id().clone();
    Rule::Api.ok(guard.release().await, "a release after renewals");
    let next = ctx.owner();
    b.take(&next, LONG).await;
    tokio::time::sleep(renewed).await;
    Rule::Ownership.check(owner != next, "owner ids repeat");
    b.holder(&next).await;
    b.give_back(&next).await;
}

/// A lease that is not renewed ends on time on both sides; the holder knows before the server.
pub async fn an_explicit_lease_ends_on_time(ctx: Ctx) {
    let slack = ctx.slack();
    let short = ctx.short();
    let (a, b) = (ctx.locks(0).await, ctx.second().await);
    let sent = Instant::now();
    let guard = ctx.request(&a).fixed_lease(short).acquire().await;
    let guard = Rule::Api.ok(guard, "acquiring");
    let until = guard.valid_until();
    Rule::Lease.check(
        until >= sent && until.saturating_duration_since(sent) < short + slack,
        "the deadline is out of place",
    );
    let cause = timeout(short + slack, guard.lost()).await;
    let late = Instant::now().saturating_duration_since(until);
    Rule::Api.check(
        cause == Ok(LostCause::Expired),
        format_args!("an explicit lease ended with {cause:?}"),
    );
    Rule::Api.check(
        late < slack,
        format_args!("the end of a lease was told {late:?} late"),
    );
    super::expiry::take_over(&b, &ctx.owner(), short).await;
    let released = guard.release().await;
    Rule::Api.check(
        matches!(released, Err(LockError::Lost { .. })),
        format_args!("releasing an ended lease gave {released:?}"),
    );
}

/// A renewed hold ends at its maximum hold time.
pub async fn a_hold_ends_at_its_maximum(ctx: Ctx) {
    let slack = ctx.slack();
    let short = ctx.short();
    let a = ctx.locks(0).await;
    // The lease alone would outlast the maximum, so a slow renewal cannot be mistaken for it.
    let request = ctx.request(&a).renewed_lease(short * 3).max_hold(short * 2);
    let started = Instant::now();
    let guard = Rule::Api.ok(request.acquire().await, "acquiring");
    let cause = timeout(short * 2 + slack, guard.lost()).await;
    Rule::Api.check(
        cause == Ok(LostCause::MaxHold)
            && started.elapsed() + Duration::from_millis(1) >= short * 2,
        format_args!(
            "a hold with a maximum ended with {cause:?} after {:?}",
            started.elapsed()
        ),
    );
    drop(guard);
    let b = ctx.locks(1).await;
    let next = timeout(slack, ctx.request(&b).acquire()).await;
    Rule::Api.check(
        matches!(next, Ok(Ok(_))),
        "a hold that ended at its maximum still blocks others",
    );
}

/// The holder of a deleted lock learns of it at the next renewal.
pub async fn a_deleted_lock_is_lost(ctx: Ctx) {
    let a = ctx.locks(0).await;
    let (slack, renewed) = (ctx.slack(), renewed_lease(&ctx, &a));
    let guard = ctx.request(&a).renewed_lease(renewed).acquire().await;
    let guard = Rule::Api.ok(guard, "acquiring");
    if !ctx.wipe().await {
        return;
    }
    let cause = timeout(renewed + slack, guard.lost()).await;
    Rule::Api.check(
        cause == Ok(LostCause::Missing),
        format_args!("a deleted lock ended with {cause:?}"),
    );
    let released = guard.release().await;
    Rule::Api.check(
        matches!(released, Err(LockError::Lost { .. })),
        format_args!("releasing a deleted lock gave {released:?}"),
    );
}

/// `run` drops the work where it stands when the lock is lost.
pub async fn work_is_dropped_when_the_lock_is_lost(ctx: Ctx) {
    let slack = ctx.slack();
    let short = ctx.short();
    let a = ctx.locks(0).await;
    let alive = Arc::new(());
    let work = Arc::clone(&alive);
    let run = ctx.request(&a).fixed_lease(short).run(|_lease| async move {
        pending::<()>().await;
        drop(work);
    });
    let done = timeout(short + slack, run).await;
    let lost = matches!(
        done,
        Ok(Err(LockError::Lost {
            cause: LostCause::Expired,
            ..
        }))
    );
    Rule::Api.check(
        lost,
        format_args!("work under a lost lock ended with {done:?}"),
    );
    Rule::Api.check(
        Arc::strong_count(&alive) == 1,
        "the work was not dropped with the lock",
    );
}

/// `run` works under the lock, returns the result, and releases the lock.
pub async fn work_is_done_under_the_lock(ctx: Ctx) {
    let (a, b) = (ctx.locks(0).await, ctx.second().await);
    let (client, stranger) = (b.clone(), ctx.owner());
    let run = ctx.request(&a).run(|lease| async move {
        client.refused(&stranger).await;
        lease.ensure_valid().map(|()| lease.token())
    });
    let token = Rule::Api.ok(Rule::Api.ok(run.await, "running"), "the lease");
    Rule::Tokens.check(
        token.is_some() == ctx.flavour().has_tokens(),
        "the work has no token",
    );
    let next = ctx.owner();
    b.take(&next, LONG).await;
    b.give_back(&next).await;
}

/// `extend` moves the deadline on both sides.
pub async fn an_extension_counts(ctx: Ctx) {
    let (a, b) = (ctx.locks(0).await, ctx.second().await);
    let guard = ctx.request(&a).fixed_lease(LONG / 3).acquire().await;
    let guard = Rule::Api.ok(guard, "acquiring");
    let before = guard.valid_until();
    let after = Rule::Api.ok(guard.extend(LONG).await, "extending");
    Rule::Lease.check(
        after > before + LONG / 3 && guard.valid_until() == after,
        "an extension did not move the deadline out",
    );
    Rule::Lease.check(
        b.remaining(guard.owner_id()).await > LONG / 2,
        "an extension did not reach the store",
    );
    Rule::Api.ok(guard.release().await, "a release");
}

/// A dropped guard releases its lock in the background, long before its lease would end.
pub async fn a_dropped_guard_gives_back(ctx: Ctx) {
    let (a, b) = (ctx.locks(0).await, ctx.second().await);
    drop(Rule::Api.ok(ctx.request(&a).acquire().await, "acquiring"));
    until(
        Rule::Api,
        ctx.settling().await,
        "a dropped guard keeps its lock",
        || async { b.state().await.holder().is_none() && a.background_tasks() == 0 },
    )
    .await;
    Rule::Api.check(a.held() == 0, "a dropped guard counts as held");
}
