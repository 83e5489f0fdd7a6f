//! Every interleaving of concurrent events of a turn, with loom.
//!
//! The queue of a cohort is compiled here under a loom mutex, without the rest of the crate. Run it
//! alone with `proof/run tests --test interleavings`.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "not every method of the modules under test plays a part"
)]

#[path = "../../../crates/locktopus-core/src/engine/acquisition/cohort_queue.rs"]
mod cohort_queue;
#[path = "interleavings/shutdown.rs"]
mod shutdown;
#[path = "../../../crates/locktopus-core/src/engine/acquisition/stage.rs"]
mod stage;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cohort_queue::CohortQueue;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Mutex, MutexGuard};
use loom::thread::{JoinHandle, spawn};
use stage::{Arrival, Baton, Effects, Step, Waiter};
use tokio::time::Instant as BootInstant;

/// As in the crate: a waiter must fetch its turn within this time.
const FETCH_TIMEOUT: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct LockError;

#[derive(Debug)]
struct ProgressReporter;

#[derive(Debug)]
struct LeaderAnswer;

#[derive(Debug, Clone)]
struct Cleanup;

#[derive(Debug)]
struct AcquisitionState;

/// A lease and its user: no turn may start while another one lasts.
#[derive(Debug)]
struct BackendLease {
    over: AtomicBool,
    /// Whether it may be kept without a holder.
    keeps: AtomicBool,
    holders: AtomicUsize,
    given_back: AtomicUsize,
}

impl BackendLease {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            over: AtomicBool::new(false),
            keeps: AtomicBool::new(false),
            holders: AtomicUsize::new(0),
            given_back: AtomicUsize::new(0),
        })
    }

    fn is_active(&self) -> bool {
        !self.over.load(Ordering::SeqCst)
    }

    fn is_used_up(&self) -> bool {
        false
    }

    fn kept() -> Arc<Self> {
        let lease = Self::new();
        lease.keeps.store(true, Ordering::SeqCst);
        lease
    }

    fn may_serve(&self, _: &Waiter, _: BootInstant) -> bool {
        self.is_active()
    }

    fn may_keep(&self, _: impl Fn() -> BootInstant) -> bool {
        self.keeps.load(Ordering::SeqCst) && self.is_active()
    }

    fn hold(&self) {
        assert_eq!(
            self.holders.fetch_add(1, Ordering::SeqCst),
            0,
            "two holders"
        );
    }

    fn was_given_back(&self) -> usize {
        self.given_back.load(Ordering::SeqCst)
    }
}

/// Trying all schedules of three threads takes minutes. With up to three preemptions it takes a
/// second, and every mutant so far needed fewer.
fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(check);
}

/// As in the crate: the queue under its mutex, and one place that carries out effects.
struct Cohort(Mutex<CohortQueue>);

impl Cohort {
    /// One member holds the lease, and `waiting` members wait.
    fn held(lease: &Arc<BackendLease>, waiting: usize) -> (Arc<Self>, Vec<u64>) {
        let cohort = Arc::new(Self(Mutex::new(CohortQueue::default())));
        let leader = cohort.arrive();
        assert!(matches!(leader.step, Some(Step::Lead { .. })), "not alone");
        assert!(cohort.queue().won(leader.number, lease));
        lease.hold();
        let waiting = (0..waiting).map(|_| cohort.arrive_to_wait()).collect();
        (cohort, waiting)
    }

    fn queue(&self) -> MutexGuard<'_, CohortQueue> {
        self.0.lock().unwrap()
    }

    fn carry_out(&self, effects: Effects) {
        let wake = effects.wake.map(|waiter| *waiter);
        let waiters = wake.into_iter().chain(effects.dismiss);
        waiters
            .filter_map(|waiter| waiter.waker)
            .for_each(Waker::wake);
        if let Some(Baton::Lease(lease)) = effects.give_back {
            lease.given_back.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn arrive(&self) -> Arrival {
        let waiter = || Waiter {
            lease: Duration::ZERO,
            renewed: true,
            arrived: BootInstant::now(),
            progress: None,
            waker: None,
        };
        self.queue().arrive(waiter, true, BootInstant::now)
    }

    fn arrive_to_wait(&self) -> u64 {
        let arrival = self.arrive();
        assert!(arrival.step.is_none(), "{arrival:?}");
        arrival.number
    }

    /// The holder is done.
    fn pass(&self, lease: &Arc<BackendLease>) {
        lease.holders.fetch_sub(1, Ordering::SeqCst);
        let effects = self.queue().pass(lease, BootInstant::now);
        self.carry_out(effects);
    }

    fn poll(&self, number: u64, cx: &Context<'_>) -> Poll<Step> {
        let mut waker = Some(cx.waker().clone());
        let step = self.queue().poll(number, &mut waker);
        step.map_or(Poll::Pending, Poll::Ready)
    }

    /// Waits without a limit. After a lost wake-up, loom reports a deadlock.
    fn wait(&self, number: u64) -> Step {
        loom::future::block_on(poll_fn(|cx| self.poll(number, cx)))
    }

    /// A member takes its next step and completes it; true if it held the lock.
    fn go(&self, number: u64, step: Step) -> bool {
        match step {
            Step::Hold(lease, _) => {
                lease.hold();
                self.pass(&lease);
                true
            }
            Step::Lead { kept, .. } => {
                kept.inspect(|kept| {
                    kept.given_back.fetch_add(1, Ordering::SeqCst);
                });
                self.drop_future(number);
                false
            }
            _ => false,
        }
    }

    /// Polls once, without waiting; true if its wait was over.
    fn try_once(&self, number: u64) -> bool {
        match self.poll(number, &Context::from_waker(Waker::noop())) {
            Poll::Ready(step) => {
                self.go(number, step);
                true
            }
            Poll::Pending => false,
        }
    }

    /// The future of a member is dropped.
    fn drop_future(&self, number: u64) {
        let waiter = self.queue().withdraw(number);
        if waiter.is_none() {
            let effects = self.queue().leave(number, None, BootInstant::now());
            self.carry_out(effects);
        }
    }

    /// A member comes, takes its turn, and goes; true if it held the lock.
    fn visit(&self) -> bool {
        let arrival = self.arrive();
        if let Some(step) = arrival.step {
            return self.go(arrival.number, step);
        }
        let took = self.try_once(arrival.number);
        if !took {
            self.drop_future(arrival.number);
        }
        took
    }

    /// The lease is found lost, wherever it is.
    fn lose(&self, lease: &Arc<BackendLease>) {
        lease.over.store(true, Ordering::SeqCst);
        let effects = self.queue().remove(lease, BootInstant::now());
        self.carry_out(effects);
    }

    /// The time of a kept lease is over: it must be given back, wherever it is at that moment.
    fn end_keeping(&self, lease: &Arc<BackendLease>) {
        lease.keeps.store(false, Ordering::SeqCst);
        let effects = self.queue().let_go(lease);
        self.carry_out(effects);
    }

    fn is_empty(&self) -> bool {
        self.queue().is_empty()
    }
}

/// Runs something on another thread.
fn at_once<T: 'static>(
    cohort: &Arc<Cohort>,
    work: impl FnOnce(&Cohort) -> T + 'static,
) -> JoinHandle<T> {
    let cohort = Arc::clone(cohort);
    spawn(move || work(&cohort))
}

#[test]
fn a_dropped_future_loses_no_lease() {
    model(|| {
        let lease = BackendLease::new();
        let (cohort, waiting) = Cohort::held(&lease, 2);
        let (first, second) = (waiting[0], waiting[1]);
        let drops = at_once(&cohort, move |cohort| cohort.drop_future(first));
        let other = at_once(&cohort, move |cohort| {
            if !cohort.try_once(second) {
                cohort.drop_future(second);
            }
        });
        cohort.pass(&lease);
        drops.join().unwrap();
        other.join().unwrap();
        assert_eq!(lease.was_given_back(), 1);
        assert!(cohort.is_empty());
    });
}

#[test]
fn a_patrol_and_the_waiter_do_not_both_have_the_turn() {
    loom::model(|| {
        let lease = BackendLease::new();
        let (cohort, waiting) = Cohort::held(&lease, 1);
        cohort.pass(&lease);
        let check = at_once(&cohort, |cohort| {
            let effects = cohort.queue().check(BootInstant::now() + FETCH_TIMEOUT);
            cohort.carry_out(effects);
        });
        let took = cohort.try_once(waiting[0]);
        check.join().unwrap();
        assert!(took, "it had a turn, or was told that it was revoked");
        assert_eq!(lease.was_given_back(), 1);
        assert!(cohort.is_empty());
    });
}

/// The watchdog finds the lease lost during its release: no member may continue with it.
#[test]
fn a_lost_lease_is_not_passed_on_whenever_it_is_lost() {
    model(|| {
        let lease = BackendLease::new();
        let (cohort, waiting) = Cohort::held(&lease, 1);
        let (waiter, of_waiter) = (waiting[0], Arc::clone(&lease));
        let watchdog = at_once(&cohort, {
            let lease = Arc::clone(&lease);
            move |cohort| cohort.lose(&lease)
        });
        let waits = at_once(&cohort, move |cohort| match cohort.wait(waiter) {
            // It may hold the lease only if the loss was not known by then; the loss takes it away
            // afterwards.
            Step::Hold(lease, _) => assert!(Arc::ptr_eq(&lease, &of_waiter)),
            Step::Lead { .. } => cohort.drop_future(waiter),
            other => panic!("{other:?}"),
        });
        cohort.pass(&lease);
        watchdog.join().unwrap();
        waits.join().unwrap();
        assert!(cohort.is_empty(), "a lost lease is still held");
    });
}

#[test]
fn a_kept_lease_goes_back_once_whenever_keeping_ends() {
    model(|| {
        let lease = BackendLease::kept();
        let (cohort, _) = Cohort::held(&lease, 0);
        let keeper = at_once(&cohort, {
            let lease = Arc::clone(&lease);
            move |cohort| cohort.end_keeping(&lease)
        });
        let newcomer = at_once(&cohort, Cohort::visit);
        cohort.pass(&lease);
        keeper.join().unwrap();
        newcomer.join().unwrap();
        assert_eq!(lease.was_given_back(), 1);
        assert!(cohort.is_empty(), "something is left in the line");
    });
}

#[test]
fn a_kept_lease_is_for_one_newcomer() {
    model(|| {
        let lease = BackendLease::kept();
        let (cohort, _) = Cohort::held(&lease, 0);
        cohort.pass(&lease);
        for visit in [(); 2].map(|()| at_once(&cohort, Cohort::visit)) {
            visit.join().unwrap();
        }
        assert_eq!(lease.was_given_back(), 0);
        cohort.end_keeping(&lease);
        assert_eq!(lease.was_given_back(), 1);
        assert!(cohort.is_empty(), "something is left in the line");
    });
}

#[test]
fn a_lost_lease_is_not_kept_whenever_it_is_lost() {
    model(|| {
        let lease = BackendLease::kept();
        let (cohort, _) = Cohort::held(&lease, 0);
        let watchdog = at_once(&cohort, {
            let lease = Arc::clone(&lease);
            move |cohort| cohort.lose(&lease)
        });
        cohort.pass(&lease);
        watchdog.join().unwrap();
        assert!(cohort.is_empty(), "a lost lease is still kept");
        assert!(!cohort.visit(), "a lost lease was handed out");
    });
}

/// A member that comes while a lease is being passed on or kept gets it, and no other does.
#[test]
fn a_dropped_future_keeps_its_lease_for_others() {
    model(|| {
        let lease = BackendLease::kept();
        let (cohort, waiting) = Cohort::held(&lease, 1);
        let waiter = waiting[0];
        let drops = at_once(&cohort, move |cohort| cohort.drop_future(waiter));
        let newcomer = at_once(&cohort, Cohort::visit);
        cohort.pass(&lease);
        drops.join().unwrap();
        newcomer.join().unwrap();
        cohort.end_keeping(&lease);
        assert_eq!(lease.was_given_back(), 1);
        assert!(cohort.is_empty(), "something is left in the line");
    });
}

#[test]
fn a_deposed_leader_does_not_win() {
    loom::model(|| {
        let lease = BackendLease::new();
        let cohort = Arc::new(Cohort(Mutex::new(CohortQueue::default())));
        let leader = cohort.arrive().number;
        let waiter = cohort.arrive_to_wait();
        let now = BootInstant::now();
        let lives = cohort.queue().leader_lives(leader, now, Cleanup);
        cohort.carry_out(lives.expect("it leads"));
        let check = at_once(&cohort, |cohort| {
            let effects = cohort.queue().check(BootInstant::now());
            let deposed = effects.stalled.is_some();
            cohort.carry_out(effects);
            deposed
        });
        let won = cohort.queue().won(leader, &lease);
        let deposed = check.join().unwrap();
        assert!(won != deposed, "won {won}, deposed {deposed}");
        if won {
            lease.hold();
            cohort.pass(&lease);
        }
        assert!(cohort.try_once(waiter));
        assert!(cohort.is_empty());
    });
}
