//! Leases that are kept after their release. Mirrors `acquisition/kept_lease.rs` of the core; the tasks of a process share
//! nothing else here.

use super::{Act, How, Process, Timer};
use crate::sim::rules::{Flaw, Micros};

/// What it takes to keep a lease.
#[derive(Debug)]
pub(super) struct Keeping {
    /// The token of whoever had it last.
    token: i64,
    last_token: i64,
    /// Until when the server knows whom to tell.
    known_until: Micros,
    /// Set by the first release.
    until: Option<Micros>,
    wanted: bool,
}

impl Process {
    /// A lease was granted to somebody who listens for those who want it.
    pub(super) fn may_be_kept(&mut self, task: usize, id: u64, token: i64) {
        let Some(lease) = self.leases.get(&id) else {
            return;
        };
        let (owner, known_until) = (lease.owner.clone(), lease.valid_until);
        let wanted = self.holds(task, &owner, id);
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.keeping = Some(Keeping {
                token,
                last_token: token + self.rules.tokens - 1,
                known_until,
                until: None,
                wanted,
            });
        }
    }

    /// Keeps a lease whose holder is done, if that may be.
    pub(super) fn keep(&mut self, id: u64) -> bool {
        let (now, keep) = (self.now, self.rules.keep);
        // In the core whoever waits in the same process is next in the cohort's line.
        let wanted_here = self.tasks.iter().any(|task| task.acquisition.is_some());
        if self.stopping || self.kept.is_some() || wanted_here {
            return false;
        }
        let Some(keeping) = self
            .leases
            .get_mut(&id)
            .and_then(|lease| lease.keeping.as_mut())
        else {
            return false;
        };
        let known_until = keeping.known_until;
        let until = *keeping
            .until
            .get_or_insert_with(|| (now + keep).min(known_until));
        if !self.is_good(id) {
            return false;
        }
        let Some(owner) = self.leases.get(&id).map(|lease| lease.owner.clone()) else {
            return false;
        };
        self.kept = Some(id);
        self.acts.push(Act::Disbelieve { owner });
        self.wake(until, Timer::Kept { lease: id });
        true
    }

    /// Whether a lease may be kept, or handed out again.
    fn is_good(&self, id: u64) -> bool {
        let Some(lease) = self.leases.get(&id) else {
            return false;
        };
        let Some(keeping) = &lease.keeping else {
            return false;
        };
        let left = lease.valid_until - self.now;
        let enough = left >= self.rules.least_validity(lease.renewed);
        let tokens = keeping.token < keeping.last_token || self.rules.is(Flaw::KeepsToken);
        keeping.until.is_some_and(|until| self.now < until)
            && (enough || self.rules.is(Flaw::KeepsExpired))
            && (!keeping.wanted || self.rules.is(Flaw::KeepsWanted))
            && tokens
    }

    /// Gives the kept lease to a task that asks for the same, if it is good for anything.
    pub(super) fn take_kept(&mut self, task: usize, id: u64, renewed: bool) -> bool {
        if !self.is_good(id) {
            return false;
        }
        let flawed = self.rules.is(Flaw::KeepsExpired);
        let fresh = self.now + self.rules.validity(self.rules.lease);
        let step = i64::from(!self.rules.is(Flaw::KeepsToken));
        let Some(lease) = self
            .leases
            .get_mut(&id)
            .filter(|lease| lease.renewed == renewed)
        else {
            return false;
        };
        let Some(keeping) = &mut lease.keeping else {
            return false;
        };
        keeping.token += step;
        let tokens = (keeping.token, keeping.last_token);
        if flawed {
            lease.valid_until = fresh;
        }
        let (owner, mode, permits) = (lease.owner.clone(), lease.mode, lease.permits);
        let until = lease.valid_until;
        self.kept = None;
        self.acts.push(Act::Believe {
            owner,
            mode,
            permits,
            until: self.believed_until(until),
            tokens,
            how: How::Kept,
        });
        self.hold(task, id);
        true
    }

    /// Somebody else wants this lease, or a message that says so may have been lost.
    pub(super) fn wanted(&mut self, id: u64) {
        let keeping = self
            .leases
            .get_mut(&id)
            .and_then(|lease| lease.keeping.as_mut());
        if let Some(keeping) = keeping {
            keeping.wanted = true;
        }
        if !self.rules.is(Flaw::KeepsWanted) {
            self.end_keeping(id);
        }
    }

    /// The time of a kept lease is over.
    pub(super) fn end_keeping(&mut self, id: u64) {
        if self.kept == Some(id) {
            self.drop_guard(id);
        }
    }

    /// Whether this is a kept lease of a flawed client, which does not notice its end.
    pub(super) fn keeps_expired(&self, id: u64) -> bool {
        self.kept == Some(id) && self.rules.is(Flaw::KeepsExpired)
    }
}
