//! The leader of a local queue: the one member that asks the backend, on behalf of all who wait in this process.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::{BackendError, BackendErrorKind, Executed, OwnerId, lock};

use super::cohort::Cohort;
use super::engine::Engine;
use super::kept_lease::RecallSubscription;
use super::local_progress::Told;
use super::local_queue::Deposed;
use super::passing::Passing;
use super::state::AcquisitionState;
use crate::engine::error::{LockError, LostCause, Phase};
use crate::engine::holding::give_back::Owed;
use crate::engine::holding::grant::Grant;
use crate::engine::holding::held::Held;
use crate::engine::holding::lease::Lease;

/// Why an acquisition ended without an answer.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(LockError),
    /// As a leader it made no progress for too long; another member leads those who wait in this process.
    Deposed,
}

impl From<LockError> for Stop {
    fn from(error: LockError) -> Self {
        Self::Failed(error)
    }
}

/// How many tokens a leader without company reserves, for those who come while it holds the lock.
const TOKENS_ALONE: u32 = 8;

/// The way to the backend, on behalf of all who wait in the local queue. Dropping it lets the next one lead.
pub(crate) struct Lead {
    engine: Arc<Engine>,
    cohort: Arc<Cohort>,
    number: u64,
    /// What the leader before it has at the backend.
    state: Option<Box<AcquisitionState>>,
    /// A lease that the local queue kept and that is in the way now.
    kept: Option<Arc<Lease>>,
    leads: bool,
}

impl Lead {
    /// The way to the backend for the leader with this number, who goes on from where the one before it was (`state`).
    pub(super) fn new(
        engine: &Arc<Engine>,
        cohort: &Arc<Cohort>,
        number: u64,
        state: Option<Box<AcquisitionState>>,
        kept: Option<Arc<Lease>>,
    ) -> Self {
        Self {
            engine: Arc::clone(engine),
            cohort: Arc::clone(cohort),
            number,
            state,
            kept,
            leads: true,
        }
    }

    /// How many tokens to reserve with the lock.
    ///
    /// As many as the lock may be passed on where there is company, or was when the last lease was used up; few where there
    /// is none, as tokens are the server's microseconds: whoever reserves more of them per grant than the grant lasts runs ahead of the clock that
    /// makes tokens grow even where the last one was lost. A lease that is kept lasts.
    pub(crate) fn tokens_to_ask(&self, keeps: bool) -> u32 {
        let turns = self.engine.settings.cohort.turns;
        if keeps || self.cohort.queue.has_company() {
            turns
        } else {
            turns.min(TOKENS_ALONE)
        }
    }

    pub(crate) fn take_state(&mut self) -> Option<Box<AcquisitionState>> {
        self.state.take()
    }

    pub(crate) fn has_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// What must be given back before the backend is asked.
    pub(crate) fn take_kept(&mut self) -> Option<Owed> {
        let kept = self.kept.take()?;
        kept.close(&self.engine, LostCause::Released)
    }

    /// Shows that the leader is alive, and will be again by `until`. It asks under this owner id for something that may
    /// last for so long.
    pub(crate) fn lives_until(
        &self,
        until: BootInstant,
        asks: (&OwnerId, Duration),
    ) -> Result<(), Stop> {
        let queue = &self.cohort.queue;
        let look_at = queue.leader_lives(self.number, until, asks);
        let look_at = look_at.map_err(|Deposed| Stop::Deposed)?;
        self.cohort.schedule_check(&self.engine, look_at);
        Ok(())
    }

    /// Tells those who wait behind it what the backend said.
    pub(crate) fn tell(&self, ahead: Option<u64>, remaining: Option<Duration>) {
        self.cohort.tell(Told::now(self.number, ahead, remaining));
    }

    /// The backend granted the lock, and the leader has the first turn of the lease. With a
    /// `recall` subscription the lease may be kept after a turn.
    pub(crate) fn won(
        &mut self,
        grant: Grant,
        recall: Option<RecallSubscription>,
    ) -> Result<Held, Stop> {
        let (hold_until, now) = (grant.hold_until, grant.granted_at);
        let passing = Passing::new(&self.engine, &self.cohort, &grant, recall);
        let lease = Lease::start(&self.engine, grant, Some(passing))?;
        self.leads = false;
        if !self.cohort.queue.won(self.number, &lease) {
            // The caller gives the grant back.
            lease.begin_release();
            self.engine.watchdog.forget(&lease);
            return Err(Stop::Deposed);
        }
        self.cohort.tell_of_holder(now);
        Ok(lease.begin_turn(&self.engine, hold_until, now))
    }

    /// The backend cannot be reached: tells those who have been waiting for as long as anybody has to. An answer that comes too
    /// late for the leader's `lease` may be in time for a longer one: who asks for that goes and sees.
    pub(crate) fn tell_outage(&self, error: &BackendError, lease: Duration) {
        let outage = self.engine.settings.tolerate_outage;
        let late = matches!(
            error.kind(),
            BackendErrorKind::NoQuorum | BackendErrorKind::Timeout
        );
        let told = self.cohort.queue.dismiss(|asker| {
            let longer = late && asker.lease > lease;
            let patient = asker.arrived.elapsed() >= outage && !longer;
            if patient {
                let (name, kind) = (error.backend(), error.kind());
                // Nothing was sent on behalf of this one.
                let source = BackendError::new(name, kind, Executed::No, error.message());
                *lock(&asker.verdict) = Some(Box::new(LockError::Backend {
                    target: self.cohort.target.clone(),
                    phase: Phase::Acquire,
                    source,
                }));
            }
            patient
        });
        for slot in told {
            slot.wake();
        }
    }

    /// Leaves the way to the next one, who goes on from `state`.
    pub(crate) fn leave(mut self, state: AcquisitionState) {
        self.leads = false;
        // An attempt that is under way may be undoing a grant that too few replicas have. Its release may arrive late, and
        // would end what the next one is granted under the same owner id.
        let undone = state.in_flight && self.engine.safety().undoes_grants();
        if undone {
            state.give_up(&self.engine, &self.cohort.target);
            self.end(None);
        } else {
            self.end(Some(Box::new(state.left_behind())));
        }
    }

    fn end(&self, state: Option<Box<AcquisitionState>>) {
        let queue = &self.cohort.queue;
        match queue.leader_left(self.number, state, clock::now()) {
            Ok(next) => self.cohort.call(&self.engine, next),
            Err(state) => {
                if let Some(state) = state {
                    state.give_up(&self.engine, &self.cohort.target);
                }
                self.cohort.tidy();
            }
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        // What is owed then goes to the reaper.
        drop(self.take_kept());
        if self.leads {
            let state = self.state.take();
            self.end(state);
        }
    }
}
