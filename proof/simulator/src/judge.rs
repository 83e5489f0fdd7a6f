//! Rules that no run may break, judged by what applications saw and what is left on the servers.

use std::collections::BTreeMap;

use crate::log::{Evicted, Hold, Notes};
use crate::plan::{Kind, Plan};
use crate::stall::stalls;
use crate::violation::Violation;
use crate::witness::{Suspect, Witness};
use crate::world::MS;

/// If servers forget, a grant must have a greater token only if it was requested this long after
/// the previous grant.
const AFTERWARDS: u64 = 1_000 * MS;
/// How late a holder may hear of a loss.
const AT_ONCE: u64 = 100 * MS;

/// Judges a whole run. The `witness` knows how long servers kept each lock for its owners, and what
/// operators took away.
pub(crate) fn judge(plan: &Plan, notes: &Notes, witness: &Witness) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut by_lock: BTreeMap<usize, Vec<Hold>> = BTreeMap::new();
    for hold in &notes.holds {
        let mut hold = hold.clone();
        let kept = hold.owner.as_deref().and_then(|owner| witness.kept(owner));
        let taken = witness.taken(suspect(plan, &hold));
        if let Some(at) = taken {
            excuse(plan, notes, &mut hold, at, &mut found);
        }
        if plan.servers_know_holders() && taken.is_none() {
            believed(plan, &hold, kept, &mut found);
        }
        // An operator may have taken one of several locks while the task waited for the others.
        if taken.is_some() && hold.valid == hold.from {
            hold.token = None;
        }
        by_lock.entry(hold.lock).or_default().push(hold);
    }
    for (lock, holds) in &mut by_lock {
        holds.sort_by_key(|hold| (hold.from, hold.valid));
        exclusion(plan, *lock, holds, &mut found);
        tokens(plan, holds, &mut found);
    }
    across_kinds(plan, &by_lock, &mut found);
    if plan.steady {
        stalls(plan, notes, &mut found);
    }
    if plan.servers_know_holders() {
        writes(plan, notes, &mut found);
    }
    found
}

/// Whether both locks have one name and kinds with a single holder, so they exclude each other.
fn one_for_all(plan: &Plan, [one, other]: [usize; 2]) -> bool {
    let alone = |lock: usize| {
        matches!(
            plan.locks[lock].kind,
            Kind::Lock | Kind::Fair | Kind::Mutex | Kind::SingleKey | Kind::RedisPy
        )
    };
    alone(one) && alone(other) && plan.locks[one].name == plan.locks[other].name
}

/// Holders of one name exclude each other even if they use it as different kinds.
fn across_kinds(plan: &Plan, by_lock: &BTreeMap<usize, Vec<Hold>>, found: &mut Vec<Violation>) {
    for (first, holds) in by_lock {
        let mut all = holds.clone();
        for (other, further) in by_lock.range(first + 1..) {
            if one_for_all(plan, [*first, *other]) {
                all.extend_from_slice(further);
            }
        }
        if all.len() > holds.len() {
            all.sort_by_key(|hold| (hold.from, hold.valid));
            exclusion(plan, *first, &all, found);
        }
    }
}

/// The hold as the witness needs it, to tell whether an operator took it away.
fn suspect<'a>(plan: &'a Plan, hold: &'a Hold) -> Suspect<'a> {
    Suspect {
        lock: &plan.locks[hold.lock].name,
        owner: hold.owner.as_deref(),
        alone: hold.exclusive,
        asked: hold.asked,
        valid: hold.valid,
        majority: plan.quorum.map(|servers| servers / 2 + 1),
    }
}

/// A holder may believe in a lock after an operator took it away, but no longer than its lease.
fn excuse(plan: &Plan, notes: &Notes, hold: &mut Hold, at: u64, found: &mut Vec<Violation>) {
    let by = |evicted: &&Evicted| {
        (evicted.lock == hold.lock || one_for_all(plan, [evicted.lock, hold.lock]))
            && evicted.begun <= at
            && evicted.begun > hold.from
    };
    let done = notes.evicted.iter().filter(by).map(|it| it.done);
    let told = done.filter(|done| *done >= at).min();
    let told = told.map(|done| done + plan.lease * MS + AT_ONCE);
    let forgets = plan.faults.iter().any(|(_, fault)| fault.forgets());
    if told.is_some_and(|told| hold.valid > told) && !forgets {
        let at = at / MS;
        let what = format!("{}, though it was taken away at {at} ms", shown(plan, hold));
        found.push(Violation::new(hold.valid, "a loss is heard of", what));
    }
    hold.valid = hold.valid.min(at.max(hold.from));
}

/// No holder believes in a hold for longer than a server keeps it.
fn believed(plan: &Plan, hold: &Hold, kept: Option<u64>, found: &mut Vec<Violation>) {
    if let Some(kept) = kept.filter(|kept| hold.valid > *kept) {
        let kept = kept / MS;
        let what = format!("{}, its server until {kept} ms", shown(plan, hold));
        found.push(Violation::new(
            hold.valid,
            "holds are believed in for a lease",
            what,
        ));
    }
}

/// No holder writes after a later holder has.
fn writes(plan: &Plan, notes: &Notes, found: &mut Vec<Violation>) {
    for late in &notes.written {
        let mut others = notes.written.iter().filter(|it| it.lock == late.lock);
        if let Some(other) = others.find(|it| it.done < late.begun && it.token > late.token) {
            let name = &plan.locks[late.lock].name;
            let what = format!(
                "token {} wrote under {name}, after token {} at {} ms",
                late.token,
                other.token,
                other.done / MS
            );
            found.push(Violation::new(
                late.done,
                "later holders are not overwritten",
                what,
            ));
        }
    }
}

/// No other holder joins an exclusive one, and no more permits are held than there are.
fn exclusion(plan: &Plan, lock: usize, holds: &[Hold], found: &mut Vec<Violation>) {
    let total = match plan.locks[lock].kind {
        Kind::Semaphore(total) | Kind::Permits(total) => Some(total),
        _ => None,
    };
    // Holds that begin before the fault are judged as without it.
    let ends = plan.exclusion_ends().map_or(u64::MAX, |(at, _)| at * MS);
    let before = holds.iter().take_while(|hold| hold.from < ends);
    for (place, hold) in before.enumerate() {
        let beside = holds[..place]
            .iter()
            .filter(|other| other.valid > hold.from && hold.valid > hold.from);
        let beside: Vec<_> = beside.collect();
        let wrong = match total {
            Some(total) => {
                hold.permits + beside.iter().map(|other| other.permits).sum::<u32>() > total
            }
            None => beside.iter().any(|other| other.exclusive || hold.exclusive),
        };
        if wrong {
            let others: Vec<_> = beside.iter().map(|other| shown(plan, other)).collect();
            let what = format!("{} while {}", shown(plan, hold), others.join(" and "));
            found.push(Violation::new(hold.from, "one holder at a time", what));
        }
    }
}

/// Tokens grow.
fn tokens(plan: &Plan, holds: &[Hold], found: &mut Vec<Violation>) {
    if plan
        .faults
        .iter()
        .any(|(_, fault)| matches!(fault, crate::plan::Fault::SetClock(..)))
    {
        return;
    }
    let with: Vec<_> = holds
        .iter()
        .filter_map(|hold| Some((hold, hold.token?)))
        .collect();
    for (place, (hold, token)) in with.iter().enumerate() {
        for (before, smaller) in &with[..place] {
            let later = if plan.promises_order() {
                before.valid <= hold.from && before.from < hold.from
            } else {
                hold.asked > before.from + AFTERWARDS
            };
            if later && smaller >= token {
                let what = format!("{} after {}", shown(plan, hold), shown(plan, before));
                found.push(Violation::new(hold.from, "tokens grow", what));
            }
        }
    }
}

fn shown(plan: &Plan, hold: &Hold) -> String {
    let Hold {
        process,
        task,
        from,
        valid,
        ..
    } = hold;
    let how = if hold.exclusive {
        "alone"
    } else {
        "with others"
    };
    let name = &plan.locks[hold.lock].name;
    let token = hold
        .token
        .map_or_else(String::new, |token| format!(", token {token}"));
    format!(
        "p{process} task {task} holds {name} {how} from {} to {} ms{token}",
        from / MS,
        valid / MS
    )
}
