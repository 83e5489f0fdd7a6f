//! What is free and wanted is taken before long, where nothing goes wrong.

use crate::log::{Hold, Notes, Wanted};
use crate::plan::{End, Kind, Plan};
use crate::violation::Violation;
use crate::world::MS;

/// From when until when somebody has a lock, in µs.
type Span = (u64, u64);

/// Looks for locks that nobody has while somebody waits for them.
pub(crate) fn stalls(plan: &Plan, notes: &Notes, found: &mut Vec<Violation>) {
    // A few messages, the slices in which processes run, and the pauses of those who ask again and
    // again.
    let patience = (24 * plan.travel + 150) * MS;
    // Where somebody takes permits away, who waits for them waits.
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

/// redis-py takes any string for a lock that somebody holds: it waits for a number to go away,
/// which nobody holds.
fn sees_no_kind(plan: &Plan, wanted: &Wanted) -> bool {
    let Wanted { process, lock, .. } = *wanted;
    let lock = &plan.locks[lock];
    let mut others = plan.locks.iter().filter(|it| it.name == lock.name);
    let number = |kind| matches!(kind, Kind::Semaphore(_) | Kind::Permits(_) | Kind::Latch);
    plan.processes[process].neighbour
        && lock.kind == Kind::RedisPy
        && others.any(|other| number(other.kind))
}

/// When somebody has the lock that is wanted, for all that the one who waits can know.
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

/// When somebody who waits can know that a hold has ended.
fn heard(plan: &Plan, wanted: &Wanted, hold: &Hold, ended: u64) -> u64 {
    let [waits, holds] = [wanted.lock, hold.lock].map(|lock| plan.locks[lock].kind);
    let other = plan.processes[wanted.process].neighbour;
    // Redisson's lock waits as long as the lease that it saw, and is woken by locks, not by
    // read-write locks.
    if other && waits == Kind::Lock && holds == Kind::ReadWrite && ended > wanted.from {
        return ended.max(wanted.until);
    }
    let silent = |kind| matches!(kind, Kind::SingleKey | Kind::RedisPy);
    let keeper = &plan.processes[hold.process];
    let keeps = matches!(holds, Kind::Lock | Kind::Mutex) && !keeper.neighbour;
    // Who cannot ask for a lease that a process keeps waits until it is given back by itself.
    if keeps && (other || silent(waits)) {
        return ended + keeper.keep * MS;
    }
    // The release is said to nobody, nor is that a lease ran out.
    if silent(holds) || hold.may_have_lapsed() {
        return ended + wanted.looks;
    }
    ended
}

/// When groups may have a lock of this name that wait for another one: while somebody has that one.
fn by_groups(plan: &Plan, notes: &Notes, name: &str) -> Vec<Span> {
    let is_of = |wanted: &Wanted, name: &str| plan.locks[wanted.lock].name == name;
    let mut spans = Vec::new();
    for [one, other] in &notes.groups {
        for (has, waits) in [(one, other), (other, one)] {
            if !is_of(has, name) {
                continue;
            }
            let wanted = &plan.locks[waits.lock].name;
            // Perhaps of another group, which waits itself.
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
