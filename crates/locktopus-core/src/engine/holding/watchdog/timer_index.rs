//! A timer index: entries by the millisecond of their due time.
//!
//! Renewals are due on a grid, so many leases share a millisecond and the tree of milliseconds
//! stays small: inserting or removing an entry is one step in that tree and one in a list. A timer
//! per lease, like tokio's or `DelayQueue`'s, would be registered again for each move, and a lease
//! moves twice with every renewal.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use locktopus_contract::clock::BootInstant;

/// A millisecond, counted from the creation of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(u64);

impl Moment {
    /// Before all others.
    pub(super) const FIRST: Self = Self(0);
    /// After all others.
    pub(super) const NEVER: Self = Self(u64::MAX);
}

/// The position of an entry in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimerKey {
    at: Moment,
    index: usize,
}

#[derive(Debug)]
pub(super) struct TimerIndex<T> {
    origin: BootInstant,
    moments: BTreeMap<Moment, Vec<T>>,
}

impl<T> TimerIndex<T> {
    pub(super) fn new(origin: BootInstant) -> Self {
        Self {
            origin,
            moments: BTreeMap::new(),
        }
    }

    /// The origin of the moments and of the grid of renewals.
    pub(super) fn origin(&self) -> BootInstant {
        self.origin
    }

    /// The first moment not before this instant, so that an entry is already due when it is found.
    pub(super) fn moment(&self, at: BootInstant) -> Moment {
        let since = at.since(self.origin);
        let whole = since + Duration::from_nanos(999_999);
        Moment(u64::try_from(whole.as_millis()).unwrap_or(u64::MAX - 1))
    }

    /// The instant of this moment.
    pub(super) fn instant(&self, moment: Moment) -> BootInstant {
        self.origin + Duration::from_millis(moment.0)
    }

    /// The earliest moment with an entry.
    pub(super) fn first(&self) -> Option<Moment> {
        self.moments.keys().next().copied()
    }

    pub(super) fn insert(&mut self, at: Moment, item: T) -> TimerKey {
        let items = self.moments.entry(at).or_default();
        items.push(item);
        let index = items.len() - 1;
        TimerKey { at, index }
    }

    /// Removes the entry of a key. Returns the entry that moved into this key instead, if any.
    pub(super) fn remove(&mut self, key: TimerKey) -> Option<&T> {
        let Entry::Occupied(mut items) = self.moments.entry(key.at) else {
            return None;
        };
        if key.index < items.get().len() {
            items.get_mut().swap_remove(key.index);
        }
        if items.get().is_empty() {
            items.remove();
            return None;
        }
        items.into_mut().get(key.index)
    }

    /// Removes and returns one entry due at `now`.
    pub(super) fn pop(&mut self, now: BootInstant) -> Option<T> {
        let past = now.since(self.origin).as_millis();
        let mut first = self.moments.first_entry()?;
        if u128::from(first.key().0) > past {
            return None;
        }
        let item = first.get_mut().pop();
        if first.get().is_empty() {
            first.remove();
        }
        item
    }

    pub(super) fn clear(&mut self) {
        self.moments.clear();
    }
}

#[cfg(test)]
mod tests {
    use locktopus_contract::clock;

    use super::*;

    #[test]
    fn nothing_is_early_and_nothing_is_late() {
        let origin = clock::now();
        let mut index = TimerIndex::new(origin);
        let micros = |micros| origin + Duration::from_micros(micros);
        let due = [0, 1, 999, 1_000, 1_001, 5_500];
        for at in due {
            index.insert(index.moment(micros(at)), at);
        }
        for now in 0..7_000 {
            while let Some(at) = index.pop(micros(now)) {
                assert!((at..=at + 999).contains(&now), "{at} at {now}");
            }
        }
        assert_eq!(index.first(), None);
        assert_eq!(index.pop(micros(7_000)), None);
    }

    #[test]
    fn spots_follow_what_moves() {
        let origin = clock::now();
        let mut index = TimerIndex::new(origin);
        let mut keys = [None; 64];
        let mut dice = 1_u64;
        for step in 0..20_000 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let item = usize::try_from(dice >> 58).unwrap();
            match keys[item].take() {
                None => {
                    let at = index.moment(origin + Duration::from_millis(dice >> 40 & 7));
                    keys[item] = Some(index.insert(at, item));
                }
                Some(key) => {
                    if let Some(&moved) = index.remove(key) {
                        assert_ne!(moved, item, "step {step}");
                        keys[moved] = Some(key);
                    }
                }
            }
            let mut found: Vec<usize> = index.moments.values().flatten().copied().collect();
            found.sort_unstable();
            let expected: Vec<usize> = (0..64).filter(|&item| keys[item].is_some()).collect();
            assert_eq!(found, expected, "step {step}");
            for (item, key) in keys.iter().enumerate() {
                if let Some(key) = key {
                    assert_eq!(index.moments[&key.at][key.index], item, "step {step}");
                }
            }
        }
    }

    #[test]
    fn what_is_too_far_away_stays() {
        let origin = clock::now();
        let mut index = TimerIndex::new(origin);
        let far = index.moment(origin + Duration::from_secs(100 * 365 * 24 * 60 * 60));
        index.insert(far, ());
        assert_eq!(index.pop(origin + Duration::from_secs(3_600)), None);
        assert!(index.first() == Some(far) && far < Moment::NEVER && far > Moment::FIRST);
    }

    /// A popped entry is gone, and the entries after it stay.
    #[test]
    fn a_spot_whose_entry_is_gone_removes_nothing() {
        let origin = clock::now();
        let mut index = TimerIndex::new(origin);
        let at = index.moment(origin);
        let (first, second) = (index.insert(at, 1), index.insert(at, 2));
        assert_eq!(index.pop(origin), Some(2));
        assert_eq!(index.remove(second), None);
        assert_eq!(index.first(), Some(at));
        assert_eq!(index.remove(first), None);
        assert_eq!(index.first(), None);
        assert_eq!(index.remove(first), None);
    }

    #[test]
    fn what_is_cleared_is_gone() {
        let origin = clock::now();
        let mut index = TimerIndex::new(origin);
        index.insert(Moment::FIRST, 1);
        index.insert(index.moment(origin + Duration::from_secs(1)), 2);
        index.clear();
        assert_eq!(index.first(), None);
        assert_eq!(index.pop(origin + Duration::from_secs(2)), None);
    }
}
