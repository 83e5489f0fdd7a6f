//! Random walks of a local queue, step by step, with members that stop anywhere: somebody always looks in time.
//!
//! The slots and the local queue of a cohort are compiled here by themselves. Time passes as the walk says, and checks come when
//! they were sent for, not otherwise.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "not every method of the modules under test plays a part, and helpers of tests are tests too"
)]

#[path = "../../../crates/locktopus-core/src/engine/acquisition/hand_off.rs"]
mod hand_off;
#[path = "../../../crates/locktopus-core/src/engine/acquisition/local_queue.rs"]
mod local_queue;
#[path = "../../../crates/locktopus-core/src/engine/acquisition/slot.rs"]
mod slot;

mod sync {
    pub(crate) use std::sync::atomic::{AtomicU8, Ordering};
    pub(crate) use std::sync::{Arc, Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }
}

use std::collections::BTreeSet;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hand_off::{Leavings, Next, Passed};
use local_queue::{Arrival, Begun, LocalQueue};
use slot::{Slot, Turned};
use sync::Arc;
use tokio::time::Instant as BootInstant;

const PATIENCE: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Asker;

#[derive(Debug, Clone)]
struct OwnerId;

#[derive(Debug)]
struct AcquisitionState;

/// A lease that may always be passed on, and never be kept.
#[derive(Debug)]
struct Lease;

impl Lease {
    fn is_active(&self) -> bool {
        true
    }

    fn is_used_up(&self) -> bool {
        false
    }

    fn may_keep(&self, _: impl Fn() -> BootInstant) -> bool {
        false
    }
}

/// What the walk knows.
struct Walk {
    dice: u64,
    now: BootInstant,
    queue: LocalQueue,
    /// When checks come.
    checks: BTreeSet<BootInstant>,
    /// With when they came.
    waiting: Vec<(Arc<Slot>, BootInstant)>,
    /// Slots that were handed something, since when; those who have them do not run.
    handed: Vec<(Arc<Slot>, BootInstant)>,
    /// The leader, since when it leads, and until when it said that it would be silent.
    leader: Option<(u64, BootInstant, Option<BootInstant>)>,
    holder: Option<Arc<Lease>>,
    /// So many turns and leaders were taken back in time.
    taken_back: u32,
}

fn may(_: &Lease, _: &Asker) -> bool {
    true
}

impl Walk {
    fn new(seed: u64) -> Self {
        Self {
            dice: seed,
            now: BootInstant::now(),
            queue: LocalQueue::new(),
            checks: BTreeSet::new(),
            waiting: Vec::new(),
            handed: Vec::new(),
            leader: None,
            holder: None,
            taken_back: 0,
        }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.dice = self
            .dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % sides
    }

    fn called(&mut self, next: Next) {
        self.checks.extend(next.look_at);
        self.was_handed(next.slot);
    }

    fn was_handed(&mut self, slot: Arc<Slot>) {
        self.waiting
            .retain(|(waiting, _)| !Arc::ptr_eq(waiting, &slot));
        self.handed.push((slot, self.now));
    }

    fn settle(&mut self, left: Leavings) {
        self.checks.extend(left.look_at);
        for slot in left.wake {
            // Revoked, or handed something.
            if !self
                .handed
                .iter()
                .any(|(known, _)| Arc::ptr_eq(known, &slot))
            {
                self.was_handed(slot);
            }
        }
        assert!(left.state.is_none());
    }

    fn step(&mut self) {
        match self.roll(8) {
            0 | 1 => self.arrive(),
            2 => self.begin(),
            3 => self.cancel(),
            4 => self.lead_on(),
            5 => self.win_or_leave(),
            6 => self.pass(),
            _ => self.sleep(),
        }
    }

    fn arrive(&mut self) {
        let now = self.now;
        match self.queue.arrive(|| Asker, || now, may) {
            Arrival::Leads { number, .. } => self.leader = Some((number, now, None)),
            Arrival::Waits { slot, look_at, .. } => {
                self.checks.extend(look_at);
                self.waiting.push((slot, now));
            }
            other => panic!("{other:?}"),
        }
    }

    /// One that was handed something runs.
    fn begin(&mut self) {
        if self.handed.is_empty() {
            return;
        }
        let at = self.roll(self.handed.len() as u64) as usize;
        let (slot, _) = self.handed.swap_remove(at);
        match slot.poll_turn(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Turned::Taken(_)) => match self.queue.begin(&slot).unwrap() {
                Begun::Holds(lease, _) => self.holder = Some(lease),
                Begun::Leads(number, _) => self.leader = Some((number, self.now, None)),
            },
            Poll::Ready(Turned::Revoked) => {}
            other => panic!("{other:?}"),
        }
    }

    fn cancel(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let at = self.roll(self.waiting.len() as u64) as usize;
        let (slot, _) = self.waiting.swap_remove(at);
        assert!(slot.cancel().is_none());
        self.queue.forget_one();
    }

    /// The leader does something that may take a short or a long time.
    fn lead_on(&mut self) {
        let Some((number, since, _)) = self.leader else {
            return;
        };
        let long = [1, 60, 5_000, 150_000][self.roll(4) as usize];
        let until = self.now + Duration::from_millis(long);
        match self.queue.leader_lives(number, until, (&OwnerId, PATIENCE)) {
            Ok(look_at) => {
                self.checks.extend(look_at);
                self.leader = Some((number, since, Some(until)));
            }
            Err(local_queue::Deposed) => self.leader = None,
        }
    }

    fn win_or_leave(&mut self) {
        let Some((number, ..)) = self.leader.take() else {
            return;
        };
        if self.roll(3) == 0 {
            if let Ok(next) = self.queue.leader_left(number, None, self.now) {
                self.called(next);
            }
        } else {
            let lease = Arc::new(Lease);
            if self.queue.won(number, &lease) {
                self.holder = Some(lease);
            }
        }
    }

    fn pass(&mut self) {
        let Some(lease) = self.holder.take() else {
            return;
        };
        let now = self.now;
        match self.queue.pass(&lease, || now, may) {
            Passed::On(next) | Passed::Over(Some(next)) => self.called(next),
            Passed::Over(None) | Passed::Kept | Passed::NotHere => {}
        }
    }

    /// Time passes, and checks come. Afterwards nobody has anything for longer than it may.
    fn sleep(&mut self) {
        let nap = [1, 20, 49, 51, 500, 7_000][self.roll(6) as usize];
        let end = self.now + Duration::from_millis(nap);
        while let Some(at) = self.checks.first().copied().filter(|at| *at <= end) {
            self.checks.remove(&at);
            self.now = at;
            let found = self.queue.check_members(at, may);
            self.settle(found);
        }
        self.now = end;
        let mut kept = Vec::new();
        for (slot, since) in std::mem::take(&mut self.handed) {
            if self.now < since + PATIENCE {
                kept.push((slot, since));
                continue;
            }
            let turned = slot.poll_turn(&mut Context::from_waker(Waker::noop()));
            assert_eq!(
                turned,
                Poll::Ready(Turned::Revoked),
                "nobody looked after a turn that was handed over {:?} ago",
                self.now - since
            );
            self.taken_back += 1;
        }
        self.handed = kept;
        self.look_for_silence();
    }

    /// While anybody waits, a leader that has said nothing is silent for too long when a check has seen it twice.
    fn look_for_silence(&mut self) {
        let first = self.waiting.iter().map(|(_, arrived)| *arrived).min();
        let (Some((number, since, until)), Some(first)) = (self.leader, first) else {
            return;
        };
        let seen_twice = since.max(first) + PATIENCE * 2;
        let until = until.map_or(seen_twice, |until| until.max(first + PATIENCE));
        if until > self.now {
            return;
        }
        let far = self.now + PATIENCE;
        let lives = self.queue.leader_lives(number, far, (&OwnerId, PATIENCE));
        assert!(
            lives.is_err(),
            "nobody looked after a leader that has been silent for {:?} too long",
            self.now - until
        );
        self.leader = None;
        self.taken_back += 1;
    }
}

#[test]
fn somebody_looks_in_time_whatever_happens() {
    let mut taken_back = 0;
    for seed in 0..3_000 {
        let mut walk = Walk::new(seed);
        for _ in 0..300 {
            walk.step();
        }
        taken_back += walk.taken_back;
    }
    println!("{taken_back} turns and leaders were taken back");
    assert!(taken_back > 10_000);
}
