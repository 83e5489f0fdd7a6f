//! The leader of a cohort: the one member that asks the backend for all waiters of this process.

use std::time::Duration;

use locktopus_contract::clock::BootInstant;
use locktopus_contract::{BackendError, BackendErrorKind, Executed, TokenSource};

use super::kept_lease::Keeping;
use super::member::Member;
use super::passing::Passing;
use super::state::{AcquisitionState, Cleanup};
use crate::engine::error::{LockError, LostCause, Phase};
use crate::engine::holding::give_back::Owed;
use crate::engine::holding::hold::Hold;
use crate::engine::holding::lease::BackendLease;

/// Why an acquisition ended without an answer for its caller.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(LockError),
    /// As a leader it made no progress for too long. Another member leads this process's waiters.
    Deposed,
}

impl From<LockError> for Stop {
    fn from(error: LockError) -> Self {
        Self::Failed(error)
    }
}

/// How many tokens a leader without company reserves for tasks that come while it holds the lock.
const TOKENS_ALONE: u32 = 8;

impl Member {
    /// How many tokens to reserve with the lock.
    ///
    /// As many as the lock may be passed on, if others wait or did when the last lease was used up,
    /// or if the lease is kept. Otherwise few if tokens are the server's microseconds: a grant that
    /// reserves more than it lasts runs ahead of the clock, and only the clock makes tokens grow
    /// after the last one was lost.
    pub(crate) fn tokens_to_ask(&self, keeps: bool) -> u32 {
        let turns = self.services.settings.cohort.turns;
        let counted = self.services.backend.info().tokens == TokenSource::Count;
        if counted || keeps || self.cohort.queue().has_company() {
            turns
        } else {
            turns.min(TOKENS_ALONE)
        }
    }

    /// The kept lease that must be given back before the leader asks the backend.
    pub(crate) fn take_kept(&mut self) -> Option<Owed> {
        let kept = self.kept.take()?;
        kept.close(&self.services, LostCause::Released)
    }

    /// Reports that the leader is alive and will report again by `until`, and what to give back if
    /// it stalls.
    pub(crate) fn lives_until(&self, until: BootInstant, cleanup: Cleanup) -> Result<(), Stop> {
        let effects = self
            .cohort
            .queue()
            .leader_lives(self.number, until, cleanup);
        let effects = effects.ok_or(Stop::Deposed)?;
        self.cohort.carry_out(&self.services, effects);
        Ok(())
    }

    /// The backend granted the lock `now`, with this many `tokens`, and the leader has the first
    /// turn of the lease. With `keeping`, the lease may be kept after a turn.
    pub(crate) fn won(
        &mut self,
        mut lease: BackendLease,
        tokens: u32,
        now: BootInstant,
        keeping: Option<Box<Keeping>>,
    ) -> Result<Hold, Stop> {
        let hold_until = lease.hold_until();
        let turns = lease.token.map(|_| tokens);
        lease.passing = Some(Passing::new(
            &self.services,
            &self.cohort,
            turns,
            now,
            keeping,
        ));
        let lease = lease.start(&self.services, now)?;
        let won = self.cohort.queue().won(self.number, &lease);
        if !won {
            // The caller gives the grant back.
            lease.begin_release();
            self.services.watchdog.forget(&lease);
            return Err(Stop::Deposed);
        }
        self.is_in = false;
        self.cohort.tell(now);
        Ok(lease.begin_turn(&self.services, hold_until, now))
    }

    /// The backend is unreachable: ends every wait that has lasted longer than `tolerate_outage`.
    /// If the answer came too late for the leader's `lease`, it may be in time for a longer one, so
    /// waiters for longer leases may try themselves.
    pub(crate) fn tell_outage(&self, error: &BackendError, lease: Duration) {
        let outage = self.services.settings.tolerate_outage;
        let late = matches!(
            error.kind(),
            BackendErrorKind::NoQuorum | BackendErrorKind::Timeout
        );
        let (backend, kind) = (error.backend(), error.kind());
        let effects = self.cohort.queue().dismiss(|waiter| {
            let longer = late && waiter.lease > lease;
            let patient = waiter.arrived.elapsed() >= outage && !longer;
            patient.then(|| LockError::Backend {
                target: self.cohort.target.clone(),
                phase: Phase::Acquire,
                // Nothing was sent for this waiter.
                source: BackendError::new(backend, kind, Executed::No, error.message()),
            })
        });
        self.cohort.carry_out(&self.services, effects);
    }

    /// Leaves the lead to the next member, which continues from `state`.
    pub(crate) fn leave(mut self, state: AcquisitionState) {
        // An attempt under way may be undoing a grant that too few replicas have. Its release may
        // arrive late, and would end a grant to the next member under the same owner id.
        let undone = state.in_flight && self.services.safety().undoes_grants();
        self.is_in = false;
        if undone {
            state.give_up(&self.services);
            self.pass_on(None);
        } else {
            self.pass_on(Some(Box::new(state.left_behind())));
        }
    }
}
