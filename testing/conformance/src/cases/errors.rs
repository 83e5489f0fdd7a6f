//! Errors say what happened, deadlines are kept, and dropped calls are harmless.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use locktopus_core::{
    AttemptOutcome, BackendError, BackendErrorKind, Executed, ExtendOutcome, ExtendRequest,
    LockTarget, ReleaseOutcome, ReleaseRequest, SafetyMode,
};
use tokio::time::Instant;

use crate::cases::scan::lists;
use crate::client::Client;
use crate::ctx::Ctx;
use crate::flavour::Flavour;
use crate::rule::Rule;
use crate::timing::{LONG, ROUNDING, SLACK, until};

/// A call past its deadline is answered soon, and its error is right about whether it ran.
pub async fn a_spent_deadline_is_answered_soon(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let owner = ctx.owner();
    let mut attempt = a.attempt_of(&owner, LONG);
    attempt.deadline = Instant::now();
    let answer = in_time(a.backend.attempt(&attempt)).await;
    match answer {
        Ok(AttemptOutcome::Granted { .. }) => {
            b.holder(&owner).await;
        }
        Ok(_) => Rule::Exclusion.broken("a lock that was never held was refused"),
        Err(error) => {
            Rule::Deadlines.check(
                is_of_a_deadline(&a, &error),
                format_args!("a spent deadline is an error of kind {:?}", error.kind()),
            );
            let held = b.state().await.holder().is_some();
            Rule::Errors.check(
                !(held && error.executed() == Executed::No),
                "an attempt took the lock and was answered Executed::No",
            );
        }
    }
    let _ = in_time(a.backend.inspect(&ctx.target(), Instant::now())).await;
    let _ = in_time(a.backend.subscribe(&ctx.target(), Instant::now())).await;
    let _ = in_time(a.backend.diagnose(Instant::now())).await;
    let _ = a.release(&owner).await;
}

/// A change past its deadline gets a true answer about whether it happened.
pub async fn a_late_change_is_told_truly(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let owner = ctx.owner();
    a.take(&owner, LONG).await;
    let release = ReleaseRequest::new(ctx.target(), owner.clone(), Instant::now());
    let answer = in_time(a.backend.release(&release)).await;
    let answer = answer.map(|outcome| outcome == ReleaseOutcome::Released);
    told_truly(&a, "a release", answer, !b.is_held_by(&owner).await);
    let _ = a.release(&owner).await;

    let owner = ctx.owner();
    a.take(&owner, LONG).await;
    let extension = [ExtendRequest::new(ctx.target(), owner.clone(), LONG * 4)];
    let mut answers = in_time(a.backend.extend(&extension, Instant::now())).await;
    let answer = answers.remove(0);
    let answer = answer.map(|outcome| outcome == ExtendOutcome::Extended);
    let longer = b.remaining(&owner).await > LONG + ROUNDING;
    told_truly(&a, "an extension", answer, longer);

    // Last, because a call answered Maybe may still run.
    if a.backend.directory().is_some() {
        let answer = in_time(a.backend.evict(&ctx.target(), Instant::now())).await;
        let answer = answer.map(|eviction| eviction.evicted.contains(&owner));
        told_truly(&a, "an eviction", answer, !b.is_held_by(&owner).await);
    }
    let _ = a.release(&owner).await;
}

/// After `close` every call fails with kind `Closed`, and closing again is fine.
pub async fn a_closed_client_says_so(ctx: Ctx) {
    let backend = ctx.fresh().await;
    let client = ctx.prepared(Client::new(backend, ctx.target())).await;
    let owner = ctx.owner();
    client.take(&owner, LONG).await;
    let stream = match ctx.wakes().await {
        true => Some(client.subscribe().await),
        false => None,
    };
    let has_lists = lists(&client).await;
    in_time(client.backend.close()).await;
    drop(stream);
    in_time(client.backend.close()).await;
    closed(
        in_time(client.try_attempt(&ctx.owner(), LONG)).await,
        "an attempt",
    );
    closed(in_time(client.try_release(&owner)).await, "a release");
    closed(
        in_time(client.try_extend(&owner, LONG)).await,
        "an extension",
    );
    let (target, deadline) = (ctx.target(), client.deadline());
    closed(
        in_time(client.backend.inspect(&target, deadline)).await,
        "an inspection",
    );
    // A backend without a directory has none before or after.
    if client.backend.directory().is_some() {
        closed(
            in_time(client.backend.evict(&target, deadline)).await,
            "an eviction",
        );
    }
    if client.backend.wake_ups().is_some() {
        closed(
            in_time(client.backend.subscribe(&target, deadline)).await,
            "a subscription",
        );
    }
    if has_lists {
        let page = client.backend.scan(ctx.name(), None, deadline);
        closed(in_time(page).await, "a list");
    }
    ctx.first().await.give_back(&owner).await;
}

/// Closing one client does not disturb other clients of the same store.
pub async fn closing_one_client_leaves_others(ctx: Ctx) {
    let (a, other) = (ctx.first().await, ctx.fresh().await);
    let owner = ctx.owner();
    a.take(&owner, LONG).await;
    other.close().await;
    a.holder(&owner).await;
    a.give_back(&owner).await;
}

/// Calls may be dropped at any point. After a release of the same owner, nothing is left beyond one
/// lease.
pub async fn dropped_futures_leave_nothing_for_long(ctx: Ctx) {
    let short = ctx.short();
    let a = ctx.first().await;
    for polls in 0..6 {
        let owner = ctx.owner();
        let call = a.try_attempt(&owner, short);
        poll_some(polls, call).await;
        let _ = a.release(&owner).await;
        poll_some(polls, a.try_release(&owner)).await;
        poll_some(polls, a.try_extend(&owner, short)).await;
        let target = ctx.target();
        poll_some(polls, a.backend.subscribe(&target, a.deadline())).await;
    }
    let next = ctx.owner();
    until(
        Rule::CancelSafety,
        short,
        "a dropped attempt keeps the lock",
        || async { matches!(a.attempt(&next, LONG).await, AttemptOutcome::Granted { .. }) },
    )
    .await;
    a.give_back(&next).await;
}

/// Hundreds of concurrent calls are all answered.
pub async fn many_calls_at_once(ctx: Ctx) {
    let a = ctx.first().await;
    let locks = (0..200).map(|i| {
        let (lock, owner) = (a.on(ctx.target_with(&format!("-{i}"))), ctx.owner());
        let ctx = &ctx;
        async move {
            let lock = ctx.prepared(lock).await;
            lock.take(&owner, LONG).await;
            lock.holder(&owner).await;
            lock.release(&owner).await == ReleaseOutcome::Released
        }
    });
    let released = join_all(locks).await;
    Rule::Ownership.check(
        released.into_iter().all(|yes| yes),
        "one of many locks was gone",
    );
}

/// Diagnosing a healthy store succeeds and names its nodes.
pub async fn a_diagnosis_names_nodes(ctx: Ctx) {
    let slack = ctx.slack();
    let a = ctx.first().await;
    let deadline = Instant::now() + slack;
    let diagnosis = Rule::Errors.ok(a.backend.diagnose(deadline).await, "a diagnosis");
    Rule::Inspection.check(!diagnosis.nodes.is_empty(), "a diagnosis without nodes");
    let info = a.backend.info();
    Rule::Api.check(
        !info.name.is_empty() && !info.description.is_empty() && !info.call_timeout.is_zero(),
        format_args!("the description is incomplete: {info:?}"),
    );
}

/// A second kind on a name in use is refused, or does not touch the first.
pub async fn two_kinds_on_one_name_do_no_harm(ctx: Ctx) {
    let a = ctx.first().await;
    let holder = ctx.owner();
    a.take(&holder, LONG).await;
    let other = match ctx.flavour() {
        Flavour::Mutex | Flavour::SingleKey => Flavour::Lock,
        _ => Flavour::Mutex,
    };
    let b = a.on(LockTarget::new(ctx.target().name().clone(), other.kind()));
    let stranger = other.owner();
    let attempted = b.try_attempt(&stranger, LONG).await;
    let released = b.try_release(&stranger).await;
    let extended = b.try_extend(&stranger, LONG * 4).await;
    let errors = [attempted.err(), released.err(), extended.err()];
    for error in errors.into_iter().flatten() {
        Rule::Errors.check(
            error.executed() == Executed::No && !error.is_transient(),
            format_args!("a name in use as another kind is the error {error:?}"),
        );
    }
    let left = a.remaining(&holder).await;
    Rule::Ownership.check(left <= LONG + ROUNDING, "another kind extended the lease");
    a.give_back(&holder).await;
}

/// Whether an error can come from an expired deadline. The change may be in time and the replicas'
/// confirmation late.
fn is_of_a_deadline(a: &Client, error: &BackendError) -> bool {
    match error.kind() {
        BackendErrorKind::Timeout => true,
        BackendErrorKind::NotReplicated => {
            matches!(a.backend.info().safety, SafetyMode::Replicated { .. })
        }
        _ => false,
    }
}

/// `answer` says whether a change past its deadline was made; `made` is whether it really was.
fn told_truly(a: &Client, what: &str, answer: Result<bool, BackendError>, made: bool) {
    match answer {
        Ok(said) => Rule::Errors.check(
            said == made,
            format_args!("{what} was answered {said}, but happened: {made}"),
        ),
        Err(error) => {
            Rule::Deadlines.check(
                is_of_a_deadline(a, &error),
                format_args!(
                    "a spent deadline of {what} is an error of kind {:?}",
                    error.kind()
                ),
            );
            Rule::Errors.check(
                !(made && error.executed() == Executed::No),
                format_args!("{what} happened and was answered Executed::No"),
            );
        }
    }
}

fn closed<T>(answer: Result<T, BackendError>, what: &str) {
    let kind = answer.err().map(|error| error.kind());
    Rule::Errors.check(
        kind == Some(BackendErrorKind::Closed),
        format_args!("after close {what} ends with {kind:?}, not with Closed"),
    );
}

async fn in_time<T>(call: impl Future<Output = T> + Send) -> T {
    let answer = tokio::time::timeout(SLACK, call).await;
    answer.unwrap_or_else(|_| {
        Rule::Deadlines.broken(format_args!(
            "a call whose deadline was over is not answered after {SLACK:?}"
        ))
    })
}

/// Polls a call a few times, with a pause between, and drops it.
pub(super) async fn poll_some<T>(polls: usize, call: impl Future<Output = T> + Send) {
    let mut call = std::pin::pin!(call);
    for _ in 0..polls {
        if call.as_mut().now_or_never().is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_micros(300)).await;
    }
}
