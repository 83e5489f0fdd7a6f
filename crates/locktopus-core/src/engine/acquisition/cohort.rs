//! The cohort: tasks of one process that want the same lock pass it to each other without asking the backend.
//!
//! It sits above [`LockBackend`](crate::LockBackend), so every backend has it. For each lock that is wanted by somebody
//! there is a [`LocalQueue`](super::local_queue::LocalQueue) in this process, with one FIFO queue of [slots](super::slot::Slot). Something in it belongs to exactly one member:
//!
//! * **The way to the backend.** The first to come leads: it asks the backend, for all. There is one network
//!   waiter for each process and lock. If it gives up, the next one leads, under the same owner id and with the same
//!   place in the backend's queue if it asks for the same.
//! * **The lease.** The leader is granted one [`Lease`], with a
//!   [`Passing`](super::passing::Passing): one owner id at the backend, one entry in the watchdog,
//!   and a block of fencing tokens. A release passes it to the first waiter, if it may.
//!
//! Rules. They do inside a process what `docs/adr/0012-direct-hand-off.md` does between processes:
//!
//! 1. Each member has a token of its own from the block `[first, first + turns)`. One shared token could not tell
//!    a late write of one member from its successor's.
//! 2. A lease is passed on only while the time budget lasts (first), turns are left (second), it is active, and enough of
//!    its validity is left for what the next one asked. It is passed only to those who asked for the same lease, renewed
//!    or not: nobody's lock lasts longer after a crash than it wanted.
//! 3. Slots change by compare-and-set; whoever takes a turn out of a slot owns it. A dropped future passes it on.
//! 4. A turn that is not fetched for [`PATIENCE`] is revoked and passed on. A leader that shows no life for that long, or
//!    for longer than it said, is deposed. The watchdog keeps the time: no task and no timer for each lock, and none at
//!    all while nobody waits. Whoever hands something over sees to it that somebody looks in time.
//! 5. Validity is inherited. Only an answer of the backend extends it.
//! 6. If the lease is lost, the member that holds it is told, and all others go back to the backend under a new owner id.
//! 7. When the budget is spent the lease goes back to the backend, which hands it to waiters of other processes first;
//!    the next local waiter leads, at the tail of the backend's queue.
//! 8. If the lock was asked for with lease caching and nobody waits, the local queue keeps the lease for a moment, for whoever
//!    comes next, under rules 1, 2 and 5. It goes back as soon as the backend says that somebody else wants it: see
//!    [`kept_lease`](super::kept_lease).
//! 9. Re-entry belongs to guards and owner handles; a successor is not its predecessor. A ticket, or an id shared
//!    with a reading half, takes the lease out of the local queue.
//!
//! Not served: readers and permits, which several can hold; writers of a read-write lock, because readers of the same
//! process that came first would be overtaken, and because a writer's id may also be held for reading; fair locks, whose
//! waiters keep strict order across processes and so must each have a place at the backend; mutexes laid out for other
//! libraries, and waiters that poll, which ask the backend themselves.
//!
//! One attempt (`try_acquire`) never waits in a local queue. Where a member holds the lock, the answer is known; where one
//! is on the way, the backend is asked beside it.

use std::borrow::Borrow;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::{LockTarget, lock};
use tokio::time::Instant;

use super::hand_off::{Leavings, Next};
use super::local_progress::Told;
use super::local_queue::{Arrival, Glance, LocalQueue};
use super::plan::{Plan, least_validity};
use crate::engine::error::{LockError, LostCause};
use crate::engine::holding::lease::Lease;
use crate::engine::holding::reaper::PendingRelease;
use crate::engine::holding::services::Services;
use crate::engine::holding::watchdog::ScheduledCheck;
use crate::engine::settings::WaitStrategy;
use crate::engine::wait_progress::Reporter;

/// How long a turn waits to be fetched before it is passed on. A task that is ready usually runs within
/// microseconds; one that does not for this long would keep everybody waiting.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);

/// Whether waiters for this lock stand in a local queue of this process.
pub(crate) fn serves(services: &Services, plan: &Plan) -> bool {
    plan.target.kind().waits_in_cohort()
        && services.settings.cohort.turns > 1
        && !matches!(plan.strategy, WaitStrategy::Poll { .. })
}

/// Who waits in a slot, and what the lease must be like.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(super) lease: Duration,
    pub(super) renewed: bool,
    pub(super) arrived: Instant,
    /// Why it was dismissed.
    pub(super) verdict: Mutex<Option<Box<LockError>>>,
    /// Who wants to know how the wait goes on, while it does.
    pub(super) progress: Mutex<Option<Reporter>>,
}

impl Asker {
    fn new(plan: &Plan, arrived: Instant) -> Self {
        Self {
            lease: plan.lease,
            renewed: plan.renewed,
            arrived,
            verdict: Mutex::new(None),
            progress: Mutex::new(plan.progress.clone()),
        }
    }

    pub(super) fn least_validity(&self) -> Duration {
        least_validity(self.lease, self.renewed)
    }
}

/// All local queues of one `Locktopus`. Arriving and tidying away happen under one lock, so nobody joins a local queue that is gone.
#[derive(Debug, Default)]
pub(crate) struct Cohorts {
    registry: Mutex<Registry>,
}

#[derive(Debug, Default)]
struct Registry {
    /// Looked up four times for each acquisition. The hash is seeded anew in every process.
    cohorts: HashSet<ByTarget, foldhash::fast::RandomState>,
    closed: bool,
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

/// The local queue of one lock.
#[derive(Debug)]
pub(crate) struct Cohort {
    pub(super) target: LockTarget,
    pub(super) queue: LocalQueue,
    /// What the leader heard last. Boxed: most locks are had at once, and nothing is heard.
    pub(super) told: Mutex<Option<Box<Told>>>,
    /// How many of those who wait watch how that goes on.
    pub(super) watched: AtomicUsize,
    /// Where it is found while anybody is in it.
    cohorts: Weak<Cohorts>,
}

impl Cohorts {
    /// Goes to the local queue for this lock. With the instant for which a kept lease was judged, if there was one.
    pub(super) fn arrive(
        self: &Arc<Self>,
        plan: &Plan,
        started: Instant,
    ) -> Option<(Arc<Cohort>, Arrival, Option<BootInstant>)> {
        let now = OnceCell::new();
        let may =
            |lease: &Lease, asker: &Asker| lease.may_serve(asker, *now.get_or_init(clock::now));
        let mut registry = lock(&self.registry);
        if registry.closed {
            return None;
        }
        let cohort = match registry.cohorts.get(&plan.target) {
            Some(ByTarget(cohort)) => Arc::clone(cohort),
            None => {
                let target = plan.target.clone();
                let cohort = Arc::new(Cohort {
                    target,
                    queue: LocalQueue::new(),
                    told: Mutex::default(),
                    watched: AtomicUsize::new(0),
                    cohorts: Arc::downgrade(self),
                });
                registry.cohorts.insert(ByTarget(Arc::clone(&cohort)));
                cohort
            }
        };
        let asker = || Asker::new(plan, started);
        let arrival = cohort.queue.arrive(asker, clock::now, may);
        Some((cohort, arrival, now.into_inner()))
    }

    pub(super) fn glance(&self, target: &LockTarget) -> Glance {
        let registry = lock(&self.registry);
        let cohort = registry.cohorts.get(target);
        cohort.map_or(Glance::Empty, |ByTarget(cohort)| cohort.queue.glance())
    }

    /// Removes a cohort that has no member.
    fn tidy(&self, cohort: &Arc<Cohort>) {
        let mut registry = lock(&self.registry);
        let present = registry.cohorts.get(&cohort.target);
        if present.is_some_and(|ByTarget(present)| Arc::ptr_eq(present, cohort))
            && cohort.queue.is_empty()
        {
            registry.cohorts.remove(&cohort.target);
        }
    }

    /// Ends every wait: the `Locktopus` was shut down.
    pub(crate) fn close(&self) {
        let cohorts: Vec<_> = {
            let mut registry = lock(&self.registry);
            registry.closed = true;
            registry
                .cohorts
                .drain()
                .map(|ByTarget(cohort)| cohort)
                .collect()
        };
        for slot in cohorts.iter().flat_map(|cohort| cohort.queue.close()) {
            slot.wake();
        }
    }
}

impl ScheduledCheck for Cohort {
    fn check(self: Arc<Self>, services: &Arc<Services>, now: BootInstant) {
        let may = |lease: &Lease, asker: &Asker| lease.may_serve(asker, now);
        let found = self.queue.check_members(now, may);
        self.settle(services, found);
        self.tell_of_holder(now);
    }
}

impl Cohort {
    /// Removes the cohort from the registry once it has no member.
    pub(super) fn tidy(self: &Arc<Self>) {
        if let Some(cohorts) = self.cohorts.upgrade() {
            cohorts.tidy(self);
        }
    }

    /// Asks the watchdog for a look at this time, if one is needed.
    pub(super) fn schedule_check(self: &Arc<Self>, services: &Services, at: Option<BootInstant>) {
        if let Some(at) = at {
            let cohort: Weak<Self> = Arc::downgrade(self);
            services.watchdog.schedule_check(cohort, at);
        }
    }

    /// Wakes a member that was handed something.
    pub(super) fn call(self: &Arc<Self>, services: &Services, next: Next) {
        self.schedule_check(services, next.look_at);
        next.slot.wake();
    }

    /// Does what must be done after something was taken away from a member.
    pub(super) fn settle(self: &Arc<Self>, services: &Arc<Services>, left: Leavings) {
        self.schedule_check(services, left.look_at);
        for slot in &left.wake {
            slot.wake();
        }
        // What is owed then goes to the reaper.
        drop(
            left.lease
                .and_then(|lease| lease.close(services, LostCause::Released)),
        );
        if let Some(state) = left.state {
            state.give_up(services, &self.target);
        }
        if let Some((owner, lasts)) = left.stalled {
            tracing::debug!(lock = %self.target, "the task that asks for all does not run; another one asks");
            services.reap(PendingRelease {
                target: self.target.clone(),
                owner,
                permits: 1,
                until: clock::now() + lasts,
                late_attempt: true,
                retention: services.settings.token_retention,
                linger_until: None,
                sought: None,
                last: true,
            });
        }
        self.tidy();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use locktopus_contract::lock;
    use tokio::time::{Instant, sleep};

    use super::Cohort;
    use crate::Locktopus;
    use crate::engine::acquisition::from_backend;
    use crate::engine::acquisition::plan::Wait;
    use crate::engine::acquisition::slot::Slot;
    use crate::engine::holding::lease::Lease;
    use crate::engine::holding::turn::Turn;
    use crate::engine::observe::Hold;
    use crate::test_backend::{TestBackend, sleep_machine};

    #[tokio::test(start_paused = true)]
    async fn a_waiter_needs_less_than_a_kibibyte() {
        let locks = Locktopus::builder(TestBackend::new()).build().unwrap();
        let future = size_of_val(&locks.lock("any").acquire());
        let slot = size_of::<Slot>() + 2 * size_of::<usize>() + size_of::<Arc<Slot>>();
        assert!(future + slot <= 1024, "{future} and {slot} bytes");
    }

    /// With the counters of their reference counts; without the texts of the name and the owner id, which are as long as
    /// they are, and without spans and metrics.
    #[test]
    fn a_held_lock_needs_little_more_than_half_a_kibibyte() {
        let turn = size_of::<Turn>();
        let lease = size_of::<Lease>();
        let queue = size_of::<Cohort>();
        let observed = size_of::<Hold>() - size_of::<Mutex<Option<()>>>();
        let counters = 3 * 2 * size_of::<usize>();
        let all = turn + lease + queue + counters - observed;
        assert!(all <= 672, "{turn}, {lease} and {queue} bytes");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_at_the_backend_needs_less_than_a_kibibyte_more() {
        let locks = Locktopus::builder(TestBackend::new()).build().unwrap();
        let plan = locks.lock("any").plan_for(Wait::Forever).unwrap();
        let future = from_backend(locks.engine(), &plan, Instant::now(), None);
        // With spans and metrics.
        assert!(size_of_val(&future) <= 992, "{}", size_of_val(&future));
    }

    #[tokio::test(start_paused = true)]
    async fn a_local_queue_goes_with_its_last_member() {
        let locks = Locktopus::builder(TestBackend::new()).build().unwrap();
        let guard = locks.lock("any").acquire().await.unwrap();
        drop(guard);
        let registry = || lock(&locks.engine().cohorts.registry).cohorts.len();
        for round in 0..100 {
            let name = format!("lock {round}");
            let guard = locks.lock(&name).acquire().await.unwrap();
            let mut waiting = Box::pin(locks.lock(&name).acquire());
            assert!(waiting.as_mut().now_or_never().is_none());
            assert_eq!(registry(), 1);
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
            assert_eq!(registry(), 0, "round {round}");
        }
    }

    /// A machine sleeps while its tasks wait for a lock of another one. Its timers do not count that time, its leases do.
    #[tokio::test(start_paused = true)]
    async fn a_machine_that_slept_deposes_no_leader_for_it_twice() {
        let hour = Duration::from_secs(3600);
        let store = TestBackend::new();
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
