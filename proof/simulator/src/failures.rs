//! What fails though all is well: judged by how fast the network was for what was asked.

use locktopus_core::{BackendErrorKind, Phase};

use crate::log::{Failed, Notes};
use crate::plan::{Plan, Wait};
use crate::violation::Violation;
use crate::world::{MS, Slow, USUAL};

/// How long faults still show after they are over: connections are made again, leases end,
/// sentinels are heard.
const CALM: u64 = 5_000 * MS;
/// A node of a quorum may take this part of a lease for its answer.
const CALLS_PER_LEASE: u64 = 4;

/// Judges what failed. `calm`: when the last fault was over; `slow`: the messages that took longer
/// than usual.
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

/// Whether most answers of a quorum come too late for a lease that is as short, however often it is
/// asked: its own, or that of another task of its process behind which it waited for the same lock.
/// What that one tried in vain counts for whoever goes on from there, who then has one try.
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

/// Whether an answer was late to somebody who asked only once: what is asked again and again does
/// not fail by that.
fn too_late(plan: &Plan, failed: &Failed, slow: &[Slow]) -> bool {
    let again = failed.wait != Wait::Try;
    let (own, between_servers) = match failed.error {
        Some((Phase::Acquire, _)) if again => return false,
        Some((_, BackendErrorKind::NoQuorum)) => (true, false),
        // A short lease may be spent while replicas are waited for.
        Some((_, BackendErrorKind::Timeout)) => (true, true),
        Some((_, BackendErrorKind::NotReplicated)) => (false, true),
        // The first of several locks, while the others were asked for.
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
