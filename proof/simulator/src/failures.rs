//! Finds calls that failed although nothing was wrong, given how fast the network was for them.

use locktopus_core::{BackendErrorKind, Phase};

use crate::log::{Failed, Notes};
use crate::plan::{Plan, Wait};
use crate::violation::Violation;
use crate::world::{MS, Slow, USUAL};

/// How long faults have effects after they end: clients reconnect, leases expire, sentinels report.
const CALM: u64 = 5_000 * MS;
/// A node of a quorum may use this fraction of a lease for its answer.
const CALLS_PER_LEASE: u64 = 4;

/// Judges the failures. `calm` is when the last fault was over, `slow` the messages that took
/// longer than usual.
pub(crate) fn failures(plan: &Plan, notes: &Notes, calm: u64, slow: &[Slow]) -> Vec<Violation> {
    let wrong = notes.failed.iter().filter(|failed| {
        failed.begun > calm + CALM && !too_short(plan, failed) && !too_late(plan, failed, slow)
    });
    let violation = |failed: &Failed| {
        let what = format!(
            "p{} task {}: asked at {} ms, when nothing was wrong: {:?}: {}",
            failed.process,
            failed.task,
            failed.begun / MS,
            failed.wait,
            failed.told
        );
        Violation::new(failed.at, "nothing fails when all is well", what)
    };
    wrong.map(violation).collect()
}

/// Whether the lease is so short that most answers of a quorum come too late, however often it
/// asks. It may be the task's own lease, or that of another task of its process for which it
/// waited: when that one gives up, its attempts count for the next task, which then has one try.
fn too_short(plan: &Plan, failed: &Failed) -> bool {
    let usual = 2 * USUAL * plan.travel;
    let short = |lease: Option<u64>| lease.is_some_and(|lease| lease < CALLS_PER_LEASE * usual);
    let Some((phase, BackendErrorKind::NoQuorum | BackendErrorKind::Timeout)) = failed.error else {
        return false;
    };
    let behind = || {
        let tasks = &plan.processes[failed.process].tasks;
        let mut acts = tasks.iter().flatten();
        acts.any(|act| act.lock == failed.lock && short(act.fixed_lease))
    };
    plan.quorum.is_some()
        && match phase {
            Phase::Acquire => short(failed.fixed_lease) || failed.wait != Wait::Try && behind(),
            Phase::Extend => short(failed.fixed_lease),
            _ => false,
        }
}

/// Whether an answer was late for a call that asks only once. One slow answer does not fail a call
/// that asks again.
fn too_late(plan: &Plan, failed: &Failed, slow: &[Slow]) -> bool {
    let again = failed.wait != Wait::Try;
    let (own, between_servers) = match failed.error {
        Some((Phase::Acquire, _)) if again => return false,
        Some((_, BackendErrorKind::NoQuorum)) => (true, false),
        // Waiting for replicas may use up a short lease.
        Some((_, BackendErrorKind::Timeout)) => (true, true),
        Some((_, BackendErrorKind::NotReplicated)) => (false, true),
        // The first of several locks may expire while it asks for the others.
        None if failed.lost && !again => (true, false),
        _ => return false,
    };
    let concerns = |slow: &Slow| match slow.process {
        Some(process) => own && process == failed.process,
        None => between_servers,
    };
    let since = failed
        .begun
        .max(failed.at.saturating_sub(plan.call_timeout() * MS));
    let meanwhile = |slow: &&Slow| slow.sent < failed.at && slow.arrived > since;
    slow.iter().filter(meanwhile).any(concerns)
}
