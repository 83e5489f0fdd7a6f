//! The one loop that takes locks from the backend: attempt, wait, attempt again.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant, timer_after};
use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, Executed,
};
use tokio::time::Instant;

use super::engine::Engine;
use super::lead::Stop;
use super::member::Member;
use super::plan::{Plan, Wait};
use super::state::{AcquisitionState, Place};
use crate::engine::error::{LockError, Phase};
use crate::engine::holding::held::Held;
use crate::engine::observe;
use crate::engine::settings::WaitStrategy;

/// Even with short leases, waiters do not ask more often than this.
pub(super) const SHORTEST_HEARTBEAT: Duration = Duration::from_millis(50);

/// One acquisition under way. Dropping it at any point gives back what an attempt may have taken,
/// or leaves that to the next leader.
pub(crate) struct Acquisition<'a> {
    pub(super) engine: &'a Arc<Engine>,
    pub(super) plan: &'a Plan,
    started: Instant,
    pub(super) state: AcquisitionState,
    pub(super) pauses: u16,
    /// The place in the queue at the last of these pauses, counted from 1; 0 if none.
    pub(super) stood_at: u16,
    /// The last subscription failed.
    pub(super) unsubscribed: bool,
    position: observe::Position,
    /// Other tasks of this process wait behind this one.
    pub(super) lead: Option<Member>,
}

/// The result of the last attempt, for the error if time runs out.
#[derive(Debug)]
pub(super) enum Obstacle {
    Held(Option<Duration>),
    Queued {
        remaining: Option<Duration>,
        ahead: u64,
        /// Whether `ahead` is a count, or only says whether any are ahead.
        counted: bool,
    },
    Failed(BackendError),
}

/// Whether the owner id must not be used again after an attempt failed like this.
fn spends_owner(error: &BackendError) -> bool {
    match error.kind() {
        // If the grant is not certainly given back, nodes stay closed to this owner id, perhaps
        // forever.
        BackendErrorKind::NoQuorum => true,
        // The release that undoes the grant may arrive late, and would end a later grant to the
        // same owner id.
        BackendErrorKind::NotReplicated => error.executed() == Executed::Maybe,
        _ => false,
    }
}

impl Obstacle {
    fn is_held(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }
}

impl<'a> Acquisition<'a> {
    pub(crate) fn new(
        engine: &'a Arc<Engine>,
        plan: &'a Plan,
        started: Instant,
        lead: Option<Member>,
        left_behind: Option<Box<AcquisitionState>>,
    ) -> Self {
        let owner = plan.target.kind().owner_from(&engine.ids);
        let ask = AcquireAttempt::new(plan.target.clone(), owner, plan.lease, started);
        let mut acquisition = Self {
            engine,
            plan,
            started,
            state: AcquisitionState::new(ask),
            pauses: 0,
            stood_at: 0,
            unsubscribed: false,
            position: observe::Position::unknown(),
            lead,
        };
        let (place, keeps) = (acquisition.place(), !plan.keep.is_zero());
        let ask = &mut acquisition.state.ask;
        (ask.permits, ask.place, ask.token_retention) = (plan.permits, place, plan.retention);
        if let Some(lead) = &acquisition.lead {
            ask.tokens = lead.tokens_to_ask(keeps);
        }
        if let Some(mut state) = left_behind {
            state.failing_since = state.failing_since.map(|since| since.max(started));
            if state.fits(&acquisition.state.ask) {
                acquisition.state = *state;
            } else {
                acquisition.state.failing_since = state.failing_since;
                state.give_up(engine);
            }
        }
        acquisition
    }

    pub(crate) async fn run(&mut self) -> Result<Option<Held>, Stop> {
        self.make_way().await?;
        if self.keeps() && self.state.hints.is_none() {
            // The backend tells only clients that already listen.
            self.state.hints = self.listen();
            if self.state.hints.is_none() {
                // Leaves half of the time for the attempt itself.
                let within = self.deadline().saturating_duration_since(Instant::now()) / 2;
                self.state.hints = self.subscribe(Instant::now() + within).await?;
            }
        }
        if self.listens() && self.state.hints.is_none() {
            // If this process listens already, a grant may follow the first answer at once.
            self.state.hints = self.listen();
        }
        loop {
            let obstacle = match self.attempt().await? {
                Ok(guard) => return Ok(Some(guard)),
                Err(obstacle) => obstacle,
            };
            self.report(&obstacle);
            if self.plan.wait == Wait::Not && obstacle.is_held() {
                return Ok(None);
            }
            if !self.time_left() {
                return Err(self.out_of_time(obstacle).into());
            }
            if self.listens() && self.state.hints.is_none() && obstacle.is_held() {
                // Subscribe, then check again, or a release between the two would be missed.
                let stands_aside = !self.takes_place();
                self.state.hints = self.subscribe(self.deadline()).await?;
                self.unsubscribed = self.state.hints.is_none();
                if (!self.unsubscribed || stands_aside) && self.time_left() {
                    continue;
                }
            }
            if self.time_left()
                && let Some(token) = self.pause(&obstacle).await?
                && let Some(guard) = self.believe(token)?
            {
                return Ok(Some(guard));
            }
            // An attempt without time for its answer would tell less than the last one did, and
            // would need a cleanup.
            if !self.time_left() {
                return Err(self.out_of_time(obstacle).into());
            }
        }
    }

    /// Gives back a lease that the local queue kept and that would block the attempt.
    async fn make_way(&mut self) -> Result<(), Stop> {
        if !self.lead.as_ref().is_some_and(Member::has_kept) {
            return Ok(());
        }
        let deadline = self.deadline();
        self.lives_until(deadline)?;
        if let Some(kept) = self.lead.as_mut().and_then(Member::take_kept) {
            // No task relies on this lease, so the result does not matter. If it takes too long, it
            // continues in the background. Boxed, because few attempts need it and all waiters
            // would need room for it.
            let give_back = Box::pin(kept.give_back(None));
            let _ = Box::pin(tokio::time::timeout_at(deadline, give_back)).await;
        }
        Ok(())
    }

    /// Reports the position to the watchers of this wait, and of waits behind it.
    fn report(&mut self, obstacle: &Obstacle) {
        let (ahead, remaining) = match *obstacle {
            Obstacle::Held(remaining) => (None, remaining),
            Obstacle::Queued {
                remaining,
                ahead,
                counted,
            } => (counted.then_some(ahead), remaining),
            Obstacle::Failed(_) => return,
        };
        ahead.into_iter().for_each(|ahead| self.position.is(ahead));
        if let Some(progress) = &self.plan.progress {
            progress.report(ahead, remaining, self.plan.lease);
        }
        if let Some(lead) = &self.lead {
            lead.tell(ahead, remaining);
        }
    }

    pub(super) fn limit(&self) -> Option<Instant> {
        self.plan.wait.limit(self.started)
    }

    pub(super) fn time_left(&self) -> bool {
        self.limit().is_none_or(|limit| Instant::now() < limit)
    }

    async fn attempt(&mut self) -> Result<Result<Held, Obstacle>, Stop> {
        let begun = Instant::now();
        let deadline = self.deadline_from(begun);
        self.lives_until(deadline)?;
        // A first attempt normally learns only whether anyone is ahead, not how many. With progress
        // reporting on, every attempt asks for the count.
        let owes = self.state.owes();
        // If this attempt gets a grant, no earlier one did.
        let recall = self.keeps() && self.state.hints.is_some() && !owes;
        let first = !owes
            && self.state.place.is_none()
            && self.state.hints.is_some()
            && self.plan.progress.is_none()
            && !self.position.is_wanted();
        let place = self.state.ask.place.or_else(|| self.place());
        let place = place.filter(|_| self.takes_place());
        let (state, mut sent) = (&mut self.state, clock::now());
        (state.ask.deadline, state.ask.first) = (deadline, first);
        (state.ask.place, state.ask.recall) = (place, recall);
        // Time spent before sending does not count against the lease.
        let sends = |token| {
            (state.unsettled, state.in_flight, sent) = (Some(token), true, clock::now());
        };
        let answer = self.engine.attempt(&state.ask, owes, sends).await;
        self.state.in_flight = false;
        match answer {
            Ok(AttemptOutcome::Granted { token }) => {
                let granted_at = clock::now();
                if self.plan.target.kind().is_held() && self.valid_until(sent) <= granted_at {
                    // The answer came too late to be useful: give the grant back and start over.
                    self.give_up_owner();
                    let name = self.engine.backend.info().name;
                    let message = "the grant came after its validity was spent; the backend is slower than the lease";
                    let slow =
                        BackendError::new(name, BackendErrorKind::Timeout, Executed::No, message);
                    return Ok(Err(self.failed(slow, begun)?));
                }
                self.take(sent, granted_at, token, recall).map(Ok)
            }
            Ok(AttemptOutcome::Held { remaining }) => {
                self.state.failing_since = None;
                self.state.settled();
                // This owner id neither queues nor holds anything, so nothing is lost by replacing
                // it, and a quorum may have nodes that are closed to it.
                if self.place().is_none() && !self.state.late_attempt {
                    self.state.ask.owner = self.plan.target.kind().owner_from(&self.engine.ids);
                }
                Ok(Err(Obstacle::Held(remaining)))
            }
            Ok(AttemptOutcome::Queued {
                remaining,
                ahead,
                fence,
            }) => {
                // `unsettled` stays: the place in the queue must be given up too.
                self.state.failing_since = None;
                self.state.place = Some(Place { sent, fence });
                Ok(Err(Obstacle::Queued {
                    remaining,
                    ahead,
                    counted: !self.state.ask.first || ahead == 0,
                }))
            }
            Err(error) => Ok(Err(self.failed(error, begun)?)),
        }
    }

    /// How long attempts ask to keep a place in the queue, if they want one.
    fn place(&self) -> Option<Duration> {
        self.queues()
            .then(|| self.heartbeat() * 3 + self.engine.call_timeout())
    }

    /// Whether the cohort may keep the lease after a release.
    fn keeps(&self) -> bool {
        self.lead.is_some() && !self.plan.keep.is_zero()
    }

    /// Whether the next attempt asks for a place in the queue, if attempts want one. In the queue
    /// of a fair lock, only a listening waiter does, because a waiter that cannot be notified is
    /// passed over. One that cannot subscribe still queues.
    fn takes_place(&self) -> bool {
        !self.plan.target.kind().has_strict_queue()
            || !self.listens()
            || self.state.hints.is_some()
            || self.unsubscribed
    }

    /// Whether attempts want a place in the queue. Waiters of a fair lock always do; their strategy
    /// only decides how they notice their turn.
    pub(super) fn queues(&self) -> bool {
        let kind = self.plan.target.kind();
        let by_choice = matches!(self.plan.strategy, WaitStrategy::HandOff { .. });
        self.plan.wait != Wait::Not
            && self.engine.backend.info().supports_queue
            && (by_choice && kind.hands_off() || kind.has_strict_queue())
    }

    /// Decides whether to continue after an attempt that started at `begun` failed.
    fn failed(&mut self, error: BackendError, begun: Instant) -> Result<Obstacle, LockError> {
        let (limit, state) = (self.limit(), &mut self.state);
        if error.executed() == Executed::Maybe {
            state.late_attempt = true;
        } else if state.place.is_none() && !state.late_attempt {
            state.unsettled = None;
        }
        let since = state.fails(begun, error.ready_in(), limit);
        if spends_owner(&error) {
            self.give_up_owner();
        }
        let patience_over = since.elapsed() >= self.engine.settings.tolerate_outage;
        let may_wait = self.plan.wait != Wait::Not;
        if error.is_transient() && may_wait && !patience_over {
            tracing::debug!(lock = %self.plan.target, %error, "attempt failed, will try again");
            return Ok(Obstacle::Failed(error));
        }
        // Others may have the time to wait until the backend is ready.
        let is_outage = error.is_transient() && may_wait && error.ready_in().is_none();
        if let (Some(lead), true) = (&self.lead, is_outage) {
            lead.tell_outage(&error, self.plan.lease);
        }
        Err(LockError::Backend {
            target: self.plan.target.clone(),
            phase: Phase::Acquire,
            source: error,
        })
    }

    fn give_up_owner(&mut self) {
        let mut fresh = AcquisitionState::new(self.state.ask.clone());
        fresh.ask.owner = self.plan.target.kind().owner_from(&self.engine.ids);
        fresh.failing_since = self.state.failing_since;
        fresh.hints = self.state.hints.take();
        std::mem::replace(&mut self.state, fresh).give_up(self.engine);
    }

    /// Tells the waiters behind it that this acquisition is alive and will report again by `until`.
    /// Call it before everything that takes time: a silent leader is soon deposed.
    pub(super) fn lives_until(&self, until: Instant) -> Result<(), Stop> {
        let Some(lead) = &self.lead else {
            return Ok(());
        };
        // Generous: a busy runtime is no reason to lose the place in the queue, which is kept for
        // three heartbeats.
        let spare = self.heartbeat().max(SHORTEST_HEARTBEAT) * 2;
        let asks = self.state.asks(self.engine);
        lead.lives_until(BootInstant::of_timer(until) + spare, asks)
    }

    /// A single attempt may take the backend's call timeout. With a wait limit, attempts end with
    /// it. But the first attempt always has a moment, or a short limit could not take a free lock.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline_from(Instant::now())
    }

    fn deadline_from(&self, now: Instant) -> Instant {
        let deadline = timer_after(now, self.engine.call_timeout());
        match (self.plan.wait, self.limit()) {
            (Wait::AtMost(_), Some(limit)) => {
                deadline.min(limit.max(self.started + self.engine.first_answer()))
            }
            _ => deadline,
        }
    }

    fn out_of_time(&self, obstacle: Obstacle) -> LockError {
        let (holder_remaining, source) = match obstacle {
            Obstacle::Held(remaining) | Obstacle::Queued { remaining, .. } => (remaining, None),
            Obstacle::Failed(error) => (None, Some(error)),
        };
        let (target, waited) = (self.plan.target.clone(), self.started.elapsed());
        LockError::WaitTimeout {
            target,
            waited,
            holder_remaining,
            source,
        }
    }
}

impl Drop for Acquisition<'_> {
    fn drop(&mut self) {
        if self.lead.is_none() && !self.state.owes() {
            return;
        }
        let fresh = AcquisitionState::new(self.state.ask.clone());
        let state = std::mem::replace(&mut self.state, fresh);
        match self.lead.take() {
            Some(lead) => lead.leave(state),
            None => state.give_up(self.engine),
        }
    }
}
