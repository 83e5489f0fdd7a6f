//! The end of an acquisition without the lock: what it may have taken is given back.

use super::acquisition::Acquisition;
use super::{Act, Process, Purpose};
use crate::sim::ask::{Mode, Owner};
use crate::sim::rules::{Flaw, Micros};

impl Process {
    pub(super) fn give_up_owner(&mut self, task: usize) {
        let owner = self.new_owner();
        let Some(acquisition) = &mut self.tasks[task].acquisition else {
            return;
        };
        let old = std::mem::replace(&mut acquisition.owner, owner);
        let (mode, permits) = (acquisition.mode, acquisition.permits);
        let (late, place) = (
            acquisition.may_arrive_late(),
            self.rules.place(acquisition.strategy),
        );
        acquisition.unsettled = false;
        acquisition.place = None;
        acquisition.late_attempt = false;
        self.reap_attempt(old, mode, permits, late, place);
    }

    /// Leaves an acquisition at any point, and gives back whatever it may have taken.
    pub(super) fn drop_acquisition(&mut self, task: usize) {
        self.leave(task);
        let Some(acquisition) = self.tasks[task].acquisition.take() else {
            return;
        };
        if acquisition.unsettled || acquisition.late_attempt {
            let late = acquisition.may_arrive_late();
            let Acquisition {
                owner,
                mode,
                permits,
                strategy,
                ..
            } = acquisition;
            self.reap_attempt(owner, mode, permits, late, self.rules.place(strategy));
        }
        self.calls
            .retain(|_, call| !matches!(call.purpose, Purpose::Attempt(it) if it == task));
    }

    fn reap_attempt(&mut self, owner: Owner, mode: Mode, permits: i64, late: bool, place: Micros) {
        self.spare_owner = Some(owner.clone());
        self.acts.push(Act::GaveUp {
            owner: owner.clone(),
        });
        if !self.rules.is(Flaw::NeverCancels) {
            let until = self.now + self.rules.lease + place + self.rules.call_timeout;
            self.owe(owner, mode, permits, until, late);
        }
    }
}
