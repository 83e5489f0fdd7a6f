//! What must never be: judged by what applications saw, and by what is left on the servers.

use std::collections::BTreeMap;

use crate::log::{Evicted, Hold, Notes};
use crate::plan::{Kind, Plan};
use crate::world::MS;

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// When, in ms.
    pub at: u64,
    /// Which rule is broken: the same word for the same rule.
    pub rule: &'static str,
    /// By whom and how.
    pub what: String,
}

impl Violation {
    pub(crate) fn new(at: u64, rule: &'static str, what: String) -> Self {
        Self {
            at: at / MS,
            rule,
            what,
        }
    }
}

/// How long after a grant another one has to be asked for to have a greater token where servers forget.
const AFTERWARDS: u64 = 1_000 * MS;
/// How late a loss may be told.
const AT_ONCE: u64 = 100 * MS;
/// How long faults still show after they are over: connections are made again, leases end, sentinels are heard.
const CALM: u64 = 5_000 * MS;

/// Judges everything that can be judged at the end. `calm`: when the last fault was over.
pub(crate) fn judge(plan: &Plan, notes: &Notes, calm: u64) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut by_lock: BTreeMap<usize, Vec<Hold>> = BTreeMap::new();
    for hold in &notes.holds {
        let mut hold = hold.clone();
        excuse(plan, notes, &mut hold, &mut found);
        by_lock.entry(hold.lock).or_default().push(hold);
    }
    for (lock, mut holds) in by_lock {
        holds.sort_by_key(|hold| (hold.from, hold.valid));
        if plan.promises_exclusion() {
            exclusion(plan, lock, &holds, &mut found);
        }
        tokens(plan, &holds, &mut found);
    }
    for (begun, at, process, task, error) in &notes.failed {
        if *begun > calm + CALM {
            let what = format!(
                "p{process} task {task}: asked at {} ms, when nothing was wrong: {error}",
                begun / MS
            );
            found.push(Violation::new(*at, "nothing fails when all is well", what));
        }
    }
    found
}

/// What an administrator took away is believed in for a while; not for longer than its lease.
fn excuse(plan: &Plan, notes: &Notes, hold: &mut Hold, found: &mut Vec<Violation>) {
    let of_it = |evicted: &&Evicted| {
        evicted.lock == hold.lock
            && evicted.begun <= hold.valid
            && evicted.done.is_none_or(|done| hold.asked <= done)
    };
    let evicted: Vec<_> = notes.evicted.iter().filter(of_it).copied().collect();
    let forgets = plan.faults.iter().any(|(_, fault)| fault.forgets());
    for evicted in evicted {
        let told = evicted
            .done
            .map(|done| done + plan.lease * MS + AT_ONCE)
            .filter(|told| evicted.begun > hold.from && hold.valid > *told);
        if told.is_some() && !forgets {
            let at = evicted.begun / MS;
            let what = format!("{}, though it was taken away at {at} ms", shown(plan, hold));
            found.push(Violation::new(hold.valid, "a loss is heard of", what));
        }
        hold.valid = hold.valid.min(evicted.begun.max(hold.from));
    }
}

/// Nobody is let in beside an exclusive holder, nor more than there are permits.
fn exclusion(plan: &Plan, lock: usize, holds: &[Hold], found: &mut Vec<Violation>) {
    let total = match plan.locks[lock].kind {
        Kind::Semaphore(total) | Kind::Permits(total) => Some(total),
        _ => None,
    };
    for (place, hold) in holds.iter().enumerate() {
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
