//! Replays recorded holds and looks for two holders of one lock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Hold;
use crate::measure::model::OverlapCheck;

/// The rule for holders of a lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// At most this many holders.
    Permits(usize),
    /// Any number of even workers, or a single odd one: even workers read and odd workers write.
    OddWorkersWrite,
}

impl Exclusion {
    /// Replays `holds`, which it sorts in place.
    pub fn check(self, holds: &mut [Hold]) -> OverlapCheck {
        match self {
            Self::Permits(permits) => check_overlaps(holds, permits),
            Self::OddWorkersWrite => check_writers(holds),
        }
    }
}

/// Counts holds that began beside a writer, and writers' holds that began beside any holder.
fn check_writers(holds: &mut [Hold]) -> OverlapCheck {
    holds.sort_unstable();
    let mut check = OverlapCheck {
        holds_checked: holds.len() as u64,
        ..OverlapCheck::default()
    };
    for of_one_lock in holds.chunk_by(|a, b| a.lock == b.lock) {
        let (mut all_end, mut writers_end) = (0, 0);
        for hold in of_one_lock {
            let writes = hold.worker % 2 == 1;
            let free_from = if writes { all_end } else { writers_end };
            if hold.start_ns < free_from {
                check.overlaps += 1;
                let overlap = free_from.min(hold.end_ns).saturating_sub(hold.start_ns);
                check.longest_overlap_ns = check.longest_overlap_ns.max(overlap);
            }
            all_end = all_end.max(hold.end_ns);
            if writes {
                writers_end = writers_end.max(hold.end_ns);
            }
        }
    }
    check
}

/// Replays `holds` in O(n log n): at most `permits` of one lock may be in force at a time.
///
/// Holds that touch (one ends in the nanosecond in which the next begins) do not overlap. A worker
/// that overlaps itself counts, because the lock was still granted twice. `holds` is sorted in
/// place.
pub fn check_overlaps(holds: &mut [Hold], permits: usize) -> OverlapCheck {
    holds.sort_unstable();
    let mut check = OverlapCheck {
        holds_checked: holds.len() as u64,
        ..OverlapCheck::default()
    };
    for of_one_lock in holds.chunk_by(|a, b| a.lock == b.lock) {
        replay(of_one_lock, permits, &mut check);
    }
    check
}

/// `ends` contains the ends of holds in force, earliest first. While more than `permits` are in
/// force, the excess lasts until enough of them have ended.
fn replay(holds: &[Hold], permits: usize, check: &mut OverlapCheck) {
    let mut ends: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let mut excess_since: Option<u64> = None;
    let mut end_until = |ends: &mut BinaryHeap<Reverse<u64>>, now: u64, since: &mut Option<u64>| {
        while let Some(&Reverse(end)) = ends.peek() {
            if end > now {
                break;
            }
            ends.pop();
            if ends.len() <= permits
                && let Some(start) = since.take()
            {
                check.longest_overlap_ns = check.longest_overlap_ns.max(end - start);
            }
        }
    };
    let mut overlaps = 0;
    for hold in holds {
        end_until(&mut ends, hold.start_ns, &mut excess_since);
        // A hold of no length ends when it begins, unless it falls inside another one.
        ends.push(Reverse(hold.end_ns.max(hold.start_ns)));
        if ends.len() > permits {
            overlaps += 1;
            excess_since.get_or_insert(hold.start_ns);
        }
    }
    end_until(&mut ends, u64::MAX, &mut excess_since);
    check.overlaps += overlaps;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(lock: u32, worker: u32, start_ns: u64, end_ns: u64) -> Hold {
        Hold {
            lock,
            start_ns,
            end_ns,
            worker,
        }
    }

    fn check(holds: &[(u32, u64, u64)]) -> OverlapCheck {
        let mut holds: Vec<_> = holds.iter().map(|&(w, s, e)| hold(0, w, s, e)).collect();
        check_overlaps(&mut holds, 1)
    }

    #[test]
    fn an_empty_history_is_checked_and_clean() {
        assert_eq!(check(&[]), OverlapCheck::default());
    }

    #[test]
    fn touching_holds_are_fine() {
        let found = check(&[(0, 0, 10), (1, 10, 20), (2, 20, 30)]);
        assert_eq!((found.holds_checked, found.overlaps), (3, 0));
        assert_eq!(found.longest_overlap_ns, 0);
    }

    #[test]
    fn one_nanosecond_is_found() {
        let found = check(&[(0, 0, 10), (1, 9, 20)]);
        assert_eq!((found.overlaps, found.longest_overlap_ns), (1, 1));
    }

    #[test]
    fn order_of_recording_does_not_matter() {
        let found = check(&[(1, 9, 20), (2, 50, 60), (0, 0, 10)]);
        assert_eq!((found.overlaps, found.longest_overlap_ns), (1, 1));
    }

    #[test]
    fn a_short_hold_inside_a_long_one_hides_nothing_after_it() {
        // A check of neighbours only would compare (2..3) with (5..6) and miss the second.
        let found = check(&[(0, 0, 100), (1, 2, 3), (2, 5, 6)]);
        assert_eq!(found.overlaps, 2);
        assert_eq!(found.longest_overlap_ns, 1);
    }

    #[test]
    fn three_at_once_count_twice_and_last_until_one_is_left() {
        let found = check(&[(0, 0, 100), (1, 10, 60), (2, 20, 40)]);
        assert_eq!((found.overlaps, found.longest_overlap_ns), (2, 50));
    }

    #[test]
    fn a_worker_granted_twice_is_an_overlap() {
        assert_eq!(check(&[(4, 0, 10), (4, 5, 15)]).overlaps, 1);
    }

    #[test]
    fn holds_of_no_length_only_overlap_inside_another_hold() {
        assert_eq!(check(&[(0, 5, 5), (1, 5, 5), (2, 5, 9)]).overlaps, 0);
        assert_eq!(check(&[(0, 0, 9), (1, 5, 5)]).overlaps, 1);
    }

    #[test]
    fn readers_may_meet_and_writers_may_not() {
        let check = |holds: &[(u32, u64, u64)]| {
            let mut holds: Vec<_> = holds.iter().map(|&(w, s, e)| hold(0, w, s, e)).collect();
            let check = Exclusion::OddWorkersWrite.check(&mut holds);
            (check.overlaps, check.longest_overlap_ns)
        };
        assert_eq!(
            check(&[(0, 0, 10), (2, 5, 20), (1, 20, 30), (0, 30, 40)]),
            (0, 0)
        );
        assert_eq!(check(&[(1, 0, 10), (3, 9, 20)]), (1, 1));
        assert_eq!(
            check(&[(1, 0, 10), (2, 4, 8)]),
            (1, 4),
            "a reader in a writer"
        );
        // The long reader is still there when the short one has ended.
        assert_eq!(check(&[(0, 0, 50), (2, 5, 6), (1, 40, 45)]), (1, 5));
    }

    #[test]
    fn different_locks_are_independent() {
        let mut holds = [hold(0, 0, 0, 10), hold(1, 1, 5, 15), hold(0, 2, 10, 12)];
        assert_eq!(check_overlaps(&mut holds, 1).overlaps, 0);
    }

    #[test]
    fn a_semaphore_may_have_as_many_holders_as_permits() {
        let mut holds: Vec<_> = (0..4).map(|w| hold(0, w, u64::from(w), 100)).collect();
        assert_eq!(check_overlaps(&mut holds, 4).overlaps, 0);
        let found = check_overlaps(&mut holds, 3);
        assert_eq!((found.overlaps, found.longest_overlap_ns), (1, 97));
    }
}
