//! Finds locks that stay free although a task waits for them, in schedules without faults.

use crate::log::{Hold, Notes, Wanted};
use crate::plan::{End, Kind, Plan};
use crate::violation::Violation;
use crate::world::MS;

/// From when until when a task has a lock, in µs.
type Span = (u64, u64);

/// Finds locks without a holder that a task waits for.
pub(crate) fn stalls(plan: &Plan, notes: &Notes, found: &mut Vec<Violation>) {
    // A few messages, the time slices of processes, and the pauses of waiters that poll.
    let patience = (24 * plan.travel + 150) * MS;
    // If an act takes permits away, waiting for them is right.
    let counts = |lock: usize| {
        let mut acts = plan
            .processes
            .iter()
            .flat_map(|it| it.tasks.iter().flatten());
        acts.any(|act| act.lock == lock && matches!(act.end, End::Count(_)))
    };
    let judged = |wanted: &&Wanted| !counts(wanted.lock) && !sees_no_kind(plan, wanted);
    for wanted in notes.wanted.iter().filter(judged) {
        let name = &plan.locks[wanted.lock].name;
        let mut held = held(plan, notes, wanted);
        held.extend(by_groups(plan, notes, name));
        held.sort_unstable();
        let mut free = wanted.from;
        for (from, ended) in held.into_iter().chain([(wanted.until, wanted.until)]) {
            let taken = from.min(wanted.until);
            if taken > free.saturating_add(patience) {
                let what = format!(
                    "p{} task {} waits for {name}, which nobody holds from {} to {} ms",
                    wanted.process,
                    wanted.task,
                    free / MS,
                    taken / MS
                );
                found.push(Violation::new(taken, "what is free is taken", what));
                return;
            }
            free = free.max(ended);
        }
    }
}

/// redis-py takes any string for a held lock, so it also waits for a semaphore or a latch, which
/// nobody holds.
fn sees_no_kind(plan: &Plan, wanted: &Wanted) -> bool {
    let Wanted { process, lock, .. } = *wanted;
    let lock = &plan.locks[lock];
    let mut others = plan.locks.iter().filter(|it| it.name == lock.name);
    let number = |kind| matches!(kind, Kind::Semaphore(_) | Kind::Permits(_) | Kind::Latch);
    plan.processes[process].neighbour
        && lock.kind == Kind::RedisPy
        && others.any(|other| number(other.kind))
}

/// When the wanted lock has a holder, as far as the waiter can know.
fn held(plan: &Plan, notes: &Notes, wanted: &Wanted) -> Vec<Span> {
    let name = &plan.locks[wanted.lock].name;
    let of_it = notes
        .holds
        .iter()
        .filter(|hold| plan.locks[hold.lock].name == *name);
    of_it
        .map(|hold| {
            let ended = hold.ended.map(|ended| heard(plan, wanted, hold, ended));
            (hold.from, ended.unwrap_or(u64::MAX))
        })
        .collect()
}

/// When a waiter can know that a hold has ended.
fn heard(plan: &Plan, wanted: &Wanted, hold: &Hold, ended: u64) -> u64 {
    let [waits, holds] = [wanted.lock, hold.lock].map(|lock| plan.locks[lock].kind);
    let other = plan.processes[wanted.process].neighbour;
    // Redisson's lock waits as long as the lease it saw, and only locks wake it, not read-write
    // locks.
    if other && waits == Kind::Lock && holds == Kind::ReadWrite && ended > wanted.from {
        return ended.max(wanted.until);
    }
    let silent = |kind| matches!(kind, Kind::SingleKey | Kind::RedisPy);
    let keeper = &plan.processes[hold.process];
    let keeps = matches!(holds, Kind::Lock | Kind::Mutex) && !keeper.neighbour;
    // A waiter that cannot recall a cached lease waits until the process gives it back.
    if keeps && (other || silent(waits)) {
        return ended + keeper.keep * MS;
    }
    // This release is not announced, nor is the expiry of a lease.
    if silent(holds) || hold.may_have_lapsed() {
        return ended + wanted.looks;
    }
    ended
}

/// When groups may have a lock of this name while they wait for another lock that is taken.
fn by_groups(plan: &Plan, notes: &Notes, name: &str) -> Vec<Span> {
    let is_of = |wanted: &Wanted, name: &str| plan.locks[wanted.lock].name == name;
    let mut spans = Vec::new();
    for [one, other] in &notes.groups {
        for (has, waits) in [(one, other), (other, one)] {
            if !is_of(has, name) {
                continue;
            }
            let wanted = &plan.locks[waits.lock].name;
            // Another group may have it, which waits itself.
            let groups = notes.groups.iter().flatten();
            let groups = groups.filter(|it| {
                is_of(it, wanted) && (it.process, it.task) != (waits.process, waits.task)
            });
            let in_the_way = held(plan, notes, waits)
                .into_iter()
                .chain(groups.map(|it| (it.from, it.until)));
            let meanwhile = in_the_way
                .map(|(from, ended)| (from.max(waits.from), ended.min(waits.until)))
                .filter(|(from, ended)| from < ended);
            spans.extend(meanwhile);
        }
    }
    spans
}
