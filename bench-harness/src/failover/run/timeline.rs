//! Cuts the most telling stretch out of a cell.

use std::collections::HashMap;

use locktopus_history::{Event, History, Mode, Verdict};

use super::deployment_run::DeploymentRun;
use super::fault_context::Marked;
use crate::failover::model::{Grant, Mark, Timeline};
use crate::failover::plan::Cell;

/// Time to show before the fault.
const BEFORE_NS: u64 = 2_000_000_000;
/// Time to show after its last consequence.
const AFTER_NS: u64 = 4_000_000_000;
/// The longest stretch that can be drawn.
const LONGEST_NS: u64 = 16_000_000_000;
/// Grants to draw for each lock. More are thinned out evenly, except double grants.
const MOST_GRANTS: usize = 100;
const MOST_LOCKS: usize = 8;

/// A stretch around the fault with the longest overlap, else around the first fault.
pub(super) fn draw(
    cell: &Cell,
    result: &[DeploymentRun],
    histories: &[History],
    verdict: &Verdict,
) -> Option<Timeline> {
    let overlap = verdict.validity.examples.first();
    let telling = overlap.and_then(|overlap| {
        result
            .iter()
            .position(|one| overlap.lock.starts_with(&format!("{}:", one.prefix)))
    });
    let at = telling.unwrap_or(0);
    let (one, history) = (result.get(at)?, histories.get(at)?);
    let faults = || one.marks.iter().filter(|mark| mark.fault);
    let fault = match overlap {
        Some(overlap) => faults().rev().find(|mark| mark.at <= overlap.at_ns),
        None => faults().next(),
    };
    let (first, last) = (history.records().first()?.at, history.records().last()?.at);
    let centre = fault.map_or(first, |mark| mark.at);
    let until_next = faults().find(|mark| mark.at > centre);
    let over = one
        .marks
        .iter()
        .take_while(|mark| until_next.is_none_or(|next| mark.at < next.at))
        .map(|mark| mark.at)
        .chain(overlap.map(|overlap| overlap.at_ns + overlap.length_ns))
        .max()
        .unwrap_or(centre);
    let from = centre.saturating_sub(BEFORE_NS).max(first);
    let until = (over + AFTER_NS).min(from + LONGEST_NS).min(last.max(over));
    Some(cut(cell, one, history, from, until))
}

fn cut(cell: &Cell, one: &DeploymentRun, history: &History, from: u64, until: u64) -> Timeline {
    let all = attempts(history);
    let mut locks: Vec<&str> = Vec::new();
    let groups = cell.scenario.groups.iter();
    let names: Vec<String> = groups
        .flat_map(|group| group.lock_names(&one.prefix))
        .collect();
    locks.extend(names.iter().take(MOST_LOCKS).map(String::as_str));
    let mut grants: Vec<Grant> = Vec::new();
    let mut believed: HashMap<usize, Believed> = HashMap::new();
    let mut seen: Vec<_> = all.into_values().filter(|seen| seen.granted > 0).collect();
    seen.sort_by_key(|seen| seen.granted);
    for seen in seen {
        let Some(lock) = locks.iter().position(|lock| *lock == seen.lock) else {
            continue;
        };
        let valid_until = seen.valid_until();
        let double = believed.entry(lock).or_default().add(&seen);
        if valid_until < from || seen.granted > until {
            continue;
        }
        let place = |at: u64| at.clamp(from, until) - from;
        grants.push(Grant {
            lock,
            process: one.process_of.get(&seen.worker).copied().unwrap_or(0),
            from_ns: place(seen.granted),
            used_until_ns: place(seen.used_until.max(seen.granted)),
            valid_until_ns: place(valid_until),
            double,
        });
    }
    thin_out(&mut grants, locks.len());
    let count = one.process_of.values().max().map_or(0, |last| last + 1);
    Timeline {
        span_ns: until - from,
        locks: locks.iter().map(|lock| short(lock, &one.prefix)).collect(),
        processes: (0..count).map(|index| format!("process {index}")).collect(),
        grants,
        marks: marks(&one.marks, from, until),
    }
}

fn thin_out(grants: &mut Vec<Grant>, locks: usize) {
    for lock in 0..locks {
        let of_lock = grants.iter().filter(|grant| grant.lock == lock).count();
        let step = of_lock.div_ceil(MOST_GRANTS).max(1);
        let mut number = 0;
        grants.retain(|grant| {
            number += usize::from(grant.lock == lock);
            grant.lock != lock || grant.double || number % step == 0
        });
    }
}

fn short(lock: &str, prefix: &str) -> String {
    lock.strip_prefix(prefix)
        .unwrap_or(lock)
        .trim_start_matches(':')
        .to_owned()
}

fn marks(all: &[Marked], from: u64, until: u64) -> Vec<Mark> {
    all.iter()
        .filter(|mark| (from..=until).contains(&mark.at))
        .map(|mark| Mark {
            at_ns: mark.at - from,
            what: mark.what.clone(),
            target: mark.target.clone(),
            fault: mark.fault,
        })
        .collect()
}

#[derive(Default)]
struct Seen {
    worker: u32,
    lock: String,
    granted: u64,
    promised: u64,
    ended: Option<u64>,
    used_until: u64,
    mode: Option<Mode>,
}

/// Until when any holder believes in a lock, and until when an exclusive holder does.
#[derive(Default)]
struct Believed {
    anybody: u64,
    alone: u64,
}

impl Believed {
    /// Adds the next grant; returns whether an earlier holder that excludes it still believed.
    fn add(&mut self, seen: &Seen) -> bool {
        let until = seen.valid_until();
        let before = match seen.mode {
            Some(Mode::Shared) => self.alone,
            // Too many permits have no single culprit; the checker counts permits instead.
            Some(Mode::Permits(_)) => 0,
            Some(Mode::Exclusive) | None => self.anybody,
        };
        self.anybody = self.anybody.max(until);
        if seen.mode == Some(Mode::Exclusive) {
            self.alone = self.alone.max(until);
        }
        before > seen.granted
    }
}

impl Seen {
    fn valid_until(&self) -> u64 {
        self.ended
            .map_or(self.promised, |end| end.min(self.promised))
    }

    fn end(&mut self, at: u64) {
        self.ended = Some(self.ended.map_or(at, |end| end.min(at)));
    }
}

fn attempts(history: &History) -> HashMap<(u32, u64), Seen> {
    let mut all: HashMap<(u32, u64), Seen> = HashMap::new();
    for record in history.records() {
        let Some(attempt) = record.event.attempt() else {
            continue;
        };
        let seen = all.entry((record.worker, attempt)).or_default();
        seen.worker = record.worker;
        match &record.event {
            Event::Started { lock, .. } => seen.lock.clone_from(lock),
            Event::Granted { grant, .. } => {
                seen.granted = record.at;
                seen.promised = grant.valid_until;
                seen.mode = Some(grant.mode);
            }
            Event::Extended { valid_until, .. } | Event::Observed { valid_until, .. } => {
                seen.promised = seen.promised.max(*valid_until);
            }
            Event::UseEnded { .. } => seen.used_until = record.at,
            Event::Lost { .. } | Event::ReleaseStarted { .. } => seen.end(record.at),
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_double_beside_a_writer_only() {
        let mut believed = Believed::default();
        let mut add = |mode, granted, promised| {
            believed.add(&Seen {
                granted,
                promised,
                mode: Some(mode),
                ..Seen::default()
            })
        };
        assert!(!add(Mode::Shared, 10, 30));
        assert!(!add(Mode::Shared, 20, 40));
        assert!(add(Mode::Exclusive, 39, 60));
        assert!(add(Mode::Shared, 59, 70));
        assert!(!add(Mode::Shared, 60, 65));
        assert!(!add(Mode::Exclusive, 70, 80));
    }
}
