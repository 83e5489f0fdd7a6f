//! Lost updates of a read-modify-write under a lock.
//!
//! The test follows Jepsen's LockingSet: workers take a lock, read a value, wait a little, and
//! write it back with an element added. If an acknowledged element is missing at the end, another
//! worker has overwritten it, so two were inside at once. Run on a resource that checks tokens and
//! on one that does not, it shows the value of fencing.

use std::collections::BTreeMap;

use serde::Serialize;

/// Elements that workers added to a set under a lock, and the outcome of each.
///
/// ```
/// use locktopus_history::LockingSet;
///
/// let mut set = LockingSet::new();
/// set.acknowledged(1);
/// set.acknowledged(2);
/// set.refused(3); // The token was too old: not an update, so not a lost one.
/// set.unknown(4);
/// let loss = set.judge([2, 4]);
/// assert_eq!((loss.lost, loss.lost_elements), (1, vec![1]));
/// assert_eq!(loss.surplus, 0);
/// ```
#[derive(Clone, Debug, Default)]
pub struct LockingSet {
    elements: BTreeMap<u64, Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    Refused,
    Unknown,
    Acknowledged,
}

/// How many lost elements are listed; all are counted.
const LISTED: usize = 20;

/// The result of [`LockingSet::judge`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct SetLoss {
    /// Elements whose write was answered with success.
    pub acknowledged: u64,
    /// Elements whose write the resource refused.
    pub refused: u64,
    /// Elements whose write was not answered.
    pub unknown: u64,
    /// Elements that were acknowledged, and are missing from the set.
    pub lost: u64,
    /// The first lost elements.
    pub lost_elements: Vec<u64>,
    /// Elements in the set although they were refused, or never added.
    pub surplus: u64,
}

impl LockingSet {
    /// A set without elements. Each element may be added once.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The resource acknowledged the element.
    pub fn acknowledged(&mut self, element: u64) {
        self.add(element, Answer::Acknowledged);
    }

    /// The resource refused it: its token was too old.
    pub fn refused(&mut self, element: u64) {
        self.add(element, Answer::Refused);
    }

    /// No answer came; the element may be there or not.
    pub fn unknown(&mut self, element: u64) {
        self.add(element, Answer::Unknown);
    }

    /// Adds another worker's elements.
    pub fn merge(&mut self, other: Self) {
        for (element, answer) in other.elements {
            self.add(element, answer);
        }
    }

    /// Compares with the contents of the set at the end.
    #[must_use]
    pub fn judge(&self, present: impl IntoIterator<Item = u64>) -> SetLoss {
        let mut missing = self.elements.clone();
        let mut loss = SetLoss::default();
        let mut present: Vec<u64> = present.into_iter().collect();
        present.sort_unstable();
        present.dedup();
        for element in present {
            match missing.remove(&element) {
                None | Some(Answer::Refused) => loss.surplus += 1,
                Some(Answer::Unknown | Answer::Acknowledged) => {}
            }
        }
        for answer in self.elements.values() {
            *match answer {
                Answer::Refused => &mut loss.refused,
                Answer::Unknown => &mut loss.unknown,
                Answer::Acknowledged => &mut loss.acknowledged,
            } += 1;
        }
        for (element, _) in missing
            .into_iter()
            .filter(|(_, answer)| *answer == Answer::Acknowledged)
        {
            loss.lost += 1;
            if loss.lost_elements.len() < LISTED {
                loss.lost_elements.push(element);
            }
        }
        loss
    }

    /// Of two answers for one element, keeps the more certain one.
    fn add(&mut self, element: u64, answer: Answer) {
        let known = self.elements.entry(element).or_insert(answer);
        *known = (*known).max(answer);
    }
}

impl SetLoss {
    /// Lost updates per million acknowledged ones.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 updates")]
    pub fn lost_per_million(&self) -> f64 {
        if self.acknowledged == 0 {
            return 0.0;
        }
        1e6 * self.lost as f64 / self.acknowledged as f64
    }
}

/// The same for a counter, whose increments are all alike.
///
/// ```
/// use locktopus_history::CounterLoss;
///
/// // 100 increments acknowledged, 3 without an answer, and the counter went from 0 to 99.
/// let loss = CounterLoss::new(100, 3, 0, 99);
/// assert_eq!((loss.at_least, loss.at_most, loss.surplus), (1, 4, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CounterLoss {
    /// Increments answered with success.
    pub acknowledged: u64,
    /// Increments without an answer.
    pub unknown: u64,
    /// Certainly lost, even if no unknown increment was made.
    pub at_least: u64,
    /// Lost if every unknown increment was made.
    pub at_most: u64,
    /// More than all increments together: something else wrote the counter.
    pub surplus: u64,
}

impl CounterLoss {
    /// Compares increments with the counter's values before and after.
    #[must_use]
    pub const fn new(acknowledged: u64, unknown: u64, before: u64, after: u64) -> Self {
        let done = after.saturating_sub(before);
        // A counter that went down lost its earlier value as well.
        let went_down = before.saturating_sub(after);
        let most = acknowledged.saturating_add(unknown);
        Self {
            acknowledged,
            unknown,
            at_least: acknowledged.saturating_sub(done).saturating_add(went_down),
            at_most: most.saturating_sub(done).saturating_add(went_down),
            surplus: done.saturating_sub(most),
        }
    }
}

/// Lost updates of the same workload on two resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct LostUpdates {
    /// On a resource that accepts every write, so that only the lock protects it.
    pub unchecked: SetLoss,
    /// On a resource that refuses stale tokens; must be none.
    pub checked: SetLoss,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fate_is_told_apart() {
        let mut set = LockingSet::new();
        (0..10).for_each(|element| set.acknowledged(element));
        let mut other = LockingSet::new();
        other.refused(20);
        other.refused(21);
        other.unknown(30);
        other.unknown(31);
        set.merge(other);
        // 3 and 7 are gone, 21 is there although refused, 31 was written, 99 was never added.
        let loss = set.judge([0, 1, 2, 4, 5, 6, 8, 9, 9, 21, 31, 99]);
        let expected = SetLoss {
            acknowledged: 10,
            refused: 2,
            unknown: 2,
            lost: 2,
            lost_elements: vec![3, 7],
            surplus: 2,
        };
        assert_eq!(loss, expected);
        assert_eq!(loss.lost_per_million(), 200_000.0);
        assert_eq!(LockingSet::new().judge([]).lost_per_million(), 0.0);
    }

    #[test]
    fn long_lists_are_cut_and_counted() {
        let mut set = LockingSet::new();
        (0..1_000).for_each(|element| set.acknowledged(element));
        let loss = set.judge([]);
        assert_eq!((loss.lost, loss.lost_elements.len()), (1_000, LISTED));
    }

    #[test]
    fn a_late_answer_counts_more_than_none() {
        let mut set = LockingSet::new();
        set.acknowledged(1);
        set.unknown(1);
        assert_eq!(set.judge([]).lost, 1);
    }

    #[test]
    fn counters_are_bounded_both_ways() {
        let bounds = |acknowledged, unknown, before, after| {
            let loss = CounterLoss::new(acknowledged, unknown, before, after);
            (loss.at_least, loss.at_most, loss.surplus)
        };
        assert_eq!(bounds(10, 0, 5, 15), (0, 0, 0));
        assert_eq!(bounds(10, 0, 5, 14), (1, 1, 0));
        assert_eq!(bounds(10, 2, 0, 11), (0, 1, 0));
        assert_eq!(bounds(10, 2, 0, 13), (0, 0, 1));
        assert_eq!(bounds(10, 0, 5, 3), (12, 12, 0));
    }
}
