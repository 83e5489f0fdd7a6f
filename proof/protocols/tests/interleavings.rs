//! Every interleaving of what can happen to a turn at the same time, by loom.
//!
//! The slots and the local queue of a cohort are compiled here against loom's atomics, mutexes and reference counts; the rest
//! of the crate is not involved. Run it alone with `proof/run tests --test interleavings`.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "not every method of the modules under test plays a part"
)]

#[path = "../../../crates/locktopus-core/src/engine/acquisition/hand_off.rs"]
mod hand_off;
#[path = "../../../crates/locktopus-core/src/engine/acquisition/local_queue.rs"]
mod local_queue;
#[path = "interleavings/shutdown.rs"]
mod shutdown;
#[path = "../../../crates/locktopus-core/src/engine/acquisition/slot.rs"]
mod slot;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU8, Ordering};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }
}

use std::future::poll_fn;
use std::time::Duration;

use hand_off::{Leavings, Next, Passed};
use local_queue::{Arrival, Begun, Glance, LocalQueue};
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use slot::{Slot, Turn, Turned};
use sync::Arc;
use tokio::time::Instant as BootInstant;

/// As in the crate: who is handed something has so long to fetch it.
const PATIENCE: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Asker;

#[derive(Debug, Clone)]
struct OwnerId;

#[derive(Debug)]
struct AcquisitionState;

/// A lease, and who has it: nobody may begin a turn while another one lasts.
#[derive(Debug)]
struct Lease {
    over: AtomicBool,
    /// May be kept while nobody holds it.
    keeps: AtomicBool,
    holders: AtomicUsize,
    given_back: AtomicUsize,
}

impl Lease {
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

    fn let_go(&self) {
        self.holders.fetch_sub(1, Ordering::SeqCst);
    }

    fn give_back(&self) {
        self.given_back.fetch_add(1, Ordering::SeqCst);
    }
}

/// Going through everything that three threads can do takes minutes. Up to three switches away from a thread that could
/// go on take a second, and every mutant that these models were tried with needs fewer.
fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(check);
}

fn may(lease: &Lease, _: &Asker) -> bool {
    lease.is_active()
}

/// A local queue in which one holds and so many wait.
fn held(lease: &Arc<Lease>, waiting: usize) -> (Arc<LocalQueue>, Vec<Arc<Slot>>) {
    let queue = LocalQueue::new();
    let Arrival::Leads { number, .. } = queue.arrive(|| Asker, BootInstant::now, may) else {
        panic!("not alone")
    };
    assert!(queue.won(number, lease));
    lease.hold();
    let slots = (0..waiting)
        .map(|_| match queue.arrive(|| Asker, BootInstant::now, may) {
            Arrival::Waits { slot, .. } => slot,
            other => panic!("{other:?}"),
        })
        .collect();
    (Arc::new(queue), slots)
}

fn call(next: &Next) {
    next.slot.wake();
}

/// The holder is done.
fn pass(queue: &LocalQueue, lease: &Arc<Lease>) {
    lease.let_go();
    match queue.pass(lease, BootInstant::now, may) {
        Passed::On(next) => call(&next),
        Passed::Kept => {}
        Passed::Over(next) => {
            lease.give_back();
            next.inspect(call);
        }
        Passed::NotHere => lease.give_back(),
    }
}

/// What a waiter does whose turn has come; true if it holds the lock.
fn begin(queue: &LocalQueue, slot: &Arc<Slot>) -> Option<Arc<Lease>> {
    match queue.begin(slot).expect("whoever takes a turn owns it") {
        Begun::Holds(lease, _) => {
            lease.hold();
            Some(lease)
        }
        Begun::Leads(number, _) => {
            leave(queue, number);
            None
        }
    }
}

fn leave(queue: &LocalQueue, number: u64) {
    if let Ok(next) = queue.leader_left(number, None, BootInstant::now()) {
        call(&next);
    }
}

/// The future of a waiter is dropped.
fn cancel(queue: &LocalQueue, slot: &Arc<Slot>) {
    if slot.cancel().is_none() {
        queue.forget_one();
        return;
    }
    settle(queue.hand_back(slot, BootInstant::now(), may));
}

fn settle(left: Leavings) {
    left.wake.iter().for_each(|next| next.wake());
    if let Some(lease) = left.lease {
        lease.give_back();
    }
}

/// Looks once, without waiting; true if the lock was taken and passed on.
fn try_once(queue: &LocalQueue, slot: &Arc<Slot>) -> bool {
    let waker = std::task::Waker::noop();
    let mut cx = std::task::Context::from_waker(waker);
    match slot.poll_turn(&mut cx) {
        std::task::Poll::Ready(Turned::Taken(_)) => {
            if let Some(lease) = begin(queue, slot) {
                pass(queue, &lease);
            }
            true
        }
        std::task::Poll::Ready(_) => true,
        std::task::Poll::Pending => false,
    }
}

#[test]
fn a_turn_belongs_to_whoever_takes_it_out_of_the_slot() {
    loom::model(|| {
        let slot = Arc::new(Slot::new(Asker));
        let owners = Arc::new(AtomicUsize::new(0));
        let own = |taken: bool, owners: &AtomicUsize| {
            if taken {
                owners.fetch_add(1, Ordering::SeqCst);
            }
        };
        let revoke = {
            let (slot, owners) = (Arc::clone(&slot), Arc::clone(&owners));
            loom::thread::spawn(move || {
                own(slot.revoke().is_some(), &owners);
            })
        };
        let wait = {
            let (slot, owners) = (Arc::clone(&slot), Arc::clone(&owners));
            loom::thread::spawn(move || own(slot.cancel().is_some(), &owners))
        };
        let given = slot.give(Turn::Lock);
        revoke.join().unwrap();
        wait.join().unwrap();
        // What was given and taken by neither is still there.
        own(slot.revoke().is_some(), &owners);
        assert_eq!(owners.load(Ordering::SeqCst), usize::from(given));
    });
}

#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let slot = Arc::new(Slot::new(Asker));
        let giver = {
            let slot = Arc::clone(&slot);
            loom::thread::spawn(move || {
                assert!(slot.give(Turn::Lock));
                slot.wake();
            })
        };
        let turned = loom::future::block_on(poll_fn(|cx| slot.poll_turn(cx)));
        assert_eq!(turned, Turned::Taken(Turn::Lock));
        giver.join().unwrap();
    });
}

#[test]
fn a_dropped_future_loses_no_lease() {
    model(|| {
        let lease = Lease::new();
        let (queue, slots) = held(&lease, 2);
        let drops = {
            let (queue, slot) = (Arc::clone(&queue), Arc::clone(&slots[0]));
            loom::thread::spawn(move || cancel(&queue, &slot))
        };
        let other = {
            let (queue, slot) = (Arc::clone(&queue), Arc::clone(&slots[1]));
            loom::thread::spawn(move || {
                if !try_once(&queue, &slot) {
                    cancel(&queue, &slot);
                }
            })
        };
        pass(&queue, &lease);
        drops.join().unwrap();
        other.join().unwrap();
        assert_eq!(lease.given_back.load(Ordering::SeqCst), 1);
        assert_eq!(queue.glance(), Glance::Empty);
    });
}

#[test]
fn a_patrol_and_the_waiter_do_not_both_have_the_turn() {
    loom::model(|| {
        let lease = Lease::new();
        let (queue, slots) = held(&lease, 1);
        pass(&queue, &lease);
        let check = {
            let queue = Arc::clone(&queue);
            loom::thread::spawn(move || {
                settle(queue.check_members(BootInstant::now() + PATIENCE, may));
            })
        };
        let took = try_once(&queue, &slots[0]);
        check.join().unwrap();
        assert!(took, "it had a turn, or was told that it was revoked");
        assert_eq!(lease.given_back.load(Ordering::SeqCst), 1);
        assert_eq!(queue.glance(), Glance::Empty);
    });
}

/// The watchdog finds the lease lost while it is being released: nobody may go on with it.
#[test]
fn a_lost_lease_is_not_passed_on_whenever_it_is_lost() {
    model(|| {
        let lease = Lease::new();
        let (queue, slots) = held(&lease, 1);
        let watchdog = {
            let (queue, lease) = (Arc::clone(&queue), Arc::clone(&lease));
            loom::thread::spawn(move || {
                lease.over.store(true, Ordering::SeqCst);
                if let Some(next) = queue.remove(&lease, BootInstant::now()) {
                    call(&next);
                }
            })
        };
        let waiter = {
            let (queue, slot) = (Arc::clone(&queue), Arc::clone(&slots[0]));
            loom::thread::spawn(move || {
                let turned = loom::future::block_on(poll_fn(|cx| slot.poll_turn(cx)));
                assert!(matches!(turned, Turned::Taken(_)));
                // Holding it is right only if it was not known to be lost by then; then the loss takes it away.
                match queue.begin(&slot).expect("its own turn") {
                    Begun::Holds(lease, _) => drop(lease),
                    Begun::Leads(number, _) => leave(&queue, number),
                }
            })
        };
        lease.let_go();
        match queue.pass(&lease, BootInstant::now, may) {
            Passed::On(next) => call(&next),
            Passed::Over(next) => {
                next.inspect(call);
            }
            Passed::Kept | Passed::NotHere => {}
        }
        watchdog.join().unwrap();
        waiter.join().unwrap();
        assert_eq!(queue.glance(), Glance::Empty, "a lost lease is still held");
    });
}

/// Somebody comes to the local queue, does what it came for, and goes; true if it held the lock.
fn visit(queue: &LocalQueue) -> bool {
    match queue.arrive(|| Asker, BootInstant::now, may) {
        Arrival::Holds(lease) => {
            lease.hold();
            pass(queue, &lease);
            true
        }
        Arrival::Leads { number, kept } => {
            kept.inspect(|kept| kept.give_back());
            leave(queue, number);
            false
        }
        Arrival::Waits { slot, .. } => {
            let took = try_once(queue, &slot);
            if !took {
                cancel(queue, &slot);
            }
            took
        }
        Arrival::Closed => panic!("nobody closed it"),
    }
}

/// Its time is over, or somebody else wants it: it must go back, whoever has it at that moment.
fn end_keeping(queue: &LocalQueue, lease: &Arc<Lease>) {
    lease.keeps.store(false, Ordering::SeqCst);
    if queue.let_go(lease) {
        lease.give_back();
    }
}

#[test]
fn a_kept_lease_goes_back_once_whenever_keeping_ends() {
    model(|| {
        let lease = Lease::kept();
        let (queue, _) = held(&lease, 0);
        let keeper = {
            let (queue, lease) = (Arc::clone(&queue), Arc::clone(&lease));
            loom::thread::spawn(move || end_keeping(&queue, &lease))
        };
        let newcomer = {
            let queue = Arc::clone(&queue);
            loom::thread::spawn(move || {
                visit(&queue);
            })
        };
        pass(&queue, &lease);
        keeper.join().unwrap();
        newcomer.join().unwrap();
        assert_eq!(lease.given_back.load(Ordering::SeqCst), 1);
        assert!(queue.is_empty(), "something is left in the line");
    });
}

#[test]
fn a_kept_lease_is_for_one_newcomer() {
    model(|| {
        let lease = Lease::kept();
        let (queue, _) = held(&lease, 0);
        pass(&queue, &lease);
        let visits = [(); 2].map(|()| {
            let queue = Arc::clone(&queue);
            loom::thread::spawn(move || {
                visit(&queue);
            })
        });
        for visit in visits {
            visit.join().unwrap();
        }
        assert_eq!(lease.given_back.load(Ordering::SeqCst), 0);
        end_keeping(&queue, &lease);
        assert_eq!(lease.given_back.load(Ordering::SeqCst), 1);
        assert!(queue.is_empty(), "something is left in the line");
    });
}

#[test]
fn a_lost_lease_is_not_kept_whenever_it_is_lost() {
    model(|| {
        let lease = Lease::kept();
        let (queue, _) = held(&lease, 0);
        let watchdog = {
            let (queue, lease) = (Arc::clone(&queue), Arc::clone(&lease));
            loom::thread::spawn(move || {
                lease.over.store(true, Ordering::SeqCst);
                let next = queue.remove(&lease, BootInstant::now());
                assert!(next.is_none(), "nobody waits");
            })
        };
        lease.let_go();
        let passed = queue.pass(&lease, BootInstant::now, may);
        assert!(!matches!(passed, Passed::On(_)), "{passed:?}");
        watchdog.join().unwrap();
        assert!(queue.is_empty(), "a lost lease is still kept");
        assert!(!visit(&queue), "a lost lease was handed out");
    });
}

/// Whoever comes while a lease is being passed on or kept gets it, and nobody else does.
#[test]
fn a_dropped_future_keeps_its_lease_for_others() {
    model(|| {
        let lease = Lease::kept();
        let (queue, slots) = held(&lease, 1);
        let drops = {
            let (queue, slot) = (Arc::clone(&queue), Arc::clone(&slots[0]));
            loom::thread::spawn(move || cancel(&queue, &slot))
        };
        let newcomer = {
            let queue = Arc::clone(&queue);
            loom::thread::spawn(move || {
                visit(&queue);
            })
        };
        pass(&queue, &lease);
        drops.join().unwrap();
        newcomer.join().unwrap();
        end_keeping(&queue, &lease);
        assert_eq!(lease.given_back.load(Ordering::SeqCst), 1);
        assert!(queue.is_empty(), "something is left in the line");
    });
}

#[test]
fn a_deposed_leader_does_not_win() {
    loom::model(|| {
        let lease = Lease::new();
        let queue = Arc::new(LocalQueue::new());
        let Arrival::Leads { number, .. } = queue.arrive(|| Asker, BootInstant::now, may) else {
            panic!("not alone")
        };
        let Arrival::Waits { slot, .. } = queue.arrive(|| Asker, BootInstant::now, may) else {
            panic!("alone")
        };
        let asks = (&OwnerId, Duration::ZERO);
        assert!(queue.leader_lives(number, BootInstant::now(), asks).is_ok());
        let check = {
            let queue = Arc::clone(&queue);
            loom::thread::spawn(move || {
                let found = queue.check_members(BootInstant::now(), may);
                let deposed = found.stalled.is_some();
                settle(found);
                deposed
            })
        };
        let won = queue.won(number, &lease);
        let deposed = check.join().unwrap();
        assert!(won != deposed, "won {won}, deposed {deposed}");
        if won {
            lease.hold();
            pass(&queue, &lease);
        }
        assert!(try_once(&queue, &slot));
        assert_eq!(queue.glance(), Glance::Empty);
    });
}
