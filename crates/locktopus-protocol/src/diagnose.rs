//! Connect-time checks: what silently breaks locks on a Redis or Valkey server.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use locktopus_core::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo, Diagnosis,
    ExtendRequest, Finding, LockBackend as _, LockKind, LockName, LockTarget, MIN_LEASE, OwnerId,
    ReleaseRequest, SafetyMode, Severity,
};
use tokio::time::{Instant, sleep, timeout_at};

use crate::backend::RedisBackend;
use crate::client::{ClientError, Reply, Route};
use crate::executor::Executor;
use crate::safety::Safety;
use crate::token_keys::{self, Room};
use crate::version::{self, ServerVersion};

/// How far a server's clock may be off before it is worth a word.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);
/// What part of an answer's time to wait for the probe lock while others probe.
const PROBE_TURN: u32 = 2;
/// How many answers, as slow as they may be, the probe is held and waited for should nobody give it back.
const PROBE_ANSWERS: u32 = 2;
/// The check that a server which does not answer fails.
const AWAY: &str = "reach";
/// How many names there are for the probe: enough for one on every primary of most clusters.
const PROBES: u8 = 32;

pub(crate) async fn run(
    backend: &RedisBackend,
    executor: &Executor,
    deadline: Instant,
) -> Result<Diagnosis, BackendError> {
    let mut diagnosis = Diagnosis::default();
    let quarantine = matches!(backend.safety(), Safety::Quarantine(_));
    // At once: a server that hangs takes its time for each.
    let before = SystemTime::now();
    let (infos, times) = tokio::join!(
        ask_all(executor, &[b"INFO"], deadline),
        ask_all(executor, &[b"TIME"], deadline)
    );
    let asked = SystemTime::now();
    let rooms = look_at_info(executor, infos?, quarantine, &mut diagnosis)?;
    let piled_up = token_keys::look(backend, executor, &rooms, deadline).await?;
    diagnosis.findings.extend(piled_up);
    look_at_clocks(times?, before..asked, &mut diagnosis);
    let found = |check| diagnosis.findings.iter().any(|found| found.check == check);
    // A replica refuses every lock, and would be asked again until the deadline.
    if !found("role") {
        let some_away = found(AWAY);
        look_at_permissions(backend, some_away, deadline, &mut diagnosis).await;
    }
    diagnosis
        .findings
        .sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(diagnosis)
}

pub(crate) fn finding(
    severity: Severity,
    check: &'static str,
    message: impl Into<String>,
) -> Finding {
    Finding {
        severity,
        check,
        message: message.into(),
    }
}

/// What each server said.
type Answers = Vec<(String, Result<Reply, ClientError>)>;

pub(crate) async fn ask_all(
    executor: &Executor,
    args: &[&[u8]],
    deadline: Instant,
) -> Result<Answers, BackendError> {
    let answers = timeout_at(deadline, executor.client().command_on_primaries(args)).await;
    let answers = answers.map_err(|_| {
        let message = "the servers did not answer the connect-time checks in time";
        executor.error(
            BackendErrorKind::Timeout,
            locktopus_core::Executed::No,
            message,
        )
    })?;
    let answers = answers.map_err(|error| executor.read_error(error))?;
    Ok(answers
        .into_iter()
        .map(|answer| (answer.node, answer.reply))
        .collect())
}

fn look_at_info(
    executor: &Executor,
    answers: Answers,
    quarantine: bool,
    out: &mut Diagnosis,
) -> Result<Vec<(String, Room)>, BackendError> {
    let mut rooms = Vec::new();
    let away = |reply: &Result<Reply, ClientError>| {
        matches!(
            reply,
            Err(ClientError::NotSent(_) | ClientError::MaybeExecuted(_))
        )
    };
    let nobody = answers.iter().all(|(_, reply)| away(reply));
    for (node, reply) in answers {
        let text = match reply {
            Ok(Reply::Bytes(text)) => String::from_utf8_lossy(&text).into_owned(),
            Ok(_) => String::new(),
            Err(ClientError::Rejected { code, .. }) if code == "NOPERM" => {
                out.nodes.push(node.clone());
                let message = format!(
                    "{node}: INFO is not permitted, so eviction policy and version could not be checked; \
                     grant +info to this user or check them by hand"
                );
                out.findings
                    .push(finding(Severity::Note, "permission", message));
                continue;
            }
            Err(error) if nobody => return Err(executor.read_error(error)),
            Err(error) => {
                out.nodes.push(node.clone());
                let message = format!(
                    "{node}: does not answer, so nothing of it could be checked; locks in its slots fail until it is back or \
                     another server serves them, all others work ({error})"
                );
                out.findings.push(finding(Severity::Warning, AWAY, message));
                continue;
            }
        };
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(str::trim)
        };
        rooms.extend(Room::from_info(&text, field).map(|room| (node.clone(), room)));
        let version = ServerVersion::from_info(field);
        out.nodes.push(
            version
                .as_ref()
                .map_or_else(|| node.clone(), |version| format!("{node} {version}")),
        );
        if let Some(version) = &version {
            out.findings.extend(version::findings(&node, version));
        }
        if let Some(policy) = field("maxmemory_policy").filter(|policy| *policy != "noeviction") {
            let limited = field("maxmemory").is_some_and(|limit| limit != "0");
            let severity = if limited {
                Severity::Danger
            } else {
                Severity::Warning
            };
            let message = format!(
                "{node}: maxmemory-policy is {policy}: a full server drops locks that are held; set it to noeviction"
            );
            out.findings.push(finding(severity, "eviction", message));
        }
        if field("role") == Some("slave") {
            let message =
                format!("{node}: the server is a replica; locks must be taken on a primary");
            out.findings
                .push(finding(Severity::Danger, "role", message));
        }
        let has_replicas = field("connected_slaves").is_some_and(|count| count != "0");
        if quarantine && has_replicas && field("min_slaves_good_slaves").is_none() {
            let message = format!(
                "{node}: min-replicas-to-write is not set, so a primary that is cut off goes on granting while another one \
                 grants after its quarantine; set it to 1 or more"
            );
            out.findings
                .push(finding(Severity::Warning, "split brain", message));
        }
        if has_replicas {
            let message = format!(
                "{node}: replication is asynchronous, so a failover can lose a lock that was granted; protect \
                 what matters with fencing tokens"
            );
            out.findings
                .push(finding(Severity::Note, "replication", message));
        }
    }
    Ok(rooms)
}

/// `asked`: from before the first question until after the last answer.
fn look_at_clocks(answers: Answers, asked: Range<SystemTime>, out: &mut Diagnosis) {
    let (before, after) = (asked.start, asked.end);
    for (node, reply) in answers {
        let Some(server) = reply.ok().as_ref().and_then(server_time) else {
            continue;
        };
        let ahead = server.duration_since(after).unwrap_or_default();
        let behind = before.duration_since(server).unwrap_or_default();
        let off = ahead.max(behind);
        if off > CLOCK_TOLERANCE {
            let side = if ahead > behind { "ahead of" } else { "behind" };
            let message = format!(
                "{node}: the server's clock is {off:.1?} {side} this machine's; leases do not mind, but after a \
                 failover to a clock that is behind, fencing tokens may repeat; run NTP everywhere"
            );
            out.findings
                .push(finding(Severity::Warning, "clock", message));
        }
    }
}

fn server_time(reply: &Reply) -> Option<SystemTime> {
    let Reply::Array(items) = reply else {
        return None;
    };
    let number = |item: &Reply| match item {
        Reply::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.parse::<u64>().ok(),
        Reply::Int(value) => u64::try_from(*value).ok(),
        Reply::Nil | Reply::Array(_) => None,
    };
    let [seconds, micros] = items.as_slice() else {
        return None;
    };
    Some(
        SystemTime::UNIX_EPOCH
            + Duration::from_secs(number(seconds)?)
            + Duration::from_micros(number(micros)?),
    )
}

/// Takes and gives back a lock that nobody else uses, and waits for it. What a restricted user must not do shows up
/// here, at connect, instead of at the first wait or the first lost release.
async fn look_at_permissions(
    backend: &RedisBackend,
    some_away: bool,
    deadline: Instant,
    out: &mut Diagnosis,
) {
    let target = if some_away {
        probe_within_reach(backend, deadline).await
    } else {
        probe(backend, 0)
    };
    let Some(target) = target else {
        return;
    };
    let owner = target.kind().new_owner();
    let lease = probe_lease(backend.info());
    let attempt = AcquireAttempt::new(target.clone(), owner.clone(), lease, deadline);
    let extend = ExtendRequest::new(target.clone(), owner.clone(), lease);

    let mut failed = Vec::new();
    let mut note = |what: &'static str, error: Option<BackendError>| {
        failed.extend(error.map(|error| (what, error)));
    };
    note("taking a lock", take_probe(backend, &attempt).await.err());
    note(
        "extending a lock",
        backend
            .extend(&[extend], deadline)
            .await
            .pop()
            .and_then(Result::err),
    );
    note(
        "listening for releases",
        backend.subscribe(&target, deadline).await.err(),
    );
    let waiters = [(); 2].map(|()| target.kind().new_owner());
    note(
        "standing in the queue of a lock",
        queue_up(backend, &target, &waiters, deadline).await.err(),
    );
    note(
        "looking at a lock",
        backend.inspect(&target, deadline).await.err(),
    );
    // The last gives up its place, the holder hands on, the first has nobody to hand on to and tells everybody.
    let [first, last] = waiters;
    let mut told = true;
    let mut release_error = None;
    for owner in [last, owner, first] {
        let release = ReleaseRequest::new(target.clone(), owner, deadline);
        match backend.release_and_tell(&release).await {
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
    out.findings.extend(
        failed
            .into_iter()
            .map(|(what, error)| failure(what, &target, &error)),
    );
}

fn failure(what: &str, target: &LockTarget, error: &BackendError) -> Finding {
    let (severity, check) = match error.kind() {
        BackendErrorKind::Denied => (Severity::Danger, "permission"),
        BackendErrorKind::NotReplicated => (Severity::Danger, "replication"),
        _ => (Severity::Warning, "probe"),
    };
    finding(
        severity,
        check,
        format!("{what} failed on the probe {target}: {error}"),
    )
}

/// Puts two into the queue and has the first report again, as waiters do.
async fn queue_up(
    backend: &RedisBackend,
    target: &LockTarget,
    [first, last]: &[OwnerId; 2],
    deadline: Instant,
) -> Result<(), BackendError> {
    let lease = probe_lease(backend.info());
    for owner in [first, last, first] {
        let attempt = AcquireAttempt {
            place: Some(lease),
            ..AcquireAttempt::new(target.clone(), owner.clone(), lease, deadline)
        };
        let _queued = backend.attempt(&attempt).await?;
    }
    Ok(())
}

/// Takes the probe, after another client that has it at this moment: only the holder's operations show what
/// is not permitted. In a crowd it is met held, which shows at least that scripts and keys are.
async fn take_probe(
    backend: &RedisBackend,
    attempt: &AcquireAttempt,
) -> Result<AttemptOutcome, BackendError> {
    let patience = backend.info().call_timeout / PROBE_TURN;
    let patience = attempt.deadline.min(Instant::now() + patience);
    loop {
        match backend.attempt(attempt).await? {
            AttemptOutcome::Held { .. } if Instant::now() < patience => {
                sleep(Duration::from_millis(5)).await;
            }
            outcome => return Ok(outcome),
        }
    }
}

/// Long enough to be taken, looked at and given back by somebody far away; no longer than leases may be.
fn probe_lease(info: &BackendInfo) -> Duration {
    let lease = info.call_timeout * PROBE_ANSWERS;
    match info.safety {
        SafetyMode::Quarantine { max_lease } => lease.min(max_lease),
        _ => lease,
    }
    .max(MIN_LEASE)
}

/// A few names for all: a token key is kept for each name, and probes must not pile them up. The first is the usual one.
fn probe(backend: &RedisBackend, number: u8) -> Option<LockTarget> {
    let name = match number {
        0 => "locktopus:probe".to_owned(),
        number => format!("locktopus:probe:{number}"),
    };
    let name = LockName::in_namespace(backend.probe_prefix(), &name).ok()?;
    Some(LockTarget::new(name, LockKind::Reentrant))
}

/// A probe in a slot that is served: others would be tried until the deadline, and say nothing about rights.
async fn probe_within_reach(backend: &RedisBackend, deadline: Instant) -> Option<LockTarget> {
    let client = backend.executor().client();
    for number in 0..PROBES {
        let target = probe(backend, number)?;
        let route = Route::Slot(backend.keys(&target).slot());
        let turn = backend.info().call_timeout / PROBE_TURN;
        let patience = deadline.min(Instant::now() + turn);
        if let Ok(Ok(_)) = timeout_at(patience, client.command(route, &[b"PING"])).await {
            return Some(target);
        }
    }
    None
}
