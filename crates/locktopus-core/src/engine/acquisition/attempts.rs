//! The one loop that takes locks from the backend: attempt, wait, attempt again.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant, timer_after};
use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, Executed,
};
use tokio::time::Instant;

use super::lead::Stop;
use super::member::Member;
use super::plan::{Plan, Wait};
use super::state::{AcquisitionState, QueuePlace};
use crate::engine::error::{LockError, Phase};
use crate::engine::holding::hold::Hold;
use crate::engine::holding::services::Services;
use crate::engine::observe;

/// Even with short leases, waiters do not ask more often than this.
pub(super) const SHORTEST_HEARTBEAT: Duration = Duration::from_millis(50);

/// One acquisition under way. Dropping it at any point gives back what an attempt may have taken,
/// or leaves that to the next leader.
pub(crate) struct Acquisition<'a> {
    pub(super) services: &'a Arc<Services>,
    pub(super) plan: &'a Plan,
    started: Instant,
    pub(super) state: AcquisitionState,
    pub(super) pauses: u16,
    /// The place in the queue at the last of these pauses, counted from 1; 0 if none.
    pub(super) last_position: u16,
    /// The last subscription failed.
    pub(super) unsubscribed: bool,
    /// The servers were away since the last answer, and may have lost data.
    pub(super) interrupted: bool,
    position: observe::PositionField,
    /// Other tasks of this process wait behind this one.
    pub(super) lead: Option<Member>,
}

/// Why the last attempt did not get the lock, for the error if time runs out.
#[derive(Debug)]
pub(super) enum AttemptFailure {
    Busy(Option<Duration>),
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

impl AttemptFailure {
    fn is_busy(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }
}

impl<'a> Acquisition<'a> {
    pub(crate) fn new(
        services: &'a Arc<Services>,
        plan: &'a Plan,
        started: Instant,
        lead: Option<Member>,
        left_behind: Option<Box<AcquisitionState>>,
    ) -> Self {
        let owner = plan.target.kind().owner_from(&services.ids);
        let ask = AcquireAttempt::new(plan.target.clone(), owner, plan.lease, started);
        let mut acquisition = Self {
            services,
            plan,
            started,
            state: AcquisitionState::new(ask),
            pauses: 0,
            last_position: 0,
            unsubscribed: false,
            interrupted: false,
            position: observe::unknown_position(),
            lead,
        };
        let (place, keeps) = (acquisition.place(), !plan.lease_cache.is_zero());
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
                state.give_up(services);
            }
        }
        acquisition
    }

    /// Attempts, waits and attempts again.
    pub(crate) async fn run(&mut self) -> Result<Option<Hold>, Stop> {
        self.prepare().await?;
        loop {
            let failure = {
                let (begun, mut sent) = (Instant::now(), clock::now());
                let deadline = self.deadline_from(begun);
                self.lives_until(deadline)?;
                let answer = self.send(deadline, &mut sent).await;
                match self.answered(answer, begun, sent)? {
                    Ok(held) => return Ok(Some(held)),
                    Err(failure) => failure,
                }
            };
            self.report(&failure);
            if self.plan.wait == Wait::Not && failure.is_busy() {
                return Ok(None);
            }
            if !self.time_left() {
                return Err(self.out_of_time(failure).into());
            }
            if self.listens() && self.state.hints.is_none() && failure.is_busy() {
                // Subscribe, then check again, or a release between the two would be missed.
                let stands_aside = !self.takes_place();
                self.state.hints = self.subscribe(self.deadline()).await?;
                self.unsubscribed = self.state.hints.is_none();
                if (!self.unsubscribed || stands_aside) && self.time_left() {
                    continue;
                }
            }
            if self.time_left()
                && let Some(token) = self.pause(&failure).await?
                && let Some(guard) = self.believe(token)?
            {
                return Ok(Some(guard));
            }
            // An attempt without time for its answer would tell less than the last one did, and
            // would need a cleanup.
            if !self.time_left() {
                return Err(self.out_of_time(failure).into());
            }
        }
    }

    /// Before the first attempt: gives back a lease that the local queue kept and that would block
    /// it, and listens.
    async fn prepare(&mut self) -> Result<(), Stop> {
        if self.lead.as_ref().is_some_and(|lead| lead.kept.is_some()) {
            let deadline = self.deadline();
            self.lives_until(deadline)?;
            if let Some(kept) = self.lead.as_mut().and_then(Member::take_kept) {
                // No task relies on this lease, so the result does not matter. If it takes too
                // long, it continues in the background. Boxed, because few attempts need it and all
                // waiters would need room for it.
                let give_back = Box::pin(kept.give_back(None));
                let _ = Box::pin(tokio::time::timeout_at(deadline, give_back)).await;
            }
        }
        if self.state.hints.is_none() && (self.keeps() || self.listens()) {
            // If this process listens already, a grant may follow the first answer at once.
            self.state.hints = self.listen();
        }
        if self.keeps() && self.state.hints.is_none() {
            // The backend tells only clients that already listen. Leaves half of the time for the
            // attempt itself.
            let within = self.deadline().saturating_duration_since(Instant::now()) / 2;
            self.state.hints = self.subscribe(Instant::now() + within).await?;
        }
        Ok(())
    }

    /// Reports the position to the watchers of this wait, and of waits behind it.
    fn report(&mut self, failure: &AttemptFailure) {
        let (ahead, remaining) = match *failure {
            AttemptFailure::Busy(remaining) => (None, remaining),
            AttemptFailure::Queued {
                remaining,
                ahead,
                counted,
            } => (counted.then_some(ahead), remaining),
            AttemptFailure::Failed(_) => return,
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

    /// Sends an attempt, and sets `sent` to the time just before: time spent earlier does not count
    /// against the lease.
    fn send<'s>(
        &'s mut self,
        deadline: Instant,
        sent: &'s mut BootInstant,
    ) -> impl Future<Output = Result<AttemptOutcome, BackendError>> + Send + 's {
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
        let (services, state) = (self.services, &mut self.state);
        (state.ask.deadline, state.ask.first) = (deadline, first);
        (state.ask.place, state.ask.recall) = (place, recall);
        let sends = |token| {
            (state.unsettled, state.in_flight, *sent) = (Some(token), true, clock::now());
        };
        services.attempt(&state.ask, owes, sends)
    }

    /// What follows from the backend's answer to an attempt.
    fn answered(
        &mut self,
        answer: Result<AttemptOutcome, BackendError>,
        begun: Instant,
        sent: BootInstant,
    ) -> Result<Result<Hold, AttemptFailure>, Stop> {
        self.state.in_flight = false;
        if answer.is_err() {
            self.interrupted = true;
        } else if std::mem::take(&mut self.interrupted) {
            self.services.record_doubted.notify_one();
        }
        match answer {
            Ok(AttemptOutcome::Granted { token }) => {
                let granted_at = clock::now();
                if self.plan.target.kind().is_held() && self.valid_until(sent) <= granted_at {
                    // The answer came too late to be useful: give the grant back and start over.
                    self.give_up_owner();
                    return Ok(Err(self.failed(self.services.too_slow(), begun)?));
                }
                self.take(sent, granted_at, token, self.state.ask.recall)
                    .map(Ok)
            }
            Ok(AttemptOutcome::Busy { remaining }) => {
                self.state.failing_since = None;
                self.state.settled();
                // This owner id neither queues nor holds anything, so nothing is lost by replacing
                // it, and a quorum may have nodes that are closed to it.
                if self.place().is_none() && !self.state.late_attempt {
                    self.state.ask.owner = self.plan.target.kind().owner_from(&self.services.ids);
                }
                Ok(Err(AttemptFailure::Busy(remaining)))
            }
            Ok(AttemptOutcome::Queued {
                remaining,
                ahead,
                last_token,
            }) => {
                // `unsettled` stays: the place in the queue must be given up too.
                self.state.failing_since = None;
                self.state.place = Some(QueuePlace { sent, last_token });
                Ok(Err(AttemptFailure::Queued {
                    remaining,
                    ahead,
                    counted: !self.state.ask.first || ahead == 0,
                }))
            }
            Err(error) => Ok(Err(self.failed(error, begun)?)),
        }
    }

    /// Whether the cohort may keep the lease after a release.
    fn keeps(&self) -> bool {
        self.lead.is_some() && !self.plan.lease_cache.is_zero()
    }

    /// Decides whether to continue after an attempt that started at `begun` failed.
    fn failed(&mut self, error: BackendError, begun: Instant) -> Result<AttemptFailure, LockError> {
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
        let patience_over = since.elapsed() >= self.services.settings.tolerate_outage;
        let may_wait = self.plan.wait != Wait::Not;
        if error.is_transient() && may_wait && !patience_over {
            tracing::debug!(lock = %self.plan.target, %error, "attempt failed, will try again");
            return Ok(AttemptFailure::Failed(error));
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
        fresh.ask.owner = self.plan.target.kind().owner_from(&self.services.ids);
        fresh.failing_since = self.state.failing_since;
        fresh.hints = self.state.hints.take();
        std::mem::replace(&mut self.state, fresh).give_up(self.services);
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
        let cleanup = self.state.cleanup(self.services);
        lead.lives_until(BootInstant::of_timer(until) + spare, cleanup)
    }

    /// A single attempt may take the backend's call timeout. With a wait limit, attempts end with
    /// it. But the first attempt always has a moment, or a short limit could not take a free lock.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline_from(Instant::now())
    }

    fn deadline_from(&self, now: Instant) -> Instant {
        let deadline = timer_after(now, self.services.call_timeout());
        match (self.plan.wait, self.limit()) {
            (Wait::AtMost(_), Some(limit)) => {
                deadline.min(limit.max(self.started + self.services.first_answer()))
            }
            _ => deadline,
        }
    }

    fn out_of_time(&self, failure: AttemptFailure) -> LockError {
        let (holder_remaining, source) = match failure {
            AttemptFailure::Busy(left) => (left, None),
            AttemptFailure::Queued { remaining, .. } => (remaining, None),
            AttemptFailure::Failed(error) => (None, Some(error)),
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
            None => state.give_up(self.services),
        }
    }
}
