//! Every interleaving of what can happen to a turn at the same time, by loom.
//!
//! The slots and the line of a cohort are compiled here against loom's atomics, mutexes and reference counts; the rest
//! of the crate is not involved. Run it alone with `cargo test -p locktopus-core --test interleavings`.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "not every method of the modules under test plays a part"
)]

#[path = "../src/engine/acquisition/local_queue.rs"]
mod local_queue;
#[path = "../src/engine/acquisition/slot.rs"]
mod slot;
#[path = "../src/engine/acquisition/stage.rs"]
mod stage;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU8, Ordering};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }
}

use std::future::poll_fn;
use std::time::Duration;

use local_queue::{Arrival, Begun, Glance, Line};
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use slot::{Slot, Turn, Turned};
use stage::{Leavings, Next, Passed};
use sync::Arc;
use tokio::time::Instant as BootInstant;

/// As in the crate: who is handed something has so long to fetch it.
const PATIENCE: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Asker;

#[derive(Debug, Clone)]
struct OwnerId;

#[derive(Debug)]
struct Stand;

/// A lease, and who has it: nobody may begin a turn while another one lasts.
#[derive(Debug)]
struct Session {
    over: AtomicBool,
    /// May be kept while nobody holds it.
    keeps: AtomicBool,
    holders: AtomicUsize,
    given_back: AtomicUsize,
}

impl Session {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            over: AtomicBool::new(false),
            keeps: AtomicBool::new(false),
            holders: AtomicUsize::new(0),
            given_back: AtomicUsize::new(0),
        })
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn kept() -> Arc<Self> {
        let session = Self::new();
        session.keeps.store(true, Ordering::SeqCst);
        session
    }

    fn may_keep(&self, _: impl Fn() -> BootInstant) -> bool {
        self.keeps.load(Ordering::SeqCst) && !self.is_over()
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

fn may(session: &Session, _: &Asker) -> bool {
    !session.is_over()
}

/// A line in which one holds and so many wait.
fn held(session: &Arc<Session>, waiting: usize) -> (Arc<Line>, Vec<Arc<Slot>>) {
    let line = Line::new();
    let Arrival::Leads { number, .. } = line.arrive(|| Asker, BootInstant::now, may) else {
        panic!("not alone")
    };
    assert!(line.won(number, session));
    session.hold();
    let slots = (0..waiting)
        .map(|_| match line.arrive(|| Asker, BootInstant::now, may) {
            Arrival::Waits { slot, .. } => slot,
            other => panic!("{other:?}"),
        })
        .collect();
    (Arc::new(line), slots)
}

fn call(next: &Next) {
    next.slot.wake();
}

/// The holder is done.
fn pass(line: &Line, session: &Arc<Session>) {
    session.let_go();
    match line.pass(session, BootInstant::now, may) {
        Passed::On(next) => call(&next),
        Passed::Kept => {}
        Passed::Over(next) => {
            session.give_back();
            next.inspect(call);
        }
        Passed::NotHere => session.give_back(),
    }
}

/// What a waiter does whose turn has come; true if it holds the lock.
fn begin(line: &Line, slot: &Arc<Slot>) -> Option<Arc<Session>> {
    match line.begin(slot).expect("whoever takes a turn owns it") {
        Begun::Holds(session, _) => {
            session.hold();
            Some(session)
        }
        Begun::Leads(number, _) => {
            leave(line, number);
            None
        }
    }
}

fn leave(line: &Line, number: u64) {
    if let Ok(next) = line.leader_left(number, None, BootInstant::now()) {
        call(&next);
    }
}

/// The future of a waiter is dropped.
fn cancel(line: &Line, slot: &Arc<Slot>) {
    if slot.cancel().is_none() {
        line.forget_one();
        return;
    }
    settle(line.hand_back(slot, BootInstant::now(), may));
}

fn settle(left: Leavings) {
    left.wake.iter().for_each(|next| next.wake());
    if let Some(session) = left.lease {
        session.give_back();
    }
}

/// Looks once, without waiting; true if the lock was taken and passed on.
fn try_once(line: &Line, slot: &Arc<Slot>) -> bool {
    let waker = std::task::Waker::noop();
    let mut cx = std::task::Context::from_waker(waker);
    match slot.poll_turn(&mut cx) {
        std::task::Poll::Ready(Turned::Taken(_)) => {
            if let Some(session) = begin(line, slot) {
                pass(line, &session);
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
        let session = Session::new();
        let (line, slots) = held(&session, 2);
        let drops = {
            let (line, slot) = (Arc::clone(&line), Arc::clone(&slots[0]));
            loom::thread::spawn(move || cancel(&line, &slot))
        };
        let other = {
            let (line, slot) = (Arc::clone(&line), Arc::clone(&slots[1]));
            loom::thread::spawn(move || {
                if !try_once(&line, &slot) {
                    cancel(&line, &slot);
                }
            })
        };
        pass(&line, &session);
        drops.join().unwrap();
        other.join().unwrap();
        assert_eq!(session.given_back.load(Ordering::SeqCst), 1);
        assert_eq!(line.glance(), Glance::Empty);
    });
}

#[test]
fn a_patrol_and_the_waiter_do_not_both_have_the_turn() {
    loom::model(|| {
        let session = Session::new();
        let (line, slots) = held(&session, 1);
        pass(&line, &session);
        let patrol = {
            let line = Arc::clone(&line);
            loom::thread::spawn(move || {
                settle(line.patrol(BootInstant::now() + PATIENCE, may));
            })
        };
        let took = try_once(&line, &slots[0]);
        patrol.join().unwrap();
        assert!(took, "it had a turn, or was told that it was revoked");
        assert_eq!(session.given_back.load(Ordering::SeqCst), 1);
        assert_eq!(line.glance(), Glance::Empty);
    });
}

/// The watchdog finds the lease lost while it is being released: nobody may go on with it.
#[test]
fn a_lost_lease_is_not_passed_on_whenever_it_is_lost() {
    model(|| {
        let session = Session::new();
        let (line, slots) = held(&session, 1);
        let watchdog = {
            let (line, session) = (Arc::clone(&line), Arc::clone(&session));
            loom::thread::spawn(move || {
                session.over.store(true, Ordering::SeqCst);
                if let Some(next) = line.remove(&session, BootInstant::now()) {
                    call(&next);
                }
            })
        };
        let waiter = {
            let (line, slot) = (Arc::clone(&line), Arc::clone(&slots[0]));
            loom::thread::spawn(move || {
                let turned = loom::future::block_on(poll_fn(|cx| slot.poll_turn(cx)));
                assert!(matches!(turned, Turned::Taken(_)));
                // Holding it is right only if it was not known to be lost by then; then the loss takes it away.
                match line.begin(&slot).expect("its own turn") {
                    Begun::Holds(session, _) => drop(session),
                    Begun::Leads(number, _) => leave(&line, number),
                }
            })
        };
        session.let_go();
        match line.pass(&session, BootInstant::now, may) {
            Passed::On(next) => call(&next),
            Passed::Over(next) => {
                next.inspect(call);
            }
            Passed::Kept | Passed::NotHere => {}
        }
        watchdog.join().unwrap();
        waiter.join().unwrap();
        assert_eq!(line.glance(), Glance::Empty, "a lost lease is still held");
    });
}

/// Somebody comes to the line, does what it came for, and goes; true if it held the lock.
fn visit(line: &Line) -> bool {
    match line.arrive(|| Asker, BootInstant::now, may) {
        Arrival::Holds(session) => {
            session.hold();
            pass(line, &session);
            true
        }
        Arrival::Leads { number, kept } => {
            kept.inspect(|kept| kept.give_back());
            leave(line, number);
            false
        }
        Arrival::Waits { slot, .. } => {
            let took = try_once(line, &slot);
            if !took {
                cancel(line, &slot);
            }
            took
        }
        Arrival::Closed => panic!("nobody closed it"),
    }
}

/// Its time is over, or somebody else wants it: it must go back, whoever has it at that moment.
fn end_keeping(line: &Line, session: &Arc<Session>) {
    session.keeps.store(false, Ordering::SeqCst);
    if line.let_go(session) {
        session.give_back();
    }
}

#[test]
fn a_kept_lease_goes_back_once_whenever_keeping_ends() {
    model(|| {
        let session = Session::kept();
        let (line, _) = held(&session, 0);
        let keeper = {
            let (line, session) = (Arc::clone(&line), Arc::clone(&session));
            loom::thread::spawn(move || end_keeping(&line, &session))
        };
        let newcomer = {
            let line = Arc::clone(&line);
            loom::thread::spawn(move || {
                visit(&line);
            })
        };
        pass(&line, &session);
        keeper.join().unwrap();
        newcomer.join().unwrap();
        assert_eq!(session.given_back.load(Ordering::SeqCst), 1);
        assert!(line.is_empty(), "something is left in the line");
    });
}

#[test]
fn a_kept_lease_is_for_one_newcomer() {
    model(|| {
        let session = Session::kept();
        let (line, _) = held(&session, 0);
        pass(&line, &session);
        let visits = [(); 2].map(|()| {
            let line = Arc::clone(&line);
            loom::thread::spawn(move || {
                visit(&line);
            })
        });
        for visit in visits {
            visit.join().unwrap();
        }
        assert_eq!(session.given_back.load(Ordering::SeqCst), 0);
        end_keeping(&line, &session);
        assert_eq!(session.given_back.load(Ordering::SeqCst), 1);
        assert!(line.is_empty(), "something is left in the line");
    });
}

#[test]
fn a_lost_lease_is_not_kept_whenever_it_is_lost() {
    model(|| {
        let session = Session::kept();
        let (line, _) = held(&session, 0);
        let watchdog = {
            let (line, session) = (Arc::clone(&line), Arc::clone(&session));
            loom::thread::spawn(move || {
                session.over.store(true, Ordering::SeqCst);
                let next = line.remove(&session, BootInstant::now());
                assert!(next.is_none(), "nobody waits");
            })
        };
        session.let_go();
        let passed = line.pass(&session, BootInstant::now, may);
        assert!(!matches!(passed, Passed::On(_)), "{passed:?}");
        watchdog.join().unwrap();
        assert!(line.is_empty(), "a lost lease is still kept");
        assert!(!visit(&line), "a lost lease was handed out");
    });
}

/// Whoever comes while a lease is being passed on or kept gets it, and nobody else does.
#[test]
fn a_dropped_future_keeps_its_lease_for_others() {
    model(|| {
        let session = Session::kept();
        let (line, slots) = held(&session, 1);
        let drops = {
            let (line, slot) = (Arc::clone(&line), Arc::clone(&slots[0]));
            loom::thread::spawn(move || cancel(&line, &slot))
        };
        let newcomer = {
            let line = Arc::clone(&line);
            loom::thread::spawn(move || {
                visit(&line);
            })
        };
        pass(&line, &session);
        drops.join().unwrap();
        newcomer.join().unwrap();
        end_keeping(&line, &session);
        assert_eq!(session.given_back.load(Ordering::SeqCst), 1);
        assert!(line.is_empty(), "something is left in the line");
    });
}

#[test]
fn a_deposed_leader_does_not_win() {
    loom::model(|| {
        let session = Session::new();
        let line = Arc::new(Line::new());
        let Arrival::Leads { number, .. } = line.arrive(|| Asker, BootInstant::now, may) else {
            panic!("not alone")
        };
        let Arrival::Waits { slot, .. } = line.arrive(|| Asker, BootInstant::now, may) else {
            panic!("alone")
        };
        let asks = (&OwnerId, Duration::ZERO);
        assert!(line.leader_lives(number, BootInstant::now(), asks).is_ok());
        let patrol = {
            let line = Arc::clone(&line);
            loom::thread::spawn(move || {
                let found = line.patrol(BootInstant::now(), may);
                let deposed = found.stalled.is_some();
                settle(found);
                deposed
            })
        };
        let won = line.won(number, &session);
        let deposed = patrol.join().unwrap();
        assert!(won != deposed, "won {won}, deposed {deposed}");
        if won {
            session.hold();
            pass(&line, &session);
        }
        assert!(try_once(&line, &slot));
        assert_eq!(line.glance(), Glance::Empty);
    });
}
