//! Overlaps of exclusive spans with others, and of readers with writers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::latest::{Ending, Latest};

/// Which others may coexist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each match needs a review")]
pub enum Access {
    /// No others.
    Exclusive,
    /// Other shared spans.
    Shared,
}

/// A period that belongs to a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct Span {
    /// First nanosecond.
    pub start: u64,
    /// The nanosecond after the last one; a span that ends before its start has no length.
    pub end: u64,
    /// Spans of one holder never conflict.
    pub holder: u32,
    /// Which others may coexist.
    pub access: Access,
}

/// Two spans that must not overlap, and do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// Index of the span that began first.
    pub earlier: usize,
    /// Index of the span that started during the earlier one.
    pub later: usize,
    /// Start of the overlap.
    pub start: u64,
    /// End of the overlap.
    pub end: u64,
}

/// The result of [`find_overlaps`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overlaps {
    /// Pairs of spans that overlap and must not.
    pub pairs: u64,
    /// The longest overlap of a pair, in nanoseconds.
    pub longest_ns: u64,
    /// How long any two overlapped in total, in nanoseconds; overlapping time counts once.
    pub total_ns: u64,
    /// For each span that started during another one, its longest overlap with those that started
    /// before. In the order of their start.
    pub conflicts: Vec<Conflict>,
}

/// Finds pairs of spans of different holders that overlap although one of them is exclusive.
///
/// `spans` may be in any order; the results name them by index.
///
/// ```
/// use locktopus_history::{Access, Span, find_overlaps};
///
/// let span = |holder, start, end| Span { start, end, holder, access: Access::Exclusive };
/// let found = find_overlaps(&[span(0, 0, 10), span(1, 10, 20), span(2, 18, 30)]);
/// assert_eq!((found.pairs, found.longest_ns), (1, 2));
/// assert_eq!((found.conflicts[0].earlier, found.conflicts[0].later), (1, 2));
/// ```
#[must_use]
pub fn find_overlaps(spans: &[Span]) -> Overlaps {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    // Spans without a length come first: they end before others of that instant start.
    order.sort_by_key(|&at| (spans[at].start, end_of(&spans[at])));
    let mut sweep = Sweep::default();
    let mut found = Overlaps::default();
    for index in order {
        let span = &spans[index];
        sweep.end_until(spans, span.start, &mut found);
        found.pairs += sweep.present.conflicts_of(span);
        if let Some(other) = sweep.latest_against(span) {
            let end = other.end.min(end_of(span));
            found.longest_ns = found.longest_ns.max(end - span.start);
            found.conflicts.push(Conflict {
                earlier: other.index,
                later: index,
                start: span.start,
                end,
            });
        }
        sweep.begin(index, span);
    }
    sweep.end_until(spans, u64::MAX, &mut found);
    found
}

fn end_of(span: &Span) -> u64 {
    span.end.max(span.start)
}

#[derive(Default)]
struct Sweep {
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    present: Present,
    conflict_since: Option<u64>,
    writers: Latest,
    anybody: Latest,
}

impl Sweep {
    fn end_until(&mut self, spans: &[Span], now: u64, found: &mut Overlaps) {
        while let Some(&Reverse((end, index))) = self.ends.peek() {
            if end > now {
                break;
            }
            self.ends.pop();
            self.present.remove(&spans[index]);
            if !self.present.in_conflict()
                && let Some(since) = self.conflict_since.take()
            {
                found.total_ns += end - since;
            }
        }
    }

    /// Of the earlier spans that must not overlap this one, the one that ends last, if it has not
    /// ended yet.
    fn latest_against(&self, span: &Span) -> Option<Ending> {
        let earlier = match span.access {
            Access::Exclusive => &self.anybody,
            Access::Shared => &self.writers,
        };
        earlier
            .of_others(span.holder)
            .filter(|other| other.end > span.start)
    }

    fn begin(&mut self, index: usize, span: &Span) {
        let end = end_of(span);
        self.present.add(span);
        self.ends.push(Reverse((end, index)));
        let ending = Ending {
            end,
            holder: span.holder,
            index,
        };
        self.anybody.offer(ending);
        if span.access == Access::Exclusive {
            self.writers.offer(ending);
        }
        if self.present.in_conflict() {
            self.conflict_since.get_or_insert(span.start);
        }
    }
}

/// The spans of one instant.
#[derive(Default)]
struct Present {
    by_holder: HashMap<u32, Count>,
    all: Count,
    writing_holders: u64,
    reading_holders: u64,
    holders_of_both: u64,
}

#[derive(Clone, Copy, Default)]
struct Count {
    writers: u64,
    readers: u64,
}

impl Count {
    const fn of(&mut self, access: Access) -> &mut u64 {
        match access {
            Access::Exclusive => &mut self.writers,
            Access::Shared => &mut self.readers,
        }
    }
}

impl Present {
    fn conflicts_of(&self, span: &Span) -> u64 {
        let own = self
            .by_holder
            .get(&span.holder)
            .copied()
            .unwrap_or_default();
        let writers = self.all.writers - own.writers;
        match span.access {
            Access::Exclusive => writers + self.all.readers - own.readers,
            Access::Shared => writers,
        }
    }

    fn in_conflict(&self) -> bool {
        self.writing_holders > 1
            || (self.writing_holders == 1 && self.reading_holders > self.holders_of_both)
    }

    fn add(&mut self, span: &Span) {
        *self.all.of(span.access) += 1;
        self.change(span, |count| *count += 1);
    }

    fn remove(&mut self, span: &Span) {
        *self.all.of(span.access) -= 1;
        self.change(span, |count| *count -= 1);
    }

    fn change(&mut self, span: &Span, by: impl FnOnce(&mut u64)) {
        let own = self.by_holder.entry(span.holder).or_default();
        let before = *own;
        by(own.of(span.access));
        let after = *own;
        if after.writers + after.readers == 0 {
            self.by_holder.remove(&span.holder);
        }
        step(&mut self.writing_holders, before.writers, after.writers);
        step(&mut self.reading_holders, before.readers, after.readers);
        step(
            &mut self.holders_of_both,
            before.writers.min(before.readers),
            after.writers.min(after.readers),
        );
    }
}

/// Adds or removes a holder when its number of spans leaves or reaches zero.
const fn step(holders: &mut u64, before: u64, after: u64) {
    match (before, after) {
        (0, 1..) => *holders += 1,
        (1.., 0) => *holders -= 1,
        _ => {}
    }
}
