//! The cohort: tasks of one process that want the same lock pass it to each other without asking
//! the backend.
//!
//! It sits above [`LockBackend`](crate::LockBackend), so every backend has it. For each lock that
//! tasks of this process want, there is one [`Cohort`] with one
//! [queue](super::cohort_queue::CohortQueue). Exactly one member has what the cohort has:
//!
//! * **The lead.** The first member leads: it asks the backend, for all. So each process has one
//!   network waiter for a lock. If it gives up, the next one leads, under the same owner id and
//!   with the same place in the backend's queue if it asks for the same.
//! * **The lease.** The backend grants the leader one
//!   [`BackendLease`](crate::engine::holding::lease::BackendLease), with a
//!   [`Passing`](super::passing::Passing): one owner id at the backend, one entry in the watchdog,
//!   and a block of fencing tokens. A release passes it to the first waiter, if it may.
//!
//! Rules. They do inside a process what `docs/adr/0012-direct-hand-off.md` does between processes:
//!
//! 1. Each member has a token of its own from the block `[first, first + turns)`. One shared token
//!    could not tell a late write of one member from its successor's.
//! 2. A lease is passed on only while the time budget lasts (first), turns are left (second), it is
//!    active, and enough of its validity is left for what the next one asked. Only members that
//!    asked for the same lease, renewed or not, get it: after a crash no lock lasts longer than its
//!    holder wanted.
//! 3. The queue changes under one mutex. A dropped future passes on what it had.
//! 4. A turn that is not fetched for [`FETCH_TIMEOUT`] is revoked and passed on. A leader that
//!    shows no life for that long, or for longer than it said, is deposed. The watchdog keeps the
//!    time: a lock has no task and no timer, and without waiters no check. Each hand-off schedules
//!    one.
//! 5. Validity is inherited. Only an answer of the backend extends it.
//! 6. If the lease is lost, its holder hears of it, and all others go back to the backend under a
//!    new owner id.
//! 7. When the budget is spent the lease goes back to the backend, which hands it to waiters of
//!    other processes first. The next local waiter leads, at the tail of the backend's queue.
//! 8. With lease caching and without waiters, the cohort keeps the lease for a moment, for the next
//!    member, under rules 1, 2 and 5. It goes back as soon as the backend says that another process
//!    wants it: see [`kept_lease`](super::kept_lease).
//! 9. Re-entry belongs to guards and owner handles; a successor is not its predecessor. A ticket,
//!    or an id shared with a reading half, takes the lease out of the cohort.
//!
//! Not served:
//!
//! * readers and permits, which several can hold;
//! * writers of a read-write lock: they would overtake readers of the same process that came first,
//!   and a writer's id may also be held for reading;
//! * fair locks: their waiters keep strict order across processes, so each needs a place at the
//!   backend;
//! * mutexes laid out for other libraries, and waiters that poll: they ask the backend themselves.
//!
//! One attempt (`try_acquire`) never waits in a cohort. If a member holds the lock, the answer is
//! known. If one is on the way to the backend, the attempt asks the backend beside it.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Waker;
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::{LockTarget, lock};
use tokio::time::Instant;

use super::cohort_queue::CohortQueue;
use super::plan::{Plan, Wait};
use super::stage::{Arrival, Baton, Effects, Waiter};
use crate::engine::error::LostCause;
use crate::engine::holding::reaper::PendingRelease;
use crate::engine::holding::services::Services;
use crate::engine::holding::watchdog::ScheduledCheck;
use crate::engine::settings::WaitStrategy;

/// How long a turn waits to be fetched before it is passed on. A task that is ready usually runs
/// within microseconds; one that does not for this long would keep everybody waiting.
pub(super) const FETCH_TIMEOUT: Duration = Duration::from_millis(50);

/// Whether waiters for this lock form a cohort.
pub(crate) fn serves(services: &Services, plan: &Plan) -> bool {
    plan.target.kind().waits_in_cohort()
        && services.settings.cohort.turns > 1
        && !matches!(plan.strategy, WaitStrategy::Poll { .. })
}

/// All cohorts of one `Locktopus`. Members arrive and cohorts go under one mutex, so no member
/// joins a cohort that is gone.
#[derive(Debug)]
pub(crate) struct Cohorts {
    /// Looked up four times for each acquisition. The hash is seeded anew in every process. `None`
    /// after a shutdown.
    registry: Mutex<Option<HashSet<ByTarget, foldhash::fast::RandomState>>>,
}

impl Default for Cohorts {
    fn default() -> Self {
        let registry = Mutex::new(Some(HashSet::default()));
        Self { registry }
    }
}

/// A cohort, found by its lock.
#[derive(Debug)]
struct ByTarget(Arc<Cohort>);

impl Borrow<LockTarget> for ByTarget {
    fn borrow(&self) -> &LockTarget {
        &self.0.target
    }
}

impl PartialEq for ByTarget {
    fn eq(&self, other: &Self) -> bool {
        self.0.target == other.0.target
    }
}

impl Eq for ByTarget {}

impl Hash for ByTarget {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.target.hash(state);
    }
}

/// The tasks of this process that want one lock.
#[derive(Debug)]
pub(crate) struct Cohort {
    pub(super) target: LockTarget,
    queue: Mutex<CohortQueue>,
    /// Where it is found while anybody is in it.
    cohorts: Weak<Cohorts>,
}

impl Cohorts {
    /// Goes to the cohort of this lock; `None` after a shutdown.
    pub(super) fn arrive(
        self: &Arc<Self>,
        plan: &Plan,
        started: Instant,
    ) -> Option<(Arc<Cohort>, Arrival)> {
        let waiter = || Waiter {
            lease: plan.lease,
            renewed: plan.renewed,
            arrived: started,
            progress: plan.progress.clone(),
            waker: None,
        };
        let mut registry = lock(&self.registry);
        let cohort = match registry.as_ref()?.get(&plan.target) {
            Some(ByTarget(cohort)) => Arc::clone(cohort),
            None => {
                let cohort = Arc::new(Cohort {
                    target: plan.target.clone(),
                    queue: Mutex::default(),
                    cohorts: Arc::downgrade(self),
                });
                registry.as_mut()?.insert(ByTarget(Arc::clone(&cohort)));
                cohort
            }
        };
        let waits = plan.wait != Wait::Not;
        let arrival = cohort.queue().arrive(waiter, waits, clock::now);
        Some((cohort, arrival))
    }

    /// Removes a cohort that has no member.
    fn tidy(&self, cohort: &Arc<Cohort>) {
        if let Some(registry) = &mut *lock(&self.registry)
            && let Some(ByTarget(present)) = registry.get(&cohort.target)
            && Arc::ptr_eq(present, cohort)
            && cohort.queue().is_empty()
        {
            registry.remove(&cohort.target);
        }
    }

    /// Ends every wait: the `Locktopus` was shut down.
    pub(crate) fn close(&self, services: &Arc<Services>) {
        let cohorts = lock(&self.registry).take();
        for ByTarget(cohort) in cohorts.into_iter().flatten() {
            let effects = cohort.queue().close();
            cohort.carry_out(services, effects);
        }
    }
}

impl ScheduledCheck for Cohort {
    fn check(self: Arc<Self>, services: &Arc<Services>, now: BootInstant) {
        let effects = self.queue().check(now);
        self.carry_out(services, effects);
        if self.queue().in_use() {
            self.tell(now);
        }
    }
}

impl Cohort {
    pub(super) fn queue(&self) -> MutexGuard<'_, CohortQueue> {
        lock(&self.queue)
    }

    /// Does what a transition of the queue left to do.
    pub(super) fn carry_out(self: &Arc<Self>, services: &Arc<Services>, effects: Effects) {
        if let Some(at) = effects.check_at {
            let cohort: Weak<Self> = Arc::downgrade(self);
            services.watchdog.schedule_check(cohort, at);
        }
        match effects.give_back {
            // What is owed then goes to the reaper.
            Some(Baton::Lease(lease)) => drop(lease.close(services, LostCause::Released)),
            Some(Baton::Lead(Some(state))) => state.give_up(services),
            Some(Baton::Lead(None)) | None => {}
        }
        if let Some((owner, lasts, retention)) = effects.stalled.map(|stalled| *stalled) {
            tracing::debug!(lock = %self.target, "the task that asks for all does not run; another one asks");
            let mut pending = PendingRelease::new(self.target.clone(), owner, lasts, true);
            pending.release.token_retention = retention;
            services.reap(pending);
        }
        if effects.empty
            && let Some(cohorts) = self.cohorts.upgrade()
        {
            cohorts.tidy(self);
        }
        // Last: a waker is code of an executor, and may panic.
        let wake = effects.wake.map(|waiter| *waiter);
        for waiter in wake.into_iter().chain(effects.dismiss) {
            waiter.waker.into_iter().for_each(Waker::wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use locktopus_contract::lock;
    use tokio::time::{Instant, sleep};

    use super::Cohort;
    use crate::Locktopus;
    use crate::engine::acquisition::from_backend;
    use crate::engine::acquisition::plan::Wait;
    use crate::engine::acquisition::stage::Waiter;
    use crate::engine::holding::lease::BackendLease;
    use crate::engine::holding::turn::Turn;
    use crate::engine::observe::ObservedHold;
    use crate::test_backend::sleep_machine;
    use locktopus_memory::MemoryBackend;

    #[tokio::test(start_paused = true)]
    async fn a_waiter_needs_less_than_a_kibibyte() {
        let locks = Locktopus::builder(MemoryBackend::new()).build().unwrap();
        let future = size_of_val(&locks.lock("any").acquire());
        // With its place in line. Half of the places may be free.
        let waiter = size_of::<Waiter>() + 2 * size_of::<(u64, Box<Waiter>)>();
        assert!(future + waiter <= 1024, "{future} and {waiter} bytes");
    }

    /// With the counters of their reference counts; without the texts of the name and the owner id,
    /// which are as long as they are, and without spans and metrics.
    #[test]
    fn a_held_lock_needs_little_more_than_half_a_kibibyte() {
        let turn = size_of::<Turn>();
        let lease = size_of::<BackendLease>();
        let queue = size_of::<Cohort>();
        let observed = size_of::<ObservedHold>() - size_of::<Mutex<Option<()>>>();
        let counters = 3 * 2 * size_of::<usize>();
        let all = turn + lease + queue + counters - observed;
        assert!(all <= 680, "{turn}, {lease} and {queue} bytes");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_at_the_backend_needs_less_than_a_kibibyte_more() {
        let locks = Locktopus::builder(MemoryBackend::new()).build().unwrap();
        let plan = locks.lock("any").plan(Wait::Forever).unwrap();
        let future = from_backend(locks.services(), &plan, Instant::now(), None, None);
        // With spans and metrics.
        assert!(size_of_val(&future) <= 992, "{}", size_of_val(&future));
    }

    #[tokio::test(start_paused = true)]
    async fn a_local_queue_goes_with_its_last_member() {
        let locks = Locktopus::builder(MemoryBackend::new()).build().unwrap();
        let guard = locks.lock("any").acquire().await.unwrap();
        drop(guard);
        let registry = || {
            lock(&locks.services().cohorts.registry)
                .as_ref()
                .map(HashSet::len)
        };
        for round in 0..100 {
            let name = format!("lock {round}");
            let guard = locks.lock(&name).acquire().await.unwrap();
            let mut waiting = Box::pin(locks.lock(&name).acquire());
            assert!(waiting.as_mut().now_or_never().is_none());
            assert_eq!(registry(), Some(1));
            match round % 4 {
                0 => drop((waiting, guard)),
                1 => drop((guard, waiting)),
                2 => {
                    drop(waiting);
                    guard.release().await.unwrap();
                }
                _ => {
                    guard.release().await.unwrap();
                    waiting.await.unwrap().release().await.unwrap();
                }
            }
            assert_eq!(registry(), Some(0), "round {round}");
        }
    }

    /// A machine sleeps while its tasks wait for a lock of another one. Its timers do not count
    /// that time, its leases do.
    #[tokio::test(start_paused = true)]
    async fn a_machine_that_slept_deposes_no_leader_for_it_twice() {
        let hour = Duration::from_secs(3600);
        let store = MemoryBackend::new();
        let client = || Locktopus::builder(store.clone()).build().unwrap();
        let (locks, remote) = (client(), client());
        let held = remote.lock("a").renewed_lease(hour * 20).acquire();
        let held = held.await.unwrap();
        // Each gives the lock back by itself: in which order they get it is not what this is about.
        let waiting: Vec<_> = (0..3)
            .map(|_| locks.lock("a").acquire())
            .map(|asked| tokio::spawn(async { asked.await.unwrap().release().await.unwrap() }))
            .collect();
        sleep(Duration::from_secs(2)).await;
        sleep_machine(hour);
        let mut owners = HashSet::new();
        for _ in 0..500 {
            let state = remote.lock("a").inspect().await.unwrap();
            owners.extend(state.waiters.into_iter().map(|waiter| waiter.owner));
            sleep(Duration::from_millis(20)).await;
        }
        assert!(owners.len() <= 2, "{} leaders in ten seconds", owners.len());
        held.release().await.unwrap();
        for waiter in waiting {
            waiter.await.unwrap();
        }
    }
}
