//! One watchdog for all leases of a `Locktopus`: it renews them and says when they are lost.
//!
//! Leases sit in a timer wheel, each with the next instant at which something must be done: renew, try
//! again, or give up. What falls due together is renewed together: one batch for each shard, each batch a
//! task of its own, so that a node that does not answer delays nobody else. While a batch is under way the
//! lease's timer stands at its deadline, so a lost lease is reported on time whatever the network does.

mod due;
mod timing;

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use slab::Slab;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::time::{DelayQueue, delay_queue};

use self::due::Due;
use self::timing::{next, renewal, renewal_lease, timer};
use crate::backend_error::BackendError;
use crate::clock;
use crate::cohort::Cohort;
use crate::error::LostCause;
use crate::lease::LeaseState;
use crate::request::{ExtendOutcome, ExtendRequest};
use crate::services::Services;
use crate::wake::lock;

/// A renewal is due after this part of the lease, as in Redisson.
const RENEWALS_PER_LEASE: u32 = 3;
/// Renewal times are rounded down to this part of their period, so that neighbours share a batch.
const BATCHES_PER_PERIOD: u32 = 32;
/// Largest batch. A script over 100 keys takes 0.14 ms of the server's time, over 1,000 it stalls everybody.
const BATCH: usize = 100;
/// How often the watchdog looks whether the machine was asleep, while there are leases.
const TICK: Duration = Duration::from_secs(1);
/// The farthest a timer is set ahead.
const FARTHEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// First pause before a failed renewal is tried again.
const FIRST_RETRY: Duration = Duration::from_millis(20);

/// The leases of one `Locktopus` and their timers.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    wheel: Mutex<Wheel>,
}

#[derive(Debug, Default)]
struct Wheel {
    timers: DelayQueue<Timer>,
    leases: Slab<Entry>,
    ticking: bool,
    closed: bool,
    suspended: Duration,
}

#[derive(Debug)]
enum Timer {
    Tick,
    Lease(usize),
    Patrol(Weak<Cohort>),
}

#[derive(Debug)]
struct Entry {
    lease: Arc<LeaseState>,
    timer: delay_queue::Key,
    renew_at: Option<Instant>,
    in_flight: bool,
    failures: u32,
    detail: Option<String>,
}

/// A lease that is due for renewal, and where it sits. The place alone does not name it: it may belong to
/// another lease by the time the answer comes.
#[derive(Debug)]
struct Watched {
    slot: usize,
    lease: Arc<LeaseState>,
}

/// Where a lease sits in the wheel. Handed back to take it out again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket(usize);

impl Ticket {
    /// Of a lease that is not watched.
    pub(crate) const NONE: Self = Self(usize::MAX);
}

impl Watchdog {
    /// Starts watching a lease. Must be called on the watchdog's runtime. After `close` nobody would report
    /// its loss, so it ends at once and there is no ticket.
    pub(crate) fn watch(&self, lease: &Arc<LeaseState>) -> Option<Ticket> {
        let renew_at = lease.renewed.then(|| renewal(clock::now(), lease.lease()));
        let due = next(lease, renew_at);
        let mut wheel = lock(&self.wheel);
        if wheel.closed {
            lease.end(LostCause::ShutDown);
            return None;
        }
        let slot = wheel.leases.vacant_key();
        let timer = wheel.timers.insert_at(Timer::Lease(slot), timer(due));
        let lease = Arc::clone(lease);
        wheel.leases.insert(Entry {
            lease,
            timer,
            renew_at,
            in_flight: false,
            failures: 0,
            detail: None,
        });
        if !wheel.ticking {
            wheel.ticking = true;
            wheel.suspended = clock::suspended();
            wheel.timers.insert(Timer::Tick, TICK);
        }
        Some(Ticket(slot))
    }

    /// Stops watching for good, and returns what was being watched.
    pub(crate) fn close(&self) -> Vec<Arc<LeaseState>> {
        let mut wheel = lock(&self.wheel);
        wheel.closed = true;
        wheel.timers.clear();
        wheel.leases.drain().map(|entry| entry.lease).collect()
    }

    /// Stops watching a lease. Does nothing if it was lost and taken out meanwhile.
    pub(crate) fn forget(&self, ticket: Ticket, lease: &Arc<LeaseState>) {
        let mut wheel = lock(&self.wheel);
        if wheel
            .leases
            .get(ticket.0)
            .is_some_and(|entry| Arc::ptr_eq(&entry.lease, lease))
        {
            let entry = wheel.leases.remove(ticket.0);
            wheel.timers.try_remove(&entry.timer);
        }
    }

    /// Puts the timer of a lease right after its deadline moved.
    pub(crate) fn extended(&self, ticket: Ticket, lease: &Arc<LeaseState>) {
        let mut wheel = lock(&self.wheel);
        let wheel = &mut *wheel;
        if let Some(entry) = wheel
            .leases
            .get_mut(ticket.0)
            .filter(|entry| Arc::ptr_eq(&entry.lease, lease))
        {
            entry.renew_at = lease.renewed.then(|| renewal(clock::now(), lease.lease()));
            let due = next(lease, entry.renew_at.filter(|_| !entry.in_flight));
            wheel.timers.reset_at(&entry.timer, timer(due));
        }
    }

    /// The leases being watched.
    pub(crate) fn leases(&self) -> Vec<(Ticket, Arc<LeaseState>)> {
        let wheel = lock(&self.wheel);
        let leases = wheel.leases.iter();
        leases
            .map(|(slot, entry)| (Ticket(slot), Arc::clone(&entry.lease)))
            .collect()
    }

    /// Looks at a lease's deadline again: its maximum hold time has changed.
    pub(crate) fn retime(&self, ticket: Ticket, lease: &Arc<LeaseState>) {
        let mut wheel = lock(&self.wheel);
        let wheel = &mut *wheel;
        if let Some(entry) = wheel
            .leases
            .get_mut(ticket.0)
            .filter(|entry| Arc::ptr_eq(&entry.lease, lease))
        {
            let due = next(lease, entry.renew_at.filter(|_| !entry.in_flight));
            wheel.timers.reset_at(&entry.timer, timer(due));
        }
    }

    /// Sends somebody to look after a line at this instant. Must be called on the watchdog's runtime.
    pub(crate) fn patrol_at(&self, cohort: Weak<Cohort>, at: Instant) {
        let mut wheel = lock(&self.wheel);
        if !wheel.closed {
            wheel.timers.insert_at(Timer::Patrol(cohort), timer(at));
        }
    }

    /// How many leases are being watched.
    pub(crate) fn len(&self) -> usize {
        lock(&self.wheel).leases.len()
    }

    pub(crate) async fn run(self: Arc<Self>, services: Weak<Services>, closed: CancellationToken) {
        loop {
            let due = tokio::select! {
                biased;
                () = closed.cancelled() => return,
                due = poll_fn(|cx| self.poll_due(cx)) => due,
            };
            // Outside the wheel's lock: ending a lease runs whatever waits for its loss.
            for entry in due.over {
                entry.report_expiry();
            }
            let Some(services) = services.upgrade() else {
                return;
            };
            for cohort in due.patrols {
                if let Some(cohort) = cohort.upgrade() {
                    cohort.patrol(&services, due.now);
                }
            }
            let mut batches: HashMap<_, Vec<Watched>> = HashMap::new();
            for watched in due.renew {
                let lease = renewal_lease(&watched.lease, due.now, &services);
                let shard = services.backend.shard(&watched.lease.target);
                batches.entry((shard, lease)).or_default().push(watched);
            }
            for ((_, lease), mut batch) in batches {
                while !batch.is_empty() {
                    let rest = batch.split_off(batch.len().min(BATCH));
                    let (watchdog, services_) = (Arc::clone(&self), Arc::clone(&services));
                    services.tasks.spawn_on(
                        async move { watchdog.renew(&services_, batch, lease).await },
                        &services.runtime,
                    );
                    batch = rest;
                }
            }
        }
    }

    /// Everything that is due now, taken out and put back in one step: a timer's key is dead once it has
    /// fired, and may be given to another lease as soon as the wheel is unlocked.
    fn poll_due(&self, cx: &mut Context<'_>) -> Poll<Due> {
        let mut wheel = lock(&self.wheel);
        let mut due = Due {
            now: clock::now(),
            renew: Vec::new(),
            over: Vec::new(),
            patrols: Vec::new(),
        };
        loop {
            match wheel.timers.poll_expired(cx) {
                Poll::Ready(Some(expired)) => match expired.into_inner() {
                    Timer::Lease(slot) => wheel.fired(slot, &mut due),
                    Timer::Tick => wheel.tick(&mut due),
                    Timer::Patrol(cohort) => due.patrols.push(cohort),
                },
                _ if !due.is_empty() => return Poll::Ready(due),
                // An empty wheel keeps the waker: the next insertion wakes this task.
                _ => return Poll::Pending,
            }
        }
    }

    async fn renew(&self, services: &Services, batch: Vec<Watched>, lease: Duration) {
        let sent = clock::now();
        let batch: Vec<Watched> = batch
            .into_iter()
            .filter(|watched| watched.lease.is_active())
            .collect();
        if batch.is_empty() {
            return;
        }
        // A third of the lease is left for a second try, and a third to spare.
        let mut until = sent + services.call_timeout().min(lease / RENEWALS_PER_LEASE);
        let mut requests = Vec::with_capacity(batch.len());
        for Watched { lease: state, .. } in &batch {
            until = until.min(state.valid_until());
            state.asked_for(lease);
            requests.push(ExtendRequest {
                target: state.target.clone(),
                owner: state.owner.clone(),
                lease,
                permits: state.permits,
            });
        }
        // Even when the deadline is near, the answer gets a moment to arrive: a lease saved late is saved.
        let deadline = clock::timer(until.max(sent + Duration::from_millis(5)));
        let answers = services.extend(&requests, deadline).await;
        let valid_until = services.settings.margin.valid_until(sent, lease);
        for (watched, answer) in batch.iter().zip(answers) {
            if let Some(cause) = self.renewed(watched, answer, valid_until) {
                tracing::warn!(lock = %watched.lease.target, %cause, "lock lost");
                watched.lease.end(cause);
            }
        }
    }

    /// Notes the answer to a renewal. Gives the cause if the lease turns out to be lost.
    fn renewed(
        &self,
        watched: &Watched,
        answer: Result<ExtendOutcome, BackendError>,
        valid_until: Instant,
    ) -> Option<LostCause> {
        let state = &watched.lease;
        let mut wheel = lock(&self.wheel);
        let wheel = &mut *wheel;
        // It may have been released, and its place taken, while the renewal was under way.
        let entry = wheel
            .leases
            .get_mut(watched.slot)
            .filter(|entry| Arc::ptr_eq(&entry.lease, state))?;
        entry.in_flight = false;
        let now = clock::now();
        let lost = match answer {
            Ok(ExtendOutcome::Extended) => {
                (entry.failures, entry.detail) = (0, None);
                state.extended(state.lease(), valid_until);
                entry.renew_at = state.renewed.then(|| renewal(now, state.lease()));
                None
            }
            Ok(ExtendOutcome::Missing) => Some(LostCause::Missing),
            Ok(ExtendOutcome::TakenOver) => Some(LostCause::TakenOver),
            Err(error) => {
                tracing::debug!(lock = %state.target, %error, "renewal failed, will try again");
                let pause = FIRST_RETRY * 2_u32.pow(entry.failures.min(4));
                entry.failures += 1;
                entry.detail = Some(error.to_string());
                entry.renew_at = Some(now + pause.min(state.lease() / 8));
                None
            }
        };
        if let Some(cause) = lost {
            let entry = wheel.leases.remove(watched.slot);
            wheel.timers.try_remove(&entry.timer);
            // A hold that is being released is expected to be gone.
            return entry.lease.is_active().then_some(cause);
        }
        let due = next(state, entry.renew_at);
        wheel.timers.reset_at(&entry.timer, timer(due));
        None
    }
}

impl Wheel {
    /// Handles a lease whose timer has fired, and gives it a new one.
    fn fired(&mut self, slot: usize, due: &mut Due) {
        let Some(entry) = self.leases.get_mut(slot) else {
            return;
        };
        let over = due.now >= entry.lease.valid_until();
        if over || !entry.lease.is_active() {
            let entry = self.leases.remove(slot);
            if over {
                due.over.push(entry);
            }
            return;
        }
        let mut at = entry.lease.valid_until();
        match entry.renew_at.filter(|_| !entry.in_flight) {
            // Until the answer comes, the timer guards the deadline.
            Some(renew_at) if renew_at <= due.now => {
                entry.in_flight = true;
                let lease = Arc::clone(&entry.lease);
                due.renew.push(Watched { slot, lease });
            }
            Some(renew_at) => at = at.min(renew_at),
            None => {}
        }
        entry.timer = self.timers.insert_at(Timer::Lease(slot), timer(at));
    }

    /// Looks for leases that ran out while the machine was asleep; their timers did not see it.
    fn tick(&mut self, due: &mut Due) {
        let suspended = clock::suspended();
        if suspended > self.suspended {
            self.suspended = suspended;
            let slots: Vec<usize> = self.leases.iter().map(|(slot, _)| slot).collect();
            for slot in slots {
                if let Some(entry) = self.leases.get(slot) {
                    self.timers.try_remove(&entry.timer);
                    self.fired(slot, due);
                }
            }
        }
        self.ticking = !self.leases.is_empty();
        if self.ticking {
            self.timers.insert(Timer::Tick, TICK);
        }
    }
}
