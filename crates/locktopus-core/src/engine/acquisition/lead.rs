//! The leader of a cohort: the one member that asks the backend, for all who wait in this process.

use std::time::Duration;

use locktopus_contract::clock::BootInstant;
use locktopus_contract::{BackendError, BackendErrorKind, Executed, TokenSource};

use super::kept_lease::Keeping;
use super::member::Member;
use super::passing::Passing;
use super::state::{AcquisitionState, Asks};
use crate::engine::error::{LockError, LostCause, Phase};
use crate::engine::holding::give_back::Owed;
use crate::engine::holding::grant::Grant;
use crate::engine::holding::held::Held;
use crate::engine::holding::lease::Lease;

/// Why an acquisition ended without an answer.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(LockError),
    /// As a leader it made no progress for too long; another member leads those who wait in this
    /// process.
    Deposed,
}

impl From<LockError> for Stop {
    fn from(error: LockError) -> Self {
        Self::Failed(error)
    }
}

/// How many tokens a leader without company reserves, for those who come while it holds the lock.
const TOKENS_ALONE: u32 = 8;

impl Member {
    /// How many tokens to reserve with the lock.
    ///
    /// As many as the lock may be passed on, if there is company or was when the last lease was
    /// used up, or if the lease is kept. Otherwise few if tokens are microseconds of the server:
    /// reserving more of them per grant than the grant lasts runs ahead of the clock that makes
    /// tokens grow even after the last one was lost.
    pub(crate) fn tokens_to_ask(&self, keeps: bool) -> u32 {
        let turns = self.engine.settings.cohort.turns;
        let counted = self.engine.backend.info().tokens == TokenSource::Count;
        if counted || keeps || self.cohort.queue().has_company() {
            turns
        } else {
            turns.min(TOKENS_ALONE)
        }
    }

    pub(crate) fn has_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// What must be given back before the backend is asked.
    pub(crate) fn take_kept(&mut self) -> Option<Owed> {
        let kept = self.kept.take()?;
        kept.close(&self.engine, LostCause::Released)
    }

    /// Shows that the leader is alive, and will be again by `until`. It asks under this owner id,
    /// and the backend may keep the result for so long.
    pub(crate) fn lives_until(&self, until: BootInstant, asks: Asks) -> Result<(), Stop> {
        let effects = self.cohort.queue().leader_lives(self.number, until, asks);
        let effects = effects.ok_or(Stop::Deposed)?;
        self.cohort.carry_out(&self.engine, effects);
        Ok(())
    }

    /// The backend granted the lock, and the leader has the first turn of the lease. With `keeping`
    /// the lease may be kept after a turn.
    pub(crate) fn won(
        &mut self,
        grant: Grant,
        keeping: Option<Box<Keeping>>,
    ) -> Result<Held, Stop> {
        let (hold_until, now) = (grant.hold_until, grant.granted_at);
        let passing = Passing::new(&self.engine, &self.cohort, &grant, keeping);
        let lease = Lease::start(&self.engine, grant, Some(passing))?;
        let won = self.cohort.queue().won(self.number, &lease);
        if !won {
            // The caller gives the grant back.
            lease.begin_release();
            self.engine.watchdog.forget(&lease);
            return Err(Stop::Deposed);
        }
        self.is_in = false;
        self.cohort.tell(now);
        Ok(lease.begin_turn(&self.engine, hold_until, now))
    }

    /// The backend cannot be reached: ends every wait that has lasted as long as the option
    /// `tolerate_outage` says. An answer too late for the leader's `lease` may be in time for a
    /// longer one, so waiters for a longer one go and see.
    pub(crate) fn tell_outage(&self, error: &BackendError, lease: Duration) {
        let outage = self.engine.settings.tolerate_outage;
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
                // Nothing was sent on behalf of this one.
                source: BackendError::new(backend, kind, Executed::No, error.message()),
            })
        });
        self.cohort.carry_out(&self.engine, effects);
    }

    /// Leaves the way to the next one, who goes on from `state`.
    pub(crate) fn leave(mut self, state: AcquisitionState) {
        // An attempt that is under way may be undoing a grant that too few replicas have. Its
        // release may arrive late, and would end what the next one is granted under the same owner
        // id.
        let undone = state.in_flight && self.engine.safety().undoes_grants();
        self.is_in = false;
        if undone {
            state.give_up(&self.engine);
            self.pass_on(None);
        } else {
            self.pass_on(Some(Box::new(state.left_behind())));
        }
    }
}
