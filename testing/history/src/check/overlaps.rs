//! Which holders coexisted, by validity and by use.

use crate::assemble::{Assembled, Lock};
use crate::attempt::Attempt;
use crate::event::Mode;
use crate::offence::Offence;
use crate::offence::Worst;
use crate::options::Options;
use crate::overlap::{Access, Span, WeightedSpan, find_excess, find_overlaps};
use crate::verdict::OverlapCount;

use super::after_end;

pub(super) struct Found {
    pub(super) validity: OverlapCount,
    pub(super) in_use: OverlapCount,
    pub(super) permit_validity: OverlapCount,
    pub(super) permit_use: OverlapCount,
    /// When grants started during others, and how long they overlapped.
    pub(super) double_grants: Vec<(u64, u64)>,
}

pub(super) fn check(all: &Assembled, options: &Options) -> Found {
    let mut validity = Tally::new("both valid", options);
    let mut in_use = Tally::new("both inside", options);
    let mut permit_validity = Tally::new("valid", options);
    let mut permit_use = Tally::new("in use", options);
    // The overlaps that remain once late ends are excused.
    let mut left_in_use = Tally::new("both inside", options);
    let mut left_of_permits = Tally::new("in use", options);
    for lock in &all.locks {
        let believed = Stretches::believed(lock);
        let used = Stretches::used(lock);
        validity.exclusive(lock, &believed);
        in_use.exclusive(lock, &used);
        permit_validity.limited(lock, &believed);
        permit_use.limited(lock, &used);
        let strict = Stretches::used_less_excused(all, lock, options);
        left_in_use.exclusive(lock, &strict);
        left_of_permits.limited(lock, &strict);
    }
    in_use.excuse_all_but(left_in_use);
    permit_use.excuse_all_but(left_of_permits);
    let mut double_grants = std::mem::take(&mut validity.starts);
    double_grants.append(&mut permit_validity.starts);
    Found {
        validity: validity.into_count(),
        in_use: in_use.into_count(),
        permit_validity: permit_validity.into_count(),
        permit_use: permit_use.into_count(),
        double_grants,
    }
}

/// The periods of one lock's grants, with their attempts.
struct Stretches<'a>(Vec<(&'a Attempt, Mode, u64, u64)>);

impl<'a> Stretches<'a> {
    fn believed(lock: &'a Lock) -> Self {
        let all = lock.grants().flat_map(|(attempt, held)| {
            let stretches = held.believed.iter();
            stretches.map(move |&(start, end)| (attempt, held.grant.mode, start, end))
        });
        // A grant that had ended when it came was never believed.
        Self(all.filter(|&(_, _, start, end)| start < end).collect())
    }

    fn used(lock: &'a Lock) -> Self {
        let all = lock.grants().flat_map(|(attempt, held)| {
            let uses = attempt.certain_uses();
            uses.map(move |(start, end)| (attempt, held.grant.mode, start, end))
        });
        Self(all.collect())
    }

    fn used_less_excused(all: &'a Assembled, lock: &'a Lock, options: &Options) -> Self {
        let mut kept = Vec::new();
        for (attempt, held) in lock.grants() {
            let uses = after_end::uses_less_excused(all, (attempt, held), options);
            let uses = uses.filter(|(start, end)| start < end);
            kept.extend(uses.map(|(start, end)| (attempt, held.grant.mode, start, end)));
        }
        Self(kept)
    }
}

struct Tally {
    count: OverlapCount,
    worst: Worst,
    note: &'static str,
    starts: Vec<(u64, u64)>,
}

impl Tally {
    fn new(note: &'static str, options: &Options) -> Self {
        Self {
            count: OverlapCount::default(),
            worst: Worst::new(options.examples),
            note,
            starts: Vec::new(),
        }
    }

    fn exclusive(&mut self, lock: &Lock, stretches: &Stretches<'_>) {
        let (attempts, spans): (Vec<_>, Vec<_>) = stretches
            .0
            .iter()
            .filter_map(|&(attempt, mode, start, end)| {
                let access = match mode {
                    Mode::Exclusive => Access::Exclusive,
                    Mode::Shared => Access::Shared,
                    Mode::Permits(_) => return None,
                };
                let span = Span {
                    start,
                    end,
                    holder: attempt.holder,
                    access,
                };
                Some((attempt, span))
            })
            .unzip();
        let found = find_overlaps(&spans);
        self.add(spans.len(), found.pairs, found.longest_ns, found.total_ns);
        for conflict in found.conflicts {
            let length_ns = conflict.end - conflict.start;
            self.starts.push((conflict.start, length_ns));
            self.worst.add(Offence {
                lock: lock.name.clone(),
                at_ns: conflict.start,
                length_ns,
                first: attempts[conflict.earlier].id,
                second: Some(attempts[conflict.later].id),
                note: self.note.to_owned(),
            });
        }
    }

    fn limited(&mut self, lock: &Lock, stretches: &Stretches<'_>) {
        // Without a limit the history is malformed, which another check reports.
        let Some(limit) = lock.rules.permits else {
            return;
        };
        let (attempts, spans): (Vec<_>, Vec<_>) = stretches
            .0
            .iter()
            .filter_map(|&(attempt, mode, start, end)| match mode {
                Mode::Permits(permits) => {
                    let weight = u64::from(permits);
                    Some((attempt, WeightedSpan { start, end, weight }))
                }
                Mode::Exclusive | Mode::Shared => None,
            })
            .unzip();
        let found = find_excess(&spans, u64::from(limit));
        self.add(spans.len(), found.count, found.longest_ns, found.total_ns);
        for (index, until) in found.over {
            let span = &spans[index];
            let length_ns = until.saturating_sub(span.start);
            self.starts.push((span.start, length_ns));
            self.worst.add(Offence {
                lock: lock.name.clone(),
                at_ns: span.start,
                length_ns,
                first: attempts[index].id,
                second: None,
                note: format!("more than {limit} permits {}", self.note),
            });
        }
    }

    fn add(&mut self, checked: usize, count: u64, longest_ns: u64, total_ns: u64) {
        self.count.checked += checked as u64;
        self.count.count = self.count.count.saturating_add(count);
        self.count.longest_ns = self.count.longest_ns.max(longest_ns);
        self.count.total_ns = self.count.total_ns.saturating_add(total_ns);
    }

    /// Overlaps that are not in `left` are excused, and not listed as examples.
    fn excuse_all_but(&mut self, left: Self) {
        self.count.excused = self.count.count.saturating_sub(left.count.count);
        self.worst = left.worst;
    }

    fn into_count(self) -> OverlapCount {
        OverlapCount {
            examples: self.worst.into_list(),
            ..self.count
        }
    }
}
