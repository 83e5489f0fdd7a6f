//! Fair locks are granted in order of arrival.
//!
//! An attempt is overtaken if it was known to be in the queue before another one even started, and
//! was still waiting when that one was granted. Attempts that may have lost their place meanwhile
//! are not judged.

use crate::assemble::{Assembled, Lock};
use crate::attempt::{Answer, Attempt, Held};
use crate::clock::nanos;
use crate::event::Mode;
use crate::fenwick::MaxTree;
use crate::offence::Offence;
use crate::offence::Worst;
use crate::options::Options;
use crate::verdict::Order;

pub(super) fn check(all: &Assembled, options: &Options) -> Order {
    let slack = nanos(options.reply_slack);
    let mut order = Order::default();
    let mut worst = Worst::new(options.examples);
    for lock in all.locks.iter().filter(|lock| lock.rules.fair) {
        order.fair_locks += 1;
        let (mut waits, disturbed): (Vec<Wait<'_>>, Vec<_>) = lock
            .attempts
            .iter()
            .filter_map(Wait::of)
            .partition(|wait| !may_have_lost_its_place(wait, all, options));
        order.disturbed += disturbed.len() as u64;
        waits.sort_by_key(|wait| wait.from);
        order.waits += waits.len() as u64;
        order.overtakings += overtakings(lock, &waits, slack, &mut worst);
    }
    order.examples = worst.into_list();
    order
}

/// A time when an attempt certainly waited.
struct Wait<'a> {
    attempt: &'a Attempt,
    from: u64,
    until: u64,
    /// The token of the grant that ended the wait; the largest number without one. A grant with a
    /// later token did not overtake, even if its reply came first.
    token: u64,
    group: usize,
}

/// Whether a fault or a stall during the wait may have made it join again, behind others.
fn may_have_lost_its_place(wait: &Wait<'_>, all: &Assembled, options: &Options) -> bool {
    // From the request on, not only from the answer that it is in the queue: after a stall the
    // answer may be old, and the place lost, by the time it is read.
    let (worker, asked) = (wait.attempt.id.worker, wait.attempt.started);
    let stalled = all.stalls.within(worker, asked, wait.until);
    let disturbing = options.order_recovery.is_some_and(|recovery| {
        let earliest = wait.from.saturating_sub(nanos(recovery));
        let next = all.faults.partition_point(|fault| fault.at < earliest);
        let next = all.faults.get(next);
        next.is_some_and(|fault| fault.at < wait.until)
    });
    disturbing || stalled >= nanos(options.stalled_waiter)
}

const GROUPS: usize = 4;
const EXCLUSIVE: usize = 0;
/// A wait without a grant does not record its mode.
const UNKNOWN: usize = 3;

/// Grants of different groups exclude each other, and so do exclusive ones.
const fn group(mode: Mode) -> usize {
    match mode {
        Mode::Exclusive => EXCLUSIVE,
        Mode::Shared => 1,
        Mode::Permits(_) => 2,
    }
}

impl<'a> Wait<'a> {
    fn of(attempt: &'a Attempt) -> Option<Self> {
        let from = attempt.enqueued?;
        let (until, token, group) = match &attempt.answer {
            Answer::Pending => (attempt.alive_until, u64::MAX, UNKNOWN),
            Answer::Failed { waited_until, .. } => ((*waited_until)?, u64::MAX, UNKNOWN),
            // The process was stopped meanwhile, so the time of the grant is unknown.
            Answer::Granted(held) if held.was_spent() => return None,
            Answer::Granted(held) => {
                let group = group(held.grant.mode);
                (held.at, token_of(held, u64::MAX), group)
            }
        };
        (until > from).then_some(Self {
            attempt,
            from,
            until,
            token,
            group,
        })
    }
}

/// Tokens of readers and permits imply no order.
fn token_of(held: &Held, without: u64) -> u64 {
    match held.grant.mode {
        Mode::Exclusive => held.grant.token.unwrap_or(without),
        Mode::Shared | Mode::Permits(_) => without,
    }
}

/// Looks for a wait that each grant overtook: known before the grant's request, lasting beyond the
/// grant, and without an earlier token. `waits` are in the order of their start.
fn overtakings(lock: &Lock, waits: &[Wait<'_>], slack: u64, worst: &mut Worst) -> u64 {
    // Positions in the trees: waits that last longest come first.
    let mut ends: Vec<u64> = waits.iter().map(|wait| wait.until).collect();
    ends.sort_unstable_by(|a, b| b.cmp(a));
    let lasting_beyond = |at: u64| ends.partition_point(|&end| end > at);
    let mut trees: [MaxTree<(u64, usize)>; GROUPS] =
        std::array::from_fn(|_| MaxTree::new(waits.len()));

    let mut grants: Vec<_> = lock.grants().filter(|(_, held)| !held.reentrant).collect();
    grants.sort_by_key(|(attempt, _)| attempt.started);
    let mut known = 0;
    let mut found = 0;
    for (attempt, held) in grants {
        while let Some(wait) = waits.get(known).filter(|wait| wait.from < attempt.started) {
            trees[wait.group].raise(lasting_beyond(wait.until), (wait.token, known));
            known += 1;
        }
        let own = group(held.grant.mode);
        let token = token_of(held, 0);
        let overtaken = trees.iter().enumerate().find_map(|(group, tree)| {
            // Replies of grants that can coexist may come in any order.
            let together = own != EXCLUSIVE && (group == own || group == UNKNOWN);
            let at = held.at.saturating_add(if together { slack } else { 0 });
            let longest = tree.max_of_first(lasting_beyond(at))?;
            (longest.0 > token).then_some(&waits[longest.1])
        });
        if let Some(wait) = overtaken {
            found += 1;
            worst.add(Offence {
                lock: lock.name.clone(),
                at_ns: held.at,
                length_ns: wait.until - held.at,
                first: wait.attempt.id,
                second: Some(attempt.id),
                note: "waiting when one that came later was granted".to_owned(),
            });
        }
    }
    found
}
