//! Times when a lock was wanted but not granted, and the effect of each fault.

use std::collections::BTreeMap;

use crate::assemble::{Assembled, Fault, Lock};
use crate::attempt::{Answer, Attempt};
use crate::clock::nanos;
use crate::event::AttemptId;
use crate::offence::Offence;
use crate::offence::Worst;
use crate::options::Options;
use crate::quantiles::Quantiles;
use crate::verdict::{FaultEffect, Outage, VerbEffect};
use crate::wilson::Rate;

pub(super) fn check(all: &Assembled, double_grants: &[(u64, u64)], options: &Options) -> Outage {
    let limit = options.outage_limit.map(nanos);
    let mut outage = Outage {
        limit_ns: limit,
        faults: all.faults.iter().map(effect).collect(),
        ..Outage::default()
    };
    let verbs = by_verb(&all.faults);
    let mut worst = Worst::new(options.examples);
    for lock in &all.locks {
        let wishes = wishes(lock, nanos(options.retry_pause));
        for gap in gaps(lock, &wishes) {
            let length_ns = gap.end - gap.start;
            outage.gaps += 1;
            outage.longest_ns = outage.longest_ns.max(length_ns);
            // A short gap needs no excuse.
            let over = |limit| length_ns > limit && awake(all, &wishes, &gap) > limit;
            let is_over = limit.is_some_and(over);
            outage.over_limit += u64::from(is_over);
            if limit.is_none() || is_over {
                worst.add(Offence {
                    lock: lock.name.clone(),
                    at_ns: gap.start,
                    length_ns,
                    first: gap.wanted_by,
                    second: None,
                    note: "wanted, and nobody was granted it".to_owned(),
                });
            }
            for marks in verbs.values() {
                blame_gap(&gap, marks, &mut outage.faults);
            }
        }
    }
    for &(start, length) in double_grants {
        for marks in verbs.values() {
            blame_overlap(start, length, marks, &mut outage.faults);
        }
    }
    outage.examples = worst.into_list();
    outage.verbs = verbs
        .iter()
        .map(|(verb, marks)| summary(verb, marks, &outage.faults))
        .collect();
    outage
}

/// The time and index of each fault of a verb.
type Marks = Vec<(u64, usize)>;

fn by_verb(faults: &[Fault]) -> BTreeMap<&str, Marks> {
    let mut verbs: BTreeMap<_, Marks> = BTreeMap::new();
    for (index, fault) in faults.iter().enumerate() {
        verbs
            .entry(&*fault.verb)
            .or_default()
            .push((fault.at, index));
    }
    verbs
}

fn effect(fault: &Fault) -> FaultEffect {
    FaultEffect {
        at_ns: fault.at,
        verb: fault.verb.clone(),
        target: fault.target.clone(),
        outage_ns: None,
        double_grants: 0,
        longest_overlap_ns: 0,
    }
}

/// Blames the gap on each fault that it lasts beyond, up to the next fault of the same verb,
/// without the part of the gap before the fault.
fn blame_gap(gap: &Gap, marks: &Marks, effects: &mut [FaultEffect]) {
    let first = marks
        .partition_point(|&(at, _)| at <= gap.start)
        .saturating_sub(1);
    for &(at, index) in marks[first..].iter().take_while(|&&(at, _)| at < gap.end) {
        let length = gap.end - gap.start.max(at);
        let worst = &mut effects[index].outage_ns;
        *worst = (*worst).max(Some(length));
    }
}

/// Blames the last fault of the verb before the overlap started.
fn blame_overlap(start: u64, length: u64, marks: &Marks, effects: &mut [FaultEffect]) {
    let before = marks.partition_point(|&(at, _)| at <= start);
    if let Some(&(_, index)) = before.checked_sub(1).and_then(|last| marks.get(last)) {
        let effect = &mut effects[index];
        effect.double_grants += 1;
        effect.longest_overlap_ns = effect.longest_overlap_ns.max(length);
    }
}

fn summary(verb: &str, marks: &Marks, effects: &[FaultEffect]) -> VerbEffect {
    let of_verb = || marks.iter().map(|&(_, index)| &effects[index]);
    let hit = of_verb().filter(|effect| effect.double_grants > 0).count();
    VerbEffect {
        verb: verb.to_owned(),
        outage: Quantiles::of(of_verb().filter_map(|effect| effect.outage_ns).collect()),
        double_grants: Rate::new(hit as u64, marks.len() as u64)
            .unwrap_or_else(|| unreachable!("a part of the marks")),
    }
}

/// How long, during a gap, at least one waiter was not stalled: a stalled waiter is no excuse for
/// what another one, which was awake, did not get.
fn awake(all: &Assembled, wishes: &[Gap], gap: &Gap) -> u64 {
    let mut awake = Vec::new();
    // Later wishes start after the end of the gap.
    let begun = wishes.partition_point(|wish| wish.start < gap.end);
    for wish in wishes[..begun].iter().filter(|wish| wish.end > gap.start) {
        let (from, until) = (wish.start.max(gap.start), wish.end.min(gap.end));
        awake.extend(all.stalls.without(wish.wanted_by.worker, from, until));
    }
    awake.sort_unstable();
    let (mut sum, mut counted) = (0, gap.start);
    for (from, until) in awake {
        sum += until.saturating_sub(from.max(counted));
        counted = counted.max(until);
    }
    sum
}

/// A time when the lock was always wanted and never granted.
#[derive(Clone, Copy)]
struct Gap {
    start: u64,
    end: u64,
    wanted_by: AttemptId,
}

/// `wishes` are in the order of their start.
fn gaps(lock: &Lock, wishes: &[Gap]) -> Vec<Gap> {
    let mut granted: Vec<u64> = lock.grants().map(|(_, held)| held.at).collect();
    granted.sort_unstable();
    let mut gaps = Vec::new();
    for stretch in wanted(wishes) {
        let mut start = stretch.start;
        let first = granted.partition_point(|&at| at <= start);
        for &at in granted[first..].iter().take_while(|&&at| at < stretch.end) {
            gaps.push(Gap {
                start,
                end: at,
                ..stretch
            });
            start = at;
        }
        gaps.push(Gap { start, ..stretch });
    }
    gaps.retain(|gap| gap.start < gap.end);
    gaps
}

/// The times when any worker wanted the lock, merged.
fn wanted(wishes: &[Gap]) -> Vec<Gap> {
    let mut merged: Vec<Gap> = Vec::new();
    for wish in wishes {
        match merged.last_mut() {
            Some(last) if wish.start <= last.end => last.end = last.end.max(wish.end),
            Some(_) | None => merged.push(*wish),
        }
    }
    merged
}

/// When each worker wanted the lock, in the order of their start. A worker that fails and soon
/// tries again wanted it all the time.
fn wishes(lock: &Lock, pause: u64) -> Vec<Gap> {
    let mut attempts: Vec<&Attempt> = lock.attempts.iter().collect();
    attempts.sort_by_key(|attempt| (attempt.id.worker, attempt.started));
    let mut wishes: Vec<Gap> = Vec::new();
    let mut previous: Option<&Attempt> = None;
    for attempt in attempts {
        let (end, _) = answered(attempt);
        if let (Some(before), Some(wish)) = (previous, wishes.last_mut())
            && before.id.worker == attempt.id.worker
            && let (failed, true) = answered(before)
            && attempt.started.saturating_sub(failed) <= pause
        {
            wish.end = wish.end.max(end);
        } else {
            wishes.push(Gap {
                start: attempt.started,
                end,
                wanted_by: attempt.id,
            });
        }
        previous = Some(attempt);
    }
    wishes.sort_by_key(|wish| wish.start);
    wishes
}

/// When the attempt was over, and whether it failed.
fn answered(attempt: &Attempt) -> (u64, bool) {
    match &attempt.answer {
        Answer::Granted(held) => (held.at, false),
        Answer::Failed { at, .. } => (*at, true),
        Answer::Pending => (attempt.alive_until, false),
    }
}
