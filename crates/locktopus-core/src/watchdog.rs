//! One watchdog for all leases of a `Locktopus`: it renews them and says when they are lost.
//!
//! Leases sit in a timer wheel, each with the next instant at which something must be done: renew, try
//! again, or give up. What falls due together is renewed together: one batch for each shard, each batch a
//! task of its own, so that a node that does not answer delays nobody else. While a batch is under way the
//! lease's timer stands at its deadline, so a lost lease is reported on time whatever the network does.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use slab::Slab;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::time::{DelayQueue, delay_queue};

use crate::clock;
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
    suspended: Duration,
}

#[derive(Debug, Clone, Copy)]
enum Timer {
    Tick,
    Lease(usize),
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

/// Where a lease sits in the wheel. Handed back to take it out again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket(usize);

impl Watchdog {
    /// Starts watching a lease. Must be called on a runtime.
    pub(crate) fn watch(&self, lease: &Arc<LeaseState>) -> Ticket {
        let renew_at = lease.renewed.then(|| renewal(clock::now(), lease.lease()));
        let due = next(lease, renew_at);
        let mut wheel = lock(&self.wheel);
        let slot = wheel.leases.vacant_key();
        let timer = wheel
            .timers
            .insert_at(Timer::Lease(slot), clock::timer(due));
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
        Ticket(slot)
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
            wheel.timers.reset_at(&entry.timer, clock::timer(due));
        }
    }

    /// Every lease that is being watched.
    pub(crate) fn leases(&self) -> Vec<Arc<LeaseState>> {
        lock(&self.wheel)
            .leases
            .iter()
            .map(|(_, entry)| Arc::clone(&entry.lease))
            .collect()
    }

    pub(crate) async fn run(self: Arc<Self>, services: Weak<Services>, closed: CancellationToken) {
        loop {
            let due = tokio::select! {
                biased;
                () = closed.cancelled() => return,
                due = poll_fn(|cx| self.poll_due(cx)) => due,
            };
            let Some(services) = services.upgrade() else {
                return;
            };
            for ((_, lease_ms), mut batch) in self.sort(due, &services) {
                while !batch.is_empty() {
                    let rest = batch.split_off(batch.len().min(BATCH));
                    let watchdog = Arc::clone(&self);
                    let services_ = Arc::clone(&services);
                    services.tasks.spawn_on(
                        async move { watchdog.renew(&services_, batch, lease_ms).await },
                        &services.runtime,
                    );
                    batch = rest;
                }
            }
        }
    }

    /// Everything that is due now.
    fn poll_due(&self, cx: &mut Context<'_>) -> Poll<Vec<usize>> {
        let mut wheel = lock(&self.wheel);
        let mut due = Vec::new();
        loop {
            match wheel.timers.poll_expired(cx) {
                Poll::Ready(Some(expired)) => match expired.into_inner() {
                    Timer::Lease(slot) => due.push(slot),
                    Timer::Tick => wheel.tick(&mut due),
                },
                _ if !due.is_empty() => return Poll::Ready(due),
                // An empty wheel keeps the waker: the next insertion wakes this task.
                _ => return Poll::Pending,
            }
        }
    }

    /// Ends what is over, and groups what is to be renewed by shard and lease.
    fn sort(&self, due: Vec<usize>, services: &Services) -> HashMap<(u32, u128), Vec<usize>> {
        let now = clock::now();
        let mut batches: HashMap<_, Vec<_>> = HashMap::new();
        let mut lost = Vec::new();
        let mut wheel = lock(&self.wheel);
        let wheel = &mut *wheel;
        for slot in due {
            let Some(entry) = wheel.leases.get_mut(slot) else {
                continue;
            };
            let over = now >= entry.lease.valid_until();
            if over || !entry.lease.is_active() {
                lost.push((wheel.leases.remove(slot), over));
                continue;
            }
            // From here on the timer guards the deadline, until the answer sets it anew.
            entry.timer = wheel
                .timers
                .insert_at(Timer::Lease(slot), clock::timer(entry.lease.valid_until()));
            if !entry.in_flight && entry.renew_at.is_some_and(|at| at <= now) {
                entry.in_flight = true;
                let lease_ms = renewal_lease(&entry.lease, now, services).as_millis();
                batches
                    .entry((services.backend.shard(&entry.lease.target), lease_ms))
                    .or_default()
                    .push(slot);
            } else if let Some(at) = entry.renew_at.filter(|_| !entry.in_flight) {
                wheel.timers.reset_at(
                    &entry.timer,
                    clock::timer(at.min(entry.lease.valid_until())),
                );
            }
        }
        for (entry, over) in lost {
            if over {
                entry.report_expiry();
            }
        }
        batches
    }

    async fn renew(&self, services: &Services, slots: Vec<usize>, lease_ms: u128) {
        let lease = Duration::from_millis(u64::try_from(lease_ms).unwrap_or(u64::MAX));
        let sent = clock::now();
        let (mut leases, mut requests, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let mut until = sent + services.call_timeout();
        for slot in slots {
            let Some(state) = lock(&self.wheel)
                .leases
                .get(slot)
                .map(|entry| Arc::clone(&entry.lease))
            else {
                continue;
            };
            until = until.min(state.valid_until());
            requests.push(ExtendRequest {
                target: state.target.clone(),
                owner: state.owner.clone(),
                lease,
            });
            leases.push(state);
            kept.push(slot);
        }
        if requests.is_empty() {
            return;
        }
        // Even when the deadline is near, the answer gets a moment to arrive: a lease saved late is saved.
        let deadline = clock::timer(until.max(sent + Duration::from_millis(5)));
        let answers = services.backend.extend(&requests, deadline).await;
        let valid_until = services.settings.margin.valid_until(sent, lease);
        for ((slot, state), answer) in kept.into_iter().zip(leases).zip(answers) {
            self.renewed(slot, &state, answer, valid_until);
        }
    }

    fn renewed(
        &self,
        slot: usize,
        state: &Arc<LeaseState>,
        answer: Result<ExtendOutcome, crate::backend_error::BackendError>,
        valid_until: Instant,
    ) {
        let mut wheel = lock(&self.wheel);
        let wheel = &mut *wheel;
        let Some(entry) = wheel
            .leases
            .get_mut(slot)
            .filter(|entry| Arc::ptr_eq(&entry.lease, state))
        else {
            return; // released while the renewal was under way
        };
        entry.in_flight = false;
        let now = clock::now();
        let lost = match answer {
            Ok(ExtendOutcome::Extended) => {
                (entry.failures, entry.detail) = (0, None);
                state.extended(state.lease(), valid_until);
                entry.renew_at = Some(renewal(now, state.lease()));
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
            let entry = wheel.leases.remove(slot);
            wheel.timers.try_remove(&entry.timer);
            // A hold that is being released is expected to be gone.
            if entry.lease.is_active() {
                tracing::warn!(lock = %state.target, %cause, "lock lost");
                entry.lease.end(cause);
            }
            return;
        }
        let due = next(state, entry.renew_at);
        wheel.timers.reset_at(&entry.timer, clock::timer(due));
    }
}

impl Wheel {
    /// Looks for leases that ran out while the machine was asleep; their timers did not see it.
    fn tick(&mut self, due: &mut Vec<usize>) {
        let suspended = clock::suspended();
        if suspended > self.suspended {
            self.suspended = suspended;
            let wheel = &mut *self;
            due.extend(wheel.leases.iter().map(|(slot, _)| slot));
            for (_, entry) in &wheel.leases {
                wheel.timers.try_remove(&entry.timer);
            }
        }
        self.ticking = !self.leases.is_empty();
        if self.ticking {
            self.timers.insert(Timer::Tick, TICK);
        }
    }
}

impl Entry {
    fn report_expiry(self) {
        if let (Some(detail), false) = (self.detail, self.lease.lost().is_some())
            && self
                .lease
                .hold_until
                .is_none_or(|end| end > self.lease.valid_until())
            {
                self.lease.end(LostCause::Unreachable { detail });
            }
        self.lease.expire();
        tracing::warn!(lock = %self.lease.target, cause = ?self.lease.lost(), "lock lost");
    }
}

/// When to renew a lease that was confirmed just now.
fn renewal(now: Instant, lease: Duration) -> Instant {
    let period = lease / RENEWALS_PER_LEASE;
    let grid = (period / BATCHES_PER_PERIOD).max(Duration::from_millis(1));
    let at = now + period;
    // Any fixed origin will do for the grid.
    let origin = *ORIGIN.get_or_init(Instant::now);
    let past = at.saturating_duration_since(origin).as_nanos() % grid.as_nanos();
    at - Duration::from_nanos(u64::try_from(past).unwrap_or(0))
}

static ORIGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();

/// The next instant at which something must be done for a lease.
fn next(lease: &LeaseState, renew_at: Option<Instant>) -> Instant {
    let valid_until = lease.valid_until();
    renew_at.map_or(valid_until, |at| at.min(valid_until))
}

/// The lease to ask for: the usual one, but not longer than the maximum hold time needs.
fn renewal_lease(lease: &LeaseState, now: Instant, services: &Services) -> Duration {
    let usual = lease.lease();
    let Some(end) = lease.hold_until else {
        return usual;
    };
    let needed = end.saturating_duration_since(now) + services.settings.margin.of(usual);
    // Rounded up to the grid of batches, so that neighbours still share one.
    let needed = Duration::from_millis(u64::try_from(needed.as_millis() + 1).unwrap_or(u64::MAX));
    usual.min(needed)
}
