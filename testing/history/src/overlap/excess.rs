//! More at a time than a limit allows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A time when a holder had a share of something limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct WeightedSpan {
    /// First nanosecond.
    pub start: u64,
    /// The nanosecond after the last one; a span that ends before its start has no length.
    pub end: u64,
    /// How much of the limit it takes.
    pub weight: u64,
}

/// The result of [`find_excess`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excess {
    /// Spans at whose start the limit was exceeded.
    pub count: u64,
    /// The longest time without a break that the limit was exceeded, in nanoseconds.
    pub longest_ns: u64,
    /// How long it was exceeded in total, in nanoseconds.
    pub total_ns: u64,
    /// Indexes of those spans in the order of their start, and when the limit held again.
    pub over: Vec<(usize, u64)>,
}

/// Finds when the weights of the spans in force add up to more than `limit`.
///
/// `spans` may be in any order. A lock without re-entry is a limit of 1.
///
/// ```
/// use locktopus_history::{WeightedSpan, find_excess};
///
/// let span = |start, end, weight| WeightedSpan { start, end, weight };
/// let found = find_excess(&[span(0, 10, 2), span(5, 20, 1), span(6, 8, 1)], 3);
/// assert_eq!((found.count, found.longest_ns, found.over), (1, 2, vec![(2, 8)]));
/// ```
#[must_use]
pub fn find_excess(spans: &[WeightedSpan], limit: u64) -> Excess {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    // Spans without a length come first: they end before others of that instant start.
    order.sort_by_key(|&at| (spans[at].start, end_of(&spans[at])));
    let mut sweep = Sweep::default();
    let mut found = Excess::default();
    for index in order {
        let span = &spans[index];
        sweep.end_until(spans, span.start, limit);
        sweep.sum += u128::from(span.weight);
        sweep.ends.push(Reverse((end_of(span), index)));
        if sweep.sum > u128::from(limit) {
            found.count += 1;
            sweep.exceeded(span.start, &mut found);
            found.over.push((index, u64::MAX));
        }
    }
    sweep.end_until(spans, u64::MAX, limit);
    sweep.count_break(&mut found);
    found
}

fn end_of(span: &WeightedSpan) -> u64 {
    span.end.max(span.start)
}

#[derive(Default)]
struct Sweep {
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    sum: u128,
    over_since: Option<u64>,
    /// Start and end of the last excess that ended. It continues if another one starts at the
    /// instant of its end.
    over: Option<(u64, u64)>,
    /// How many of the found spans have their end.
    ended: usize,
}

impl Sweep {
    fn end_until(&mut self, spans: &[WeightedSpan], now: u64, limit: u64) {
        while let Some(&Reverse((end, index))) = self.ends.peek() {
            if end > now {
                break;
            }
            self.ends.pop();
            self.sum -= u128::from(spans[index].weight);
            if self.sum <= u128::from(limit)
                && let Some(since) = self.over_since.take()
            {
                self.over = Some((since, end));
            }
        }
    }

    fn exceeded(&mut self, at: u64, found: &mut Excess) {
        if self.over_since.is_none() {
            self.over_since = match self.over.take_if(|&mut (_, end)| end == at) {
                Some((since, _)) => Some(since),
                None => {
                    self.count_break(found);
                    Some(at)
                }
            };
        }
    }

    fn count_break(&mut self, found: &mut Excess) {
        if let Some((since, end)) = self.over.take() {
            found.longest_ns = found.longest_ns.max(end - since);
            found.total_ns += end - since;
            for (_, until) in &mut found.over[self.ended..] {
                *until = end;
            }
            self.ended = found.over.len();
        }
    }
}
