//! Leases: renewal, loss and release. Mirrors `watchdog.rs`, `lease.rs` and `guard.rs` of the core.

use super::keeping::Keeping;
use super::task::Phase;
use super::{Act, Process, Purpose, Timer};
use crate::sim::ask::{Answer, Ask, Extension, Mode, Owner};
use crate::sim::rules::{Flaw, MS, Micros};

/// First pause before a failed renewal is tried again.
const FIRST_RETRY: Micros = 20 * MS;

/// A lease as its holder knows it.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) owner: Owner,
    pub(super) mode: Mode,
    pub(super) permits: i64,
    pub(super) valid_until: Micros,
    pub(super) renewed: bool,
    /// What it takes to keep it.
    pub(super) keeping: Option<Keeping>,
    renew_at: Option<Micros>,
    in_flight: bool,
    failures: u32,
    late_attempt: bool,
    /// Counts timers, so that earlier ones are known.
    turn: u64,
}

impl Process {
    /// Starts watching over a lease.
    pub(super) fn watch(
        &mut self,
        owner: Owner,
        mode: Mode,
        permits: i64,
        renewed: bool,
        valid_until: Micros,
        late_attempt: bool,
    ) -> u64 {
        let id = self.serial();
        let renew_at = renewed.then(|| self.now + self.rules.lease / 3);
        let lease = Lease {
            owner,
            mode,
            permits,
            valid_until,
            renewed,
            keeping: None,
            renew_at,
            in_flight: false,
            failures: 0,
            late_attempt,
            turn: 0,
        };
        self.leases.insert(id, lease);
        self.arm(id);
        id
    }

    /// Until when a lease is believed in if nothing more is heard.
    pub(super) fn believed_until(&self, valid_until: Micros) -> Micros {
        let flawed = self.rules.is(Flaw::NeverExpires);
        if flawed {
            valid_until + self.rules.lease
        } else {
            valid_until
        }
    }

    /// Sets the timer of a lease to what must be done next.
    fn arm(&mut self, id: u64) {
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        lease.turn += 1;
        let turn = lease.turn;
        let renew_at = lease.renew_at.filter(|_| !lease.in_flight);
        let at = renew_at.map_or(lease.valid_until, |at| at.min(lease.valid_until));
        // Only a flawed client gets past its deadline.
        let at = if at <= self.now && (self.rules.is(Flaw::NeverExpires) || self.keeps_expired(id))
        {
            self.now + 5 * MS
        } else {
            at
        };
        self.wake(at, Timer::Lease { lease: id, turn });
    }

    pub(super) fn lease_fired(&mut self, id: u64, turn: u64) {
        let Some(lease) = self.leases.get_mut(&id).filter(|lease| lease.turn == turn) else {
            return;
        };
        let over = self.now >= lease.valid_until;
        if over && !self.rules.is(Flaw::NeverExpires) && !self.keeps_expired(id) {
            return self.lost(id);
        }
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        let due = lease.renew_at.is_some_and(|at| at <= self.now) && !lease.in_flight;
        if due {
            lease.in_flight = true;
            let (owner, mode, permits) = (lease.owner.clone(), lease.mode, lease.permits);
            // A third of the lease is left for a second try, and a third to spare.
            let until = self.now + self.rules.call_timeout.min(self.rules.lease / 3);
            let deadline = until.min(lease.valid_until).max(self.now + 5 * MS);
            let lease_ms = self.rules.lease / MS;
            let ask = Ask::Extend {
                owner,
                mode,
                permits,
                lease_ms,
            };
            self.send(Purpose::Renew(id), ask, deadline);
        }
        self.arm(id);
    }

    pub(super) fn renewal_answered(&mut self, id: u64, sent: Micros, answer: &Answer) {
        let from = if self.rules.is(Flaw::RenewedFromAnswer) {
            self.now
        } else {
            sent
        };
        let until = from + self.rules.validity(self.rules.lease);
        let next = self.now + self.rules.lease / 3;
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        match answer {
            Answer::Extended(Extension::Extended) => {
                lease.in_flight = false;
                lease.failures = 0;
                lease.valid_until = lease.valid_until.max(until);
                lease.renew_at = Some(next);
                let (owner, until) = (lease.owner.clone(), lease.valid_until);
                let until = self.believed_until(until);
                self.acts.push(Act::BelieveUntil { owner, until });
                self.arm(id);
            }
            Answer::Extended(Extension::Missing | Extension::TakenOver) => self.lost(id),
            _ => self.renewal_failed(id),
        }
    }

    pub(super) fn renewal_failed(&mut self, id: u64) {
        let (now, eighth) = (self.now, self.rules.lease / 8);
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        let pause = FIRST_RETRY << lease.failures.min(4);
        lease.failures += 1;
        lease.in_flight = false;
        lease.renew_at = Some(now + pause.min(eighth));
        self.arm(id);
    }

    /// The lease may not be believed in any more. Its holder hears of it, stops, and drops the guard.
    fn lost(&mut self, id: u64) {
        let holder = self.tasks.iter().position(|task| match task.phase {
            Phase::Holding(lease) => lease == id,
            _ => false,
        });
        self.drop_guard(id);
        if let Some(task) = holder {
            self.rest(task);
        }
    }

    /// Ends a lease and leaves its release to the reaper.
    pub(super) fn drop_guard(&mut self, id: u64) {
        let Some(Lease {
            owner,
            mode,
            permits,
            late_attempt,
            ..
        }) = self.end_lease(id)
        else {
            return;
        };
        if !self.rules.is(Flaw::DropsNothing) {
            let until = self.now + self.rules.lease + self.rules.call_timeout;
            self.owe(owner, mode, permits, until, late_attempt, None);
        }
    }

    fn end_lease(&mut self, id: u64) -> Option<Lease> {
        let lease = self.leases.remove(&id)?;
        self.kept = self.kept.filter(|kept| *kept != id);
        self.deafen(id);
        self.acts.push(Act::Disbelieve {
            owner: lease.owner.clone(),
        });
        self.acts.push(Act::GaveUp {
            owner: lease.owner.clone(),
        });
        self.calls
            .retain(|_, call| !matches!(call.purpose, Purpose::Renew(it) if it == id));
        Some(lease)
    }

    /// Releases and waits for the answer.
    pub(super) fn release(&mut self, task: usize, id: u64) {
        let Some(lease) = self.end_lease(id) else {
            return self.rest(task);
        };
        let Lease {
            owner,
            mode,
            permits,
            late_attempt,
            ..
        } = lease;
        let ask = Ask::Release {
            owner: owner.clone(),
            mode,
            permits,
            sought: None,
        };
        let deadline = self.now + self.rules.call_timeout;
        let call = self.send(Purpose::Release(task), ask, deadline);
        self.enter(task, Phase::Releasing(call));
        let until = self.now + self.rules.lease + self.rules.call_timeout;
        self.note_release(call, owner, mode, permits, until, late_attempt);
    }

    pub(super) fn release_answered(&mut self, task: usize, answer: &Answer) {
        let definite = matches!(answer, Answer::Released(_));
        self.release_over(task, definite);
    }

    pub(super) fn release_failed(&mut self, task: usize) {
        self.release_over(task, false);
    }

    fn release_over(&mut self, task: usize, definite: bool) {
        if let Phase::Releasing(call) = self.tasks[task].phase {
            self.released(call, definite);
            self.rest(task);
        }
    }
}
