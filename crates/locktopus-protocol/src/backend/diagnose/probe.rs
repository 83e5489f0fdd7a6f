//! Takes, extends, waits for and releases a lock, to see what this user may do.

use std::time::Duration;

use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo, Diagnosis,
    ExtendOutcome, ExtendRequest, Finding, LockBackend as _, LockKind, LockName, LockTarget,
    MIN_LEASE, OwnerId, ReleaseRequest, SafetyMode, Severity, WakeUps as _,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::ask::finding;
use super::routed;
use crate::backend::RedisBackend;
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
const ANNOUNCING: &str = "announcing a release";
/// The consequences of the missing rights.
const WITHOUT_LISTENING: &str = "; allow SUBSCRIBE (SSUBSCRIBE in a cluster) on the channels of locks. Without it waiters poll: they keep \
     their order, but each hand-over takes up to 0.6 s, and each waiter sends some scripts a second";
const WITHOUT_ANNOUNCING: &str = "; allow PUBLISH (SPUBLISH in a cluster) on the channels of locks. Without it waiters sleep until \
     their heartbeat";
/// The name of the probe after the namespace.
pub(super) const NAME: &str = "locktopus:probe";
/// The number of probe names: enough for one on every primary of most clusters.
const PROBES: u8 = 32;

/// A step of the probe that this user may not do.
#[derive(Debug)]
pub(super) struct Denied {
    what: &'static str,
    /// The consequence and the remedy, if they are special.
    costs: &'static str,
    /// The finding, if the missing right is not known.
    alone: Finding,
}

/// Adds the steps that were denied to the finding with the missing rights. If there is none,
/// returns a finding for each step.
pub(super) fn report(denied: Vec<Denied>, rights: &mut [Finding]) -> Vec<Finding> {
    let is_danger = |found: &&mut Finding| found.severity == Severity::Danger;
    match rights.iter_mut().find(is_danger) {
        Some(missing) if !denied.is_empty() => {
            let steps: Vec<_> = denied.iter().map(|denied| denied.what).collect();
            let costs: String = denied.iter().map(|denied| denied.costs).collect();
            let failed = format!("; failed on the probe: {}{costs}", steps.join(", "));
            missing.message.push_str(&failed);
            Vec::new()
        }
        _ => denied.into_iter().map(|denied| denied.alone).collect(),
    }
}

/// Acquires, extends, waits for and releases a lock that no one else uses. So missing rights show
/// up at connect instead of at the first wait or the first lost release. Returns what was denied.
pub(super) async fn check(
    backend: &RedisBackend,
    context: &Context,
    some_away: bool,
    deadline: Instant,
    out: &mut Diagnosis,
) -> Vec<Denied> {
    let target = if some_away {
        probe_within_reach(context, deadline).await
    } else {
        probe(context, 0)
    };
    let Some(target) = target else {
        return Vec::new();
    };
    let owner = target.kind().new_owner();
    let lease = probe_lease(&context.info);
    let attempt = AcquireAttempt::new(target.clone(), owner.clone(), lease, deadline);
    let extend = ExtendRequest::new(target.clone(), owner.clone(), lease);

    let mut failed = Vec::new();
    let mut note = |what: &'static str, error: Option<BackendError>| {
        failed.extend(error.map(|error| (what, error)));
    };
    note("taking a lock", take_probe(backend, &attempt).await.err());
    let batch = vec![extend.clone(); EXTENDED_TOGETHER];
    let extended = backend.extend(&batch, deadline).await.pop();
    if let Some(Ok(ExtendOutcome::Extended)) = extended {
        let routed = routed::check(backend, context, &extend, deadline).await;
        out.findings.extend(routed);
    }
    note("extending a lock", extended.and_then(Result::err));
    note(LISTENING, backend.subscribe(&target, deadline).await.err());
    let waiters = [(); 3].map(|()| target.kind().new_owner());
    note(
        "waiting in the queue of a lock",
        queue_up(backend, &target, &waiters, deadline).await.err(),
    );
    note(
        "looking at a lock",
        backend.inspect(&target, deadline).await.err(),
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
    let mut denied = Vec::new();
    let mut deny = |what, costs, error: &str| {
        let message = format!("{what} failed on the probe {target}{error}{costs}");
        let alone = finding(Severity::Danger, "permission", message);
        denied.push(Denied { what, costs, alone });
    };
    if !told {
        deny(ANNOUNCING, WITHOUT_ANNOUNCING, "");
    }
    for (what, error) in failed {
        let costs = match (what, error.kind()) {
            (LISTENING, BackendErrorKind::Denied | BackendErrorKind::Refused) => WITHOUT_LISTENING,
            _ => "",
        };
        let (severity, check) = match error.kind() {
            BackendErrorKind::Denied => {
                deny(what, costs, &format!(": {error}"));
                continue;
            }
            BackendErrorKind::NotReplicated => (Severity::Danger, "replication"),
            // A full server may get room again, but a missing command stays missing.
            BackendErrorKind::Refused if !error.message().starts_with("OOM") => {
                (Severity::Danger, "probe")
            }
            _ => (Severity::Warning, "probe"),
        };
        let message = format!("{what} failed on the probe {target}: {error}{costs}");
        out.findings.push(finding(severity, check, message));
    }
    denied
}

/// Queues three waiters and sends a heartbeat of the first that lives. One of the three dies at
/// once, because removing dead waiters needs rights of its own.
async fn queue_up(
    backend: &RedisBackend,
    target: &LockTarget,
    [dead, first, last]: &[OwnerId; 3],
    deadline: Instant,
) -> Result<(), BackendError> {
    let lease = probe_lease(backend.info());
    let attempt = |owner: &OwnerId, place| AcquireAttempt {
        place: Some(place),
        ..AcquireAttempt::new(target.clone(), owner.clone(), lease, deadline)
    };
    let (dying, living) = (attempt(dead, SHORT_LIFE), attempt(first, lease));
    // Sent together, so that this costs no extra round trip.
    let (died, queued) = tokio::join!(backend.attempt(&dying), backend.attempt(&living));
    let _queued = died.and(queued)?;
    for owner in [last, first] {
        let _queued = backend.attempt(&attempt(owner, lease)).await?;
    }
    sleep(SHORT_LIFE * 2).await;
    Ok(())
}

/// Acquires the probe, waiting if another client holds it at the moment, because only a holder's
/// operations show all missing rights. If many clients connect at once the probe may stay held,
/// which at least shows that scripts and keys are permitted.
async fn take_probe(
    backend: &RedisBackend,
    attempt: &AcquireAttempt,
) -> Result<AttemptOutcome, BackendError> {
    let patience = backend.info().call_timeout / PROBE_TURN;
    let patience = attempt.deadline.min(Instant::now() + patience);
    loop {
        match backend.attempt(attempt).await? {
            AttemptOutcome::Busy { .. } if Instant::now() < patience => {
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
