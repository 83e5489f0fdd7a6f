//! Takes, extends, waits for and releases a lock, to see what this user may do.

use std::time::Duration;

use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo, Diagnosis,
    ExtendRequest, Finding, LockKind, LockName, LockTarget, MIN_LEASE, OwnerId, ReleaseRequest,
    SafetyMode, Severity,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::ask::finding;
use crate::backend::context::Context;
use crate::client::Route;

/// The part of the call timeout to wait for the probe lock while other clients hold it.
const PROBE_TURN: u32 = 2;
/// The lease of the probe, in call timeouts. It expires on its own if its release is lost.
const PROBE_ANSWERS: u32 = 2;
/// How long the waiter that must be dead by the release keeps its place.
const SHORT_LIFE: Duration = Duration::from_millis(1);
/// From this batch size on, scripts extend with an absolute expiry, which needs a right of its own.
const EXTENDED_TOGETHER: usize = 8;
const LISTENING: &str = "listening for releases";
/// The consequence of the missing right.
const WITHOUT_LISTENING: &str = "; allow SUBSCRIBE (SSUBSCRIBE in a cluster) on the channels of locks. Without it waiters poll: they keep \
     their order, but each hand-over takes up to 0.6 s, and each waiter sends some scripts a second";
/// The name of the probe after the namespace.
pub(super) const NAME: &str = "locktopus:probe";
/// The number of probe names: enough for one on every primary of most clusters.
const PROBES: u8 = 32;

/// Acquires, extends, waits for and releases a lock that no one else uses. So missing rights show
/// up at connect instead of at the first wait or the first lost release.
pub(super) async fn check(
    context: &Context,
    some_away: bool,
    deadline: Instant,
    out: &mut Diagnosis,
) {
    let target = if some_away {
        probe_within_reach(context, deadline).await
    } else {
        probe(context, 0)
    };
    let Some(target) = target else {
        return;
    };
    let owner = target.kind().new_owner();
    let lease = probe_lease(&context.info);
    let attempt = AcquireAttempt::new(target.clone(), owner.clone(), lease, deadline);
    let extend = ExtendRequest::new(target.clone(), owner.clone(), lease);

    let mut failed = Vec::new();
    let mut note = |what: &'static str, error: Option<BackendError>| {
        failed.extend(error.map(|error| (what, error)));
    };
    note("taking a lock", take_probe(context, &attempt).await.err());
    let batch = vec![extend; EXTENDED_TOGETHER];
    let mut extended = context.extend(&batch, deadline).await;
    note("extending a lock", extended.pop().and_then(Result::err));
    note(LISTENING, context.subscribe(&target, deadline).await.err());
    let waiters = [(); 3].map(|()| target.kind().new_owner());
    note(
        "waiting in the queue of a lock",
        queue_up(context, &target, &waiters, deadline).await.err(),
    );
    note(
        "looking at a lock",
        context.inspect(&target, deadline).await.err(),
    );
    // The last waiter gives up its place. The holder skips the dead waiter and hands off to the
    // first, which has no waiter behind it and so announces its release. If the dead one is still
    // alive, it gets the lock in between.
    let [dead, first, last] = waiters;
    let mut told = true;
    let mut release_error = None;
    let [last, owner, dead, first] = [last, owner, dead, first]
        .map(|owner| ReleaseRequest::new(target.clone(), owner, deadline));
    let mut answers = vec![context.release(&last).await, context.release(&owner).await];
    let together = tokio::join!(context.release(&dead), context.release(&first));
    answers.extend(<[_; 2]>::from(together));
    for answer in answers {
        match answer {
            Ok((_, heard)) => told &= heard,
            Err(error) => release_error = Some(error),
        }
    }
    note("releasing a lock", release_error);
    if !told {
        out.findings.push(finding(
            Severity::Danger,
            "permission",
            format!(
                "announcing a release failed on the probe {target}, so waiters would sleep until their \
                 heartbeat; allow PUBLISH (SPUBLISH in a cluster) on the channels of locks"
            ),
        ));
    }
    let failures = failed.iter();
    out.findings
        .extend(failures.map(|(what, error)| failure(what, &target, error)));
}

fn failure(what: &str, target: &LockTarget, error: &BackendError) -> Finding {
    let costs = match (what, error.kind()) {
        (LISTENING, BackendErrorKind::Denied | BackendErrorKind::Refused) => WITHOUT_LISTENING,
        _ => "",
    };
    let (severity, check) = match error.kind() {
        BackendErrorKind::Denied => (Severity::Danger, "permission"),
        BackendErrorKind::NotReplicated => (Severity::Danger, "replication"),
        // A full server may get room again, but a missing command stays missing.
        BackendErrorKind::Refused if !error.message().starts_with("OOM") => {
            (Severity::Danger, "probe")
        }
        _ => (Severity::Warning, "probe"),
    };
    finding(
        severity,
        check,
        format!("{what} failed on the probe {target}: {error}{costs}"),
    )
}

/// Queues three waiters and sends a heartbeat of the first that lives. One of the three dies at
/// once, because removing dead waiters needs rights of its own.
async fn queue_up(
    context: &Context,
    target: &LockTarget,
    [dead, first, last]: &[OwnerId; 3],
    deadline: Instant,
) -> Result<(), BackendError> {
    let lease = probe_lease(&context.info);
    let attempt = |owner: &OwnerId, place| AcquireAttempt {
        place: Some(place),
        ..AcquireAttempt::new(target.clone(), owner.clone(), lease, deadline)
    };
    let (dying, living) = (attempt(dead, SHORT_LIFE), attempt(first, lease));
    // Sent together, so that this costs no extra round trip.
    let (died, queued) = tokio::join!(context.attempt(&dying), context.attempt(&living));
    let _queued = died.and(queued)?;
    for owner in [last, first] {
        let _queued = context.attempt(&attempt(owner, lease)).await?;
    }
    sleep(SHORT_LIFE * 2).await;
    Ok(())
}

/// Acquires the probe, waiting if another client holds it at the moment, because only a holder's
/// operations show all missing rights. If many clients connect at once the probe may stay held,
/// which at least shows that scripts and keys are permitted.
async fn take_probe(
    context: &Context,
    attempt: &AcquireAttempt,
) -> Result<AttemptOutcome, BackendError> {
    let patience = context.info.call_timeout / PROBE_TURN;
    let patience = attempt.deadline.min(Instant::now() + patience);
    loop {
        match context.attempt(attempt).await? {
            AttemptOutcome::Held { .. } if Instant::now() < patience => {
                sleep(Duration::from_millis(5)).await;
            }
            outcome => return Ok(outcome),
        }
    }
}

/// Long enough for a client with slow round trips; no longer than the safety mode allows.
fn probe_lease(info: &BackendInfo) -> Duration {
    let lease = info.call_timeout * PROBE_ANSWERS;
    match info.safety {
        SafetyMode::Quarantine { max_lease } => lease.min(max_lease),
        _ => lease,
    }
    .max(MIN_LEASE)
}

/// A few names shared by all clients, because each name leaves a token key. Number 0 is the
/// default.
pub(super) fn probe(context: &Context, number: u8) -> Option<LockTarget> {
    let name = match number {
        0 => NAME.to_owned(),
        number => format!("{NAME}:{number}"),
    };
    let name = LockName::in_namespace(&context.options.probe_prefix, &name).ok()?;
    Some(LockTarget::new(name, LockKind::Reentrant))
}

/// A probe in a slot that is served. In any other slot, commands are retried until the deadline and
/// show nothing about rights.
async fn probe_within_reach(context: &Context, deadline: Instant) -> Option<LockTarget> {
    let client = context.executor.client();
    for number in 0..PROBES {
        let target = probe(context, number)?;
        let route = Route::Slot(context.keys(&target).slot());
        let turn = context.info.call_timeout / PROBE_TURN;
        let patience = deadline.min(Instant::now() + turn);
        if let Ok(Ok(_)) = timeout_at(patience, client.command(route, &[b"PING"])).await {
            return Some(target);
        }
    }
    None
}
