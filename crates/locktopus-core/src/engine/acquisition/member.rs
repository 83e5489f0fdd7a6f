//! A member of a cohort: an acquisition that waits for its turn, or leads.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use locktopus_contract::clock::{self, BootInstant};
use tokio::time::Instant;

use super::cohort::Cohort;
use super::engine::Engine;
use super::lead::Stop;
use super::plan::Plan;
use super::stage::Step;
use super::state::AcquisitionState;
use super::{alone, from_backend};
use crate::engine::error::LockError;
use crate::engine::holding::held::Held;
use crate::engine::holding::lease::Lease;
use crate::engine::observe;

/// Takes a lock that has a cohort in this process.
pub(crate) async fn acquire(
    engine: &Arc<Engine>,
    plan: &Plan,
    started: Instant,
) -> Result<Option<Held>, LockError> {
    loop {
        let (mut member, arrived) = Member::arrive(engine, plan, started)?;
        let waited = arrived.is_none();
        let step = match (arrived, plan.wait.limit(started), &plan.cancel) {
            (Some(step), ..) => step,
            (None, None, None) => poll_fn(|cx| member.poll_step(cx)).await,
            // Boxed: most wait without a limit.
            (None, limit, _) => Box::pin(member.wait_in_time(plan, started, limit)).await?,
        };
        member.is_in = matches!(step, Step::Lead { .. });
        match step {
            Step::Hold(lease, since) => {
                let held = hold(engine, plan, &lease, since);
                // After the turn has begun: if this panics, the turn is passed on.
                if waited {
                    engine.observer.handed_on(&plan.target, since);
                }
                return Ok(Some(held));
            }
            Step::Lead { state, kept } => {
                member.kept = kept;
                let lead = Some(member);
                // Boxed, so that the futures of waiters stay small: only the leader needs this
                // state.
                match Box::pin(from_backend(engine, plan, started, lead, state)).await {
                    Ok(held) => return Ok(held),
                    Err(Stop::Failed(error)) => return Err(error),
                    Err(Stop::Deposed) => {}
                }
            }
            Step::SayBusy => return Ok(None),
            Step::AskAlone => return Box::pin(alone(engine, plan, started)).await,
            Step::QueueAgain => {}
            Step::Stop(error) => return Err(error.map_or(LockError::ShutDown, |error| *error)),
        }
    }
}

/// Begins a turn with a lease that was granted before, and has been this member's since then. The
/// maximum hold time counts from now: a member that is woken late must not find it used up.
fn hold(engine: &Arc<Engine>, plan: &Plan, lease: &Arc<Lease>, since: BootInstant) -> Held {
    let hold_until = plan.max_hold.map(|hold| clock::now() + hold);
    lease.begin_turn(engine, hold_until, since)
}

/// A place in a cohort. Dropping it passes on what this member has.
pub(crate) struct Member {
    pub(super) engine: Arc<Engine>,
    pub(super) cohort: Arc<Cohort>,
    pub(super) number: u64,
    /// It waits or leads.
    pub(super) is_in: bool,
    /// A lease that the cohort kept. This leader gives it back first.
    pub(super) kept: Option<Arc<Lease>>,
}

impl Member {
    /// Comes to the cohort, with what it does next unless it waits.
    fn arrive(
        engine: &Arc<Engine>,
        plan: &Plan,
        started: Instant,
    ) -> Result<(Self, Option<Step>), LockError> {
        let arrived = engine.cohorts.arrive(plan, started);
        let (cohort, arrival) = arrived.ok_or(LockError::ShutDown)?;
        let member = Self {
            engine: Arc::clone(engine),
            cohort,
            number: arrival.number,
            is_in: true,
            kept: None,
        };
        if arrival.step.is_none() {
            observe::stands_behind_here(arrival.ahead);
            member.cohort.carry_out(engine, arrival.effects);
            if plan.progress.is_some() {
                member.cohort.tell(clock::now());
            }
        }
        Ok((member, arrival.step))
    }

    async fn wait_in_time(
        &self,
        plan: &Plan,
        started: Instant,
        limit: Option<Instant>,
    ) -> Result<Step, LockError> {
        let over = async {
            match limit {
                Some(limit) => tokio::time::sleep_until(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            step = poll_fn(|cx| self.poll_step(cx)) => Ok(step),
            () = plan.cancelled() => Err(plan.cancellation()),
            () = over => Err(plan.out_of_time(started)),
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
    /// Passes on what this member has: the way to the backend, with this `state`, or its turn.
    pub(super) fn pass_on(&self, state: Option<Box<AcquisitionState>>) {
        let now = clock::now();
        let effects = self.cohort.queue().leave(self.number, state, now);
        self.cohort.carry_out(&self.engine, effects);
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
