//! A member of a cohort: an acquisition that waits for its turn, or leads.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use locktopus_contract::clock::{self, BootInstant};
use tokio::time::Instant;

use super::cohort::{self, Cohort};
use super::from_backend;
use super::lead::Stop;
use super::plan::Plan;
use super::stage::Step;
use super::state::AcquisitionState;
use crate::engine::error::LockError;
use crate::engine::holding::hold::Hold;
use crate::engine::holding::lease::BackendLease;
use crate::engine::holding::services::Services;
use crate::engine::observe;

/// Takes the lock within the process, if others hold it there or are getting it, else from the
/// backend.
pub(crate) async fn acquire(
    services: &Arc<Services>,
    plan: &Plan,
) -> Result<Option<Hold>, LockError> {
    let started = Instant::now();
    loop {
        let (mut lead, mut left_behind) = (None, None);
        if cohort::serves(services, plan) {
            let (mut member, arrived) = Member::arrive(services, plan, started)?;
            let waited = arrived.is_none();
            let step = match (arrived, plan.wait.limit(started), &plan.cancel) {
                (Some(step), ..) => step,
                (None, None, None) => poll_fn(|cx| member.poll_step(cx)).await,
                // Boxed: most wait without a limit.
                _ => Box::pin(member.wait_in_time(plan, started)).await?,
            };
            member.is_in = matches!(step, Step::Lead { .. });
            match step {
                Step::Hold(lease, since) => {
                    let held = hold(services, plan, &lease, since);
                    // After the turn has begun: if this panics, the turn is passed on.
                    if waited {
                        services.observer.handed_on(&plan.target, since);
                    }
                    return Ok(Some(held));
                }
                Step::Lead { state, kept } => {
                    member.kept = kept;
                    (lead, left_behind) = (Some(member), state);
                }
                Step::SayBusy => return Ok(None),
                Step::AskAlone => {}
                Step::QueueAgain => continue,
                Step::Stop(error) => return Err(error.map_or(LockError::ShutDown, |error| *error)),
            }
        }
        // Boxed, so that the futures of waiters stay small: only those that ask need this state.
        match Box::pin(from_backend(services, plan, started, lead, left_behind)).await {
            Ok(held) => return Ok(held),
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Deposed) => {}
        }
    }
}

/// Begins a turn with a lease that was granted before, and has been this member's since then. The
/// maximum hold time counts from now: a member that is woken late must not find it used up.
fn hold(
    services: &Arc<Services>,
    plan: &Plan,
    lease: &Arc<BackendLease>,
    since: BootInstant,
) -> Hold {
    let hold_until = plan.max_hold.map(|hold| clock::now() + hold);
    lease.begin_turn(services, hold_until, since)
}

/// A place in a cohort. Dropping it passes on what this member has.
pub(crate) struct Member {
    pub(super) services: Arc<Services>,
    pub(super) cohort: Arc<Cohort>,
    pub(super) number: u64,
    /// It waits or leads.
    pub(super) is_in: bool,
    /// A lease that the cohort kept. This leader gives it back first.
    pub(super) kept: Option<Arc<BackendLease>>,
}

impl Member {
    /// Comes to the cohort, with what it does next unless it waits.
    fn arrive(
        services: &Arc<Services>,
        plan: &Plan,
        started: Instant,
    ) -> Result<(Self, Option<Step>), LockError> {
        let arrived = services.cohorts.arrive(plan, started);
        let (cohort, arrival) = arrived.ok_or(LockError::ShutDown)?;
        let member = Self {
            services: Arc::clone(services),
            cohort,
            number: arrival.number,
            is_in: true,
            kept: None,
        };
        if arrival.step.is_none() {
            observe::stands_behind_here(arrival.ahead);
            member.cohort.carry_out(services, arrival.effects);
            if plan.progress.is_some() {
                member.cohort.tell(clock::now());
            }
        }
        Ok((member, arrival.step))
    }

    async fn wait_in_time(&self, plan: &Plan, started: Instant) -> Result<Step, LockError> {
        tokio::select! {
            biased;
            step = poll_fn(|cx| self.poll_step(cx)) => Ok(step),
            () = plan.cancelled() => Err(plan.cancellation()),
            () = plan.wait.over(started) => Err(LockError::out_of_time(&plan.target, started)),
        }
    }

    fn poll_step(&self, cx: &Context<'_>) -> Poll<Step> {
        // Cloned and dropped outside the mutex: both may run code of the executor.
        let mut waker = Some(cx.waker().clone());
        let step = self.cohort.queue().poll(self.number, &mut waker);
        step.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Member {
    /// Passes on what this member has: the lead, with this `state`, or its turn.
    pub(super) fn pass_on(&self, state: Option<Box<AcquisitionState>>) {
        let now = clock::now();
        let effects = self.cohort.queue().leave(self.number, state, now);
        self.cohort.carry_out(&self.services, effects);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // What is owed then goes to the reaper.
        drop(self.take_kept());
        if self.is_in {
            let waiter = self.cohort.queue().withdraw(self.number);
            if waiter.is_none() {
                self.pass_on(None);
            }
        }
    }
}
