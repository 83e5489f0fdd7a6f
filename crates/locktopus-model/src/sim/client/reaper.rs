//! What is given back in the background. Mirrors `reaper.rs` of the core.

use super::{Process, Purpose, Timer};
use crate::sim::ask::{Answer, Ask, Mode, Owner, Sought};
use crate::sim::rules::{Flaw, MS, Micros};

const FIRST_PAUSE: Micros = 20 * MS;
const LONGEST_PAUSE: Micros = 1_000 * MS;
/// How long after its deadline an attempt may still take effect.
const LATENESS: Micros = 250 * MS;

/// Something to give back.
#[derive(Debug)]
pub(super) struct Debt {
    owner: Owner,
    mode: Mode,
    permits: i64,
    /// After this the server has forgotten it by itself.
    until: Micros,
    /// An attempt may still arrive after the release: look once more.
    look_again: bool,
    pause: Micros,
    /// A release that a task waits for; it is a debt only once that failed.
    awaited: Option<u64>,
    /// What attempts asked for that may have left a place.
    sought: Option<Sought>,
}

impl Process {
    /// Takes over a debt.
    pub(super) fn owe(
        &mut self,
        owner: Owner,
        mode: Mode,
        permits: i64,
        until: Micros,
        late_attempt: bool,
        sought: Option<Sought>,
    ) {
        let id = self.note_debt(owner, mode, permits, until, late_attempt, None);
        if let Some(debt) = self.debts.get_mut(&id) {
            debt.sought = sought;
        }
        self.settle(id);
    }

    /// Notes what becomes a debt if a release gets no answer.
    pub(super) fn note_release(
        &mut self,
        call: u64,
        owner: Owner,
        mode: Mode,
        permits: i64,
        until: Micros,
        late_attempt: bool,
    ) {
        self.note_debt(owner, mode, permits, until, late_attempt, Some(call));
    }

    fn note_debt(
        &mut self,
        owner: Owner,
        mode: Mode,
        permits: i64,
        until: Micros,
        late_attempt: bool,
        awaited: Option<u64>,
    ) -> u64 {
        let id = self.serial();
        let look_again = late_attempt && !self.rules.is(Flaw::NoSecondLook);
        let debt = Debt {
            owner,
            mode,
            permits,
            until,
            look_again,
            pause: FIRST_PAUSE,
            awaited,
            sought: None,
        };
        self.debts.insert(id, debt);
        id
    }

    /// A release that somebody waited for is over.
    pub(super) fn released(&mut self, call: u64, definite: bool) {
        let noted = self
            .debts
            .iter()
            .find(|(_, debt)| debt.awaited == Some(call));
        let Some((&id, debt)) = noted else {
            return;
        };
        if definite && !debt.look_again {
            self.debts.remove(&id);
        } else {
            self.settle(id);
        }
    }

    /// Sends a release for a debt.
    pub(super) fn settle(&mut self, id: u64) {
        let Some(debt) = self.debts.get(&id) else {
            return;
        };
        let (owner, mode, permits) = (debt.owner.clone(), debt.mode, debt.permits);
        let sought = debt.sought;
        let deadline = self.now + self.rules.call_timeout;
        self.send(
            Purpose::Reap(id),
            Ask::Release {
                owner,
                mode,
                permits,
                sought,
            },
            deadline,
        );
    }

    pub(super) fn reap_answered(&mut self, id: u64, answer: &Answer) {
        if !matches!(answer, Answer::Released(_)) {
            return self.reap_failed(id);
        }
        let at = self.now + self.rules.call_timeout + LATENESS;
        let Some(debt) = self.debts.get_mut(&id) else {
            return;
        };
        if std::mem::take(&mut debt.look_again) {
            // Whatever this release found, an attempt that was on its way may have come after it.
            self.wake(at, Timer::Debt { debt: id });
        } else {
            self.debts.remove(&id);
        }
    }

    pub(super) fn reap_failed(&mut self, id: u64) {
        let now = self.now;
        let Some(debt) = self.debts.get_mut(&id) else {
            return;
        };
        let at = now + debt.pause;
        debt.pause = (debt.pause * 2).min(LONGEST_PAUSE);
        if at >= debt.until || self.rules.is(Flaw::CancelsOnce) {
            self.debts.remove(&id);
        } else {
            self.wake(at, Timer::Debt { debt: id });
        }
    }
}
