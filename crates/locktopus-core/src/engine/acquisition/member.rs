//! One member of a local queue: an acquisition that waits for its turn, or leads.

use std::future::poll_fn;
use std::sync::Arc;

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::lock;
use tokio::time::Instant;

use super::cohort::{Asker, Cohort};
use super::engine::Engine;
use super::lead::{Lead, Stop};
use super::local_queue::{Arrival, Begun, Glance};
use super::plan::{Plan, Wait};
use super::slot::{Slot, Turned};
use super::state::AcquisitionState;
use super::{alone, from_backend};
use crate::engine::error::LockError;
use crate::engine::holding::held::Held;
use crate::engine::holding::lease::Lease;
use crate::engine::observe;

/// Takes a lock that has a local queue in this process.
pub(crate) async fn acquire(
    engine: &Arc<Engine>,
    plan: &Plan,
    started: Instant,
) -> Result<Option<Held>, LockError> {
    if plan.wait == Wait::Not {
        match engine.cohorts.glance(&plan.target) {
            Glance::Empty => {}
            Glance::Held => return Ok(None),
            Glance::Asking => return alone(engine, plan, started).await,
        }
    }
    let mut place = Place::arrive(engine, plan, started)?;
    loop {
        place = match place {
            Place::Waits(waiting) if plan.wait == Wait::Not => {
                // Somebody came in between, or leads in its place.
                drop(waiting);
                return alone(engine, plan, started).await;
            }
            Place::Holds(lease, since) => {
                return Ok(Some(hold(engine, plan, &lease, since)));
            }
            Place::Leads(lead) => {
                // Boxed, so that the futures of waiters stay small: only the leader needs this state.
                match Box::pin(from_backend(engine, plan, started, Some(lead))).await {
                    Ok(guard) => return Ok(guard),
                    Err(Stop::Failed(error)) => return Err(error),
                    Err(Stop::Deposed) => Place::arrive(engine, plan, started)?,
                }
            }
            Place::Waits(mut waiting) => match waiting.turn(plan, started).await? {
                Some(Begun::Holds(lease, since)) => {
                    engine.observer.handed_on(&plan.target, since);
                    return Ok(Some(hold(engine, plan, &lease, since)));
                }
                Some(Begun::Leads(number, state)) => Place::Leads(waiting.lead(number, state)),
                None => Place::arrive(engine, plan, started)?,
            },
        };
    }
}

/// Begins a turn with a lease that was granted before, and has been this member's since then. How long it may be held
/// counts from now: a member that is woken late must not find that time used up.
fn hold(engine: &Arc<Engine>, plan: &Plan, lease: &Arc<Lease>, since: BootInstant) -> Held {
    let hold_until = plan.max_hold.map(|hold| clock::now() + hold);
    lease.begin_turn(engine, hold_until, since)
}

/// Where a member is in its local queue.
enum Place {
    Holds(Arc<Lease>, BootInstant),
    Leads(Lead),
    Waits(Waiting),
}

impl Place {
    /// Goes to the local queue, at its end.
    fn arrive(engine: &Arc<Engine>, plan: &Plan, started: Instant) -> Result<Self, LockError> {
        let arrival = engine.cohorts.arrive(plan, started);
        let (cohort, arrival, now) = arrival.ok_or(LockError::ShutDown)?;
        match arrival {
            Arrival::Closed => Err(LockError::ShutDown),
            Arrival::Holds(lease) => Ok(Self::Holds(lease, now.unwrap_or_else(clock::now))),
            Arrival::Leads { number, kept } => {
                Ok(Self::Leads(Lead::new(engine, &cohort, number, None, kept)))
            }
            Arrival::Waits {
                slot,
                look_at,
                ahead,
            } => {
                observe::stands_behind_here(ahead);
                cohort.schedule_check(engine, look_at);
                if plan.progress.is_some() {
                    cohort.watch();
                }
                Ok(Self::Waits(Waiting {
                    engine: Arc::clone(engine),
                    cohort,
                    slot,
                    waits: true,
                }))
            }
        }
    }
}

/// A place among the waiters. Dropping it passes on whatever it was handed.
struct Waiting {
    engine: Arc<Engine>,
    cohort: Arc<Cohort>,
    slot: Arc<Slot>,
    waits: bool,
}

impl Waiting {
    /// Waits for the turn and begins it. `None`: it was revoked.
    async fn turn(&mut self, plan: &Plan, started: Instant) -> Result<Option<Begun>, LockError> {
        let turned = match (plan.wait.limit(started), &plan.cancel) {
            (None, None) => poll_fn(|cx| self.slot.poll_turn(cx)).await,
            // Boxed: most wait without a limit.
            (limit, _) => Box::pin(self.turn_in_time(plan, started, limit)).await?,
        };
        self.waits = false;
        match turned {
            Turned::Taken(_) => Ok(self.cohort.queue.begin(&self.slot)),
            Turned::Revoked => Ok(None),
            Turned::Dismissed => {
                let verdict = lock(&self.slot.asker.verdict).take();
                Err(verdict.map_or(LockError::ShutDown, |verdict| *verdict))
            }
        }
    }

    async fn turn_in_time(
        &self,
        plan: &Plan,
        started: Instant,
        limit: Option<Instant>,
    ) -> Result<Turned, LockError> {
        let over = async {
            match limit {
                Some(limit) => tokio::time::sleep_until(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            turned = poll_fn(|cx| self.slot.poll_turn(cx)) => Ok(turned),
            () = plan.cancelled() => Err(plan.cancellation()),
            () = over => Err(plan.out_of_time(started)),
        }
    }

    fn lead(self, number: u64, state: Option<Box<AcquisitionState>>) -> Lead {
        Lead::new(&self.engine, &self.cohort, number, state, None)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.cohort.unwatch(&self.slot.asker);
        if !self.waits {
            return;
        }
        if self.slot.cancel().is_none() {
            self.cohort.queue.forget_one();
            return;
        }
        let now = clock::now();
        let may = |lease: &Lease, asker: &Asker| lease.may_serve(asker, now);
        let left = self.cohort.queue.hand_back(&self.slot, now, may);
        self.cohort.settle(&self.engine, left);
    }
}
