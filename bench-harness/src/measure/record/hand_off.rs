//! Hand-offs: from one holder's release until the next holder has the lock.

use super::{Hold, Recorder};
use crate::measure::model::op;

impl Recorder {
    /// Adds the hand-offs between the recorded holds. For each lock and each change of holder, that
    /// is the time from the start of the release until the next holder has its grant. Call it after
    /// merging all workers. It means something only while there is always a waiter, so holds that
    /// began after `end_ns` do not count: by then other workers had stopped asking.
    pub fn add_hand_offs(&mut self, end_ns: u64) {
        let mut holds: Vec<Hold> = self.holds.clone();
        holds.sort_unstable_by_key(|hold| (hold.lock, hold.start_ns));
        let hand_off = self.operation(op::HAND_OFF);
        for pair in holds.windows(2) {
            let [before, after] = pair else { continue };
            if before.lock == after.lock
                && before.worker != after.worker
                && after.start_ns <= end_ns
            {
                self.record(hand_off, before.end_ns, after.start_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::measure::record::{Exclusion, RoundFacts};

    #[test]
    fn only_changes_of_holder_count() {
        let mut all = Recorder::new(0);
        all.held(0, 0, 100);
        all.held(0, 150, 200); // the same worker again: nothing was handed over
        let mut other = Recorder::new(1);
        other.held(0, 230, 300);
        other.held(7, 100, 110); // another lock
        other.held(0, 5_000, 5_001); // after the end
        all.merge(other).unwrap();
        all.add_hand_offs(1_000);
        let facts = RoundFacts {
            index: 0,
            position: 0,
            duration: Duration::from_micros(1),
            workers: 2,
            ping: None,
            server_cost: None,
            client_cost: None,
            machine: None,
            exclusion: Some(Exclusion::Permits(1)),
        };
        let round = all.into_round(facts).unwrap();
        let summary = round.operations[op::HAND_OFF].summary;
        assert_eq!((summary.count, summary.min_ns), (1, 30));
    }
}
