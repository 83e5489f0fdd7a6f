//! Which writes a resource that checks tokens accepted and rejected.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::assemble::{Assembled, Lock};
use crate::attempt::{Attempt, Held, Tenure};
use crate::clock::nanos;
use crate::event::{Write, WriteOutcome};
use crate::fenwick::MaxTree;
use crate::offence::Offence;
use crate::offence::Worst;
use crate::options::Options;
use crate::overlap::latest::{Ending, Latest};
use crate::verdict::FencedWrites;

pub(super) fn check(all: &Assembled, options: &Options) -> FencedWrites {
    let mut found = FencedWrites::default();
    let mut missed = Worst::new(options.examples);
    let mut good = Worst::new(options.examples);
    for lock in &all.locks {
        for issued in by_resource(lock).values() {
            let stale = stale(issued);
            let justified = justified(lock, issued, passed_on(options));
            for (at, one) in issued.iter().enumerate() {
                found.writes += 1;
                let is_stale = stale[at] == Staleness::Stale;
                found.stale_issued += u64::from(is_stale);
                match one.write.outcome {
                    WriteOutcome::Unknown => found.unknown += 1,
                    WriteOutcome::Accepted => {
                        found.accepted += 1;
                        if stale[at] != Staleness::Fresh {
                            found.stale_issued += u64::from(!is_stale);
                            found.stale_missed += 1;
                            missed.add(one.offence(lock, "stale, and accepted"));
                        }
                    }
                    WriteOutcome::Rejected => {
                        found.rejected += 1;
                        found.stale_caught += u64::from(is_stale);
                        if !is_stale && !justified[at] {
                            found.good_rejected += 1;
                            good.add(one.offence(lock, "of the current holder, and rejected"));
                        }
                    }
                }
            }
        }
    }
    found.missed_examples = missed.into_list();
    found.good_examples = good.into_list();
    found
}

/// A write and its issuer.
struct Issued<'a> {
    attempt: &'a Attempt,
    tenure: Tenure,
    tenure_index: usize,
    answered: u64,
    write: &'a Write,
}

impl Issued<'_> {
    fn offence(&self, lock: &Lock, what: &str) -> Offence {
        Offence {
            lock: lock.name.clone(),
            at_ns: self.write.issued,
            length_ns: 0,
            first: self.attempt.id,
            second: None,
            note: format!(
                "write {} to {:?} {what}",
                self.write.token, self.write.resource
            ),
        }
    }
}

fn by_resource(lock: &Lock) -> HashMap<&str, Vec<Issued<'_>>> {
    let mut resources: HashMap<_, Vec<_>> = HashMap::new();
    for (attempt, held) in lock.grants() {
        for (answered, write) in &held.writes {
            let issued = Issued {
                attempt,
                tenure: lock.tenures[held.tenure],
                tenure_index: held.tenure,
                answered: *answered,
                write,
            };
            resources.entry(&*write.resource).or_default().push(issued);
        }
    }
    resources
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Staleness {
    /// No evidence against it.
    Fresh,
    /// Smaller than a token accepted before, though its holder came later: tokens fell. Accepting
    /// it breaks the promise of the resource, and rejecting it hurts the holder.
    Smaller,
    /// A later holder had written before.
    Stale,
}

/// Compares each write with those accepted before it was issued, by the clock and by the resource's
/// own count.
fn stale(issued: &[Issued<'_>]) -> Vec<Staleness> {
    let mut stale = vec![Staleness::Fresh; issued.len()];
    let by_clock = |one: &Issued<'_>| Some((one.write.issued, one.answered));
    compare(issued, by_clock, &mut stale);
    let by_count = |one: &Issued<'_>| one.write.order.map(|order| (order, order));
    compare(issued, by_count, &mut stale);
    stale
}

/// `time` returns when a write started and when it was over, if known.
fn compare(
    issued: &[Issued<'_>],
    time: impl Fn(&Issued<'_>) -> Option<(u64, u64)>,
    stale: &mut [Staleness],
) {
    let (mut beginnings, mut done) = (Vec::new(), Vec::new());
    for (at, one) in issued.iter().enumerate() {
        if let Some((begun, over)) = time(one) {
            beginnings.push((begun, at));
            if one.write.outcome == WriteOutcome::Accepted {
                done.push((over, at));
            }
        }
    }
    beginnings.sort_unstable();
    done.sort_unstable();
    let mut done = done.into_iter().peekable();
    let tokens = Ranks::new(issued.iter().map(|one| one.write.token));
    let mut granted = MaxTree::new(issued.len());
    let (mut last_started, mut largest) = (None, None);
    for (begun, at) in beginnings {
        while let Some((_, earlier)) = done.next_if(|&(over, _)| over < begun) {
            let earlier = &issued[earlier];
            let token = earlier.write.token;
            granted.raise(tokens.position(token), earlier.tenure.granted);
            last_started = last_started.max(Some(earlier.tenure.started));
            largest = largest.max(Some(token));
        }
        let (token, own) = (issued[at].write.token, &issued[at].tenure);
        let later_holder = last_started.is_some_and(|started| started > own.granted);
        // A holder with a larger token that did not certainly come before this one.
        let larger = granted.max_of_first(tokens.larger_than(token));
        let found = if later_holder || larger.is_some_and(|granted| granted >= own.started) {
            Staleness::Stale
        } else if largest > Some(token) {
            Staleness::Smaller
        } else {
            Staleness::Fresh
        };
        stale[at] = stale[at].max(found);
    }
}

/// How much older than its grant a token may be if two servers may grant one lock, as in the check
/// of the order of tokens.
fn passed_on(options: &Options) -> u64 {
    if options.exclusive {
        return 0;
    }
    nanos(options.handed_on)
}

/// Whether a refusal can be right: another holder with a larger or equal token, which did not
/// certainly come before, may have written before the answer. If a token is older than its grant by
/// at most `passed_on`, it is from before any grant to others in that time.
fn justified(lock: &Lock, issued: &[Issued<'_>], passed_on: u64) -> Vec<bool> {
    let mut writers: Vec<_> = issued
        .iter()
        .filter(|one| one.write.outcome != WriteOutcome::Rejected)
        .map(|one| (one.write.issued, one.write.token, one.tenure_index))
        .collect();
    // A killed worker may have written without recording it.
    let cut_off = |(attempt, held): (&Attempt, &Held)| {
        let token = held.grant.token.filter(|_| attempt.cut_off)?;
        Some((held.at, token, held.tenure))
    };
    writers.extend(lock.grants().filter_map(cut_off));
    writers.sort_unstable();
    let mut writers = writers.into_iter().peekable();

    let mut order: Vec<usize> = (0..issued.len()).collect();
    order.sort_by_key(|&at| issued[at].answered);
    let tokens = Ranks::new(
        issued
            .iter()
            .map(|one| one.write.token)
            .chain(lock.grants().filter_map(|(_, held)| held.grant.token)),
    );
    let mut granted = MaxTree::new(tokens.0.len());
    let mut same: HashMap<u64, Latest> = HashMap::new();
    let mut justified = vec![false; issued.len()];
    for at in order {
        let one = &issued[at];
        while let Some((_, token, tenure)) = writers.next_if(|&(begun, ..)| begun < one.answered) {
            let received = lock.tenures[tenure].granted;
            granted.raise(tokens.position(token), received);
            same.entry(token).or_default().offer(Ending {
                end: received,
                holder: number(tenure),
                index: tenure,
            });
        }
        let larger = granted.max_of_first(tokens.larger_than(one.write.token));
        let equal = same
            .get(&one.write.token)
            .and_then(|latest| latest.of_others(number(one.tenure_index)));
        justified[at] = larger
            .max(equal.map(|other| other.end))
            .is_some_and(|granted| granted >= one.tenure.started.saturating_sub(passed_on));
    }
    justified
}

/// Tokens from the largest to the smallest.
struct Ranks(Vec<Reverse<u64>>);

impl Ranks {
    fn new(tokens: impl Iterator<Item = u64>) -> Self {
        let mut tokens: Vec<_> = tokens.map(Reverse).collect();
        tokens.sort_unstable();
        Self(tokens)
    }

    fn larger_than(&self, token: u64) -> usize {
        self.0.partition_point(|&Reverse(other)| other > token)
    }

    /// The position of a token that is among them.
    fn position(&self, token: u64) -> usize {
        self.larger_than(token)
    }
}

/// Attempts are numbered with 32 bits, so tenures fit.
fn number(tenure: usize) -> u32 {
    u32::try_from(tenure).unwrap_or(u32::MAX)
}
