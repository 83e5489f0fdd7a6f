//! The end of an acquisition without the lock: what it may have taken is given back.

use super::acquisition::Acquisition;
use super::{Act, Process, Purpose};
use crate::sim::ask::Sought;
use crate::sim::rules::{Flaw, MS};

impl Process {
    pub(super) fn give_up_owner(&mut self, task: usize) {
        let owner = self.new_owner();
        let Some(acquisition) = &mut self.tasks[task].acquisition else {
            return;
        };
        let old = std::mem::replace(&mut acquisition.owner, owner);
        let left = Acquisition {
            owner: old,
            ..acquisition.clone()
        };
        acquisition.unsettled = false;
        acquisition.place = None;
        acquisition.late_attempt = false;
        self.reap_attempt(left);
    }

    /// Leaves an acquisition at any point, and gives back whatever it may have taken.
    pub(super) fn drop_acquisition(&mut self, task: usize) {
        self.leave(task);
        let Some(acquisition) = self.tasks[task].acquisition.take() else {
            return;
        };
        if acquisition.unsettled || acquisition.late_attempt {
            self.reap_attempt(acquisition);
        }
        self.calls
            .retain(|_, call| !matches!(call.purpose, Purpose::Attempt(it) if it == task));
    }

    fn reap_attempt(&mut self, left: Acquisition) {
        let late = left.may_arrive_late();
        let place = self.rules.place(left.strategy);
        let tokens = if left.mode.has_tokens() {
            self.rules.tokens
        } else {
            0
        };
        let sought = left.queues(&self.rules).then_some(Sought {
            place_ms: place / MS,
            lease_ms: self.rules.lease / MS,
            tokens,
        });
        let Acquisition {
            owner,
            mode,
            permits,
            ..
        } = left;
        self.spare_owner = Some(owner.clone());
        self.acts.push(Act::GaveUp {
            owner: owner.clone(),
        });
        if !self.rules.is(Flaw::NeverCancels) {
            let until = self.now + self.rules.lease + place + self.rules.call_timeout;
            self.owe(owner, mode, permits, until, late, sought);
        }
    }
}
