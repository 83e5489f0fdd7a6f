//! One member of a local queue: an acquisition that waits for its turn, or leads.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::attempts::Stop;
use super::cohort::{Asker, Cohort};
use super::engine::Engine;
use super::kept_lease::RecallSubscription;
use super::local_progress::Told;
use super::local_queue::{Arrival, Begun, Deposed, Glance};
use super::plan::{Plan, Wait};
use super::shared_lease::SharedLease;
use super::slot::{Slot, Turned};
use super::state::AcquisitionState;
use super::{alone, from_backend};
use crate::contract::backend_error::{BackendError, Executed};
use crate::contract::clock::{self, BootInstant};
use crate::contract::owner::OwnerId;
use crate::contract::sync::lock;
use crate::engine::error::{LockError, LostCause, Phase};
use crate::engine::holding::give_back::Owed;
use crate::engine::holding::grant::Grant;
use crate::engine::holding::held::Held;
use crate::engine::holding::passed_on::PassedOn as _;
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
    if plan.wait == Wait::Not && matches!(place, Place::Waits(_)) {
        // Somebody came in between.
        drop(place);
        return alone(engine, plan, started).await;
    }
    loop {
        place = match place {
            Place::Holds(shared, since) => {
                return Ok(Some(hold(engine, plan, &shared, since)));
            }
            Place::Leads(lead) => {
                // Boxed: the many who wait need no room for what one of them does.
                match Box::pin(from_backend(engine, plan, started, Some(lead))).await {
                    Ok(guard) => return Ok(guard),
                    Err(Stop::Failed(error)) => return Err(error),
                    Err(Stop::Deposed) => Place::arrive(engine, plan, started)?,
                }
            }
            Place::Waits(mut waiting) => match waiting.turn(plan, started).await? {
                Some(Begun::Holds(shared, since)) => {
                    let took = clock::now().since(since);
                    engine.observer.handed_on(&plan.target, took);
                    return Ok(Some(hold(engine, plan, &shared, since)));
                }
                Some(Begun::Leads(number, state)) => Place::Leads(waiting.lead(number, state)),
                None => Place::arrive(engine, plan, started)?,
            },
        };
    }
}

/// Begins a turn with a lease that was granted before, and has been this member's since then. How long it may be held
/// counts from now: a member that is woken late must not find that time used up.
fn hold(engine: &Arc<Engine>, plan: &Plan, shared: &Arc<SharedLease>, since: BootInstant) -> Held {
    let hold_until = plan.max_hold.map(|hold| clock::now() + hold);
    shared.begin(engine, hold_until, since)
}

/// Where a member is in its local queue.
enum Place {
    Holds(Arc<SharedLease>, BootInstant),
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
            Arrival::Holds(shared) => Ok(Self::Holds(shared, now.unwrap_or_else(clock::now))),
            Arrival::Leads { number, kept } => Ok(Self::Leads(Lead {
                engine: Arc::clone(engine),
                cohort,
                number,
                state: None,
                kept,
                leads: true,
            })),
            Arrival::Waits {
                slot,
                look_at,
                ahead,
            } => {
                observe::stands_behind_here(ahead);
                cohort.patrol_at(engine, look_at);
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
        Lead {
            engine: Arc::clone(&self.engine),
            cohort: Arc::clone(&self.cohort),
            number,
            state,
            kept: None,
            leads: true,
        }
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
        let may = |shared: &SharedLease, asker: &Asker| shared.may_serve(asker, now);
        let left = self.cohort.queue.hand_back(&self.slot, now, may);
        self.cohort.settle(&self.engine, left);
    }
}

/// How many tokens a leader without company reserves, for those who come while it holds the lock.
const TOKENS_ALONE: u32 = 8;

/// The way to the backend, on behalf of all who wait in the local queue. Dropping it lets the next one lead.
pub(crate) struct Lead {
    engine: Arc<Engine>,
    cohort: Arc<Cohort>,
    number: u64,
    /// Where the leader before stood.
    state: Option<Box<AcquisitionState>>,
    /// A lease that the local queue kept and that is in the way now.
    kept: Option<Arc<SharedLease>>,
    leads: bool,
}

impl Lead {
    /// How many tokens to reserve with the lock.
    ///
    /// As many as the lock may be passed on where there is company; few where there is none, as tokens are the
    /// server's microseconds: whoever reserves more of them per grant than the grant lasts runs ahead of the clock that
    /// makes tokens grow even where the last one was lost. A lease that is kept lasts.
    pub(crate) fn tokens_to_ask(&self, keeps: bool) -> u32 {
        let turns = self.engine.settings.cohort.turns;
        if keeps || self.cohort.queue.has_waiters() {
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
        self.cohort.patrol_at(&self.engine, look_at);
        Ok(())
    }

    /// Tells those who wait behind it what the backend said.
    pub(crate) fn tell(&self, ahead: Option<u64>, remaining: Option<Duration>) {
        self.cohort.tell(Told::now(self.number, ahead, remaining));
    }

    /// The backend granted the lock: a shared lease begins, and the leader has its first turn. With a `recall` subscription the lease may
    /// be kept after its last one.
    pub(crate) fn won(
        &mut self,
        grant: Grant,
        recall: Option<RecallSubscription>,
    ) -> Result<Held, Stop> {
        let (hold_until, now) = (grant.hold_until, grant.granted_at);
        let shared = SharedLease::start(&self.engine, &self.cohort, grant, recall);
        let shared = shared.ok_or(LockError::ShutDown)?;
        self.leads = false;
        if !self.cohort.queue.won(self.number, &shared) {
            // The caller gives the grant back.
            shared.abandon(&self.engine);
            return Err(Stop::Deposed);
        }
        self.cohort.tell_of_holder(now);
        Ok(shared.begin(&self.engine, hold_until, now))
    }

    /// The backend cannot be reached: tells those who have been waiting for as long as anybody has to.
    pub(crate) fn tell_outage(&self, error: &BackendError) {
        let outage = self.engine.settings.tolerate_outage;
        let told = self.cohort.queue.dismiss(|asker| {
            let patient = asker.arrived.elapsed() >= outage;
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

    /// Leaves the way to the next one, who goes on from `stand`.
    pub(crate) fn leave(mut self, state: AcquisitionState) {
        self.leads = false;
        self.end(Some(Box::new(state.left_behind())));
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
