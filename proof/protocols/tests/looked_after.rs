//! Random walks of a cohort's queue, step by step, with members that stop anywhere: the watchdog
//! always checks in time.
//!
//! Only the queue is compiled here. The walk advances time, and only scheduled checks run.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "not every method of the modules under test plays a part, and helpers of tests are tests too"
)]

#[path = "../../../crates/locktopus-core/src/engine/acquisition/cohort_queue.rs"]
mod cohort_queue;
#[path = "../../../crates/locktopus-core/src/engine/acquisition/stage.rs"]
mod stage;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cohort_queue::CohortQueue;
use stage::{Effects, Step, Waiter};
use tokio::time::Instant as BootInstant;

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

/// A lease that may always be passed on, and never be kept.
#[derive(Debug)]
struct BackendLease;

impl BackendLease {
    fn is_active(&self) -> bool {
        true
    }

    fn is_used_up(&self) -> bool {
        false
    }

    fn may_serve(&self, _: &Waiter, _: BootInstant) -> bool {
        true
    }

    fn may_keep(&self, _: impl Fn() -> BootInstant) -> bool {
        false
    }
}

/// The state of the walk.
struct Walk {
    dice: u64,
    now: BootInstant,
    queue: CohortQueue,
    /// When checks run.
    checks: BTreeSet<BootInstant>,
    /// By number, with their arrival.
    waiting: Vec<(u64, BootInstant)>,
    /// Waiters with a turn, and since when; their tasks do not run.
    handed: Vec<(u64, BootInstant)>,
    /// The leader, since when it leads, and until when it announced to be silent.
    leader: Option<(u64, BootInstant, Option<BootInstant>)>,
    holder: Option<Arc<BackendLease>>,
    /// How many turns and leaders were taken back in time.
    taken_back: u32,
}

impl Walk {
    fn new(seed: u64) -> Self {
        Self {
            dice: seed,
            now: BootInstant::now(),
            queue: CohortQueue::default(),
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

    fn carry_out(&mut self, effects: Effects) {
        self.checks.extend(effects.check_at);
        // Turns come in order of arrival.
        if effects.wake.is_some() {
            let (number, _) = self.waiting.remove(0);
            self.handed.push((number, self.now));
        }
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
        let waiter = || Waiter {
            lease: FETCH_TIMEOUT,
            renewed: true,
            arrived: now,
            progress: None,
            waker: None,
        };
        let arrival = self.queue.arrive(waiter, true, || now);
        self.carry_out(arrival.effects);
        match arrival.step {
            None => self.waiting.push((arrival.number, now)),
            Some(step) => self.take(arrival.number, step),
        }
    }

    fn take(&mut self, number: u64, step: Step) {
        match step {
            Step::Hold(lease, _) => self.holder = Some(lease),
            Step::Lead { .. } => self.leader = Some((number, self.now, None)),
            Step::QueueAgain => {}
            other => panic!("{other:?}"),
        }
    }

    /// A waiter with a turn runs.
    fn begin(&mut self) {
        if self.handed.is_empty() {
            return;
        }
        let at = self.roll(self.handed.len() as u64) as usize;
        let (number, _) = self.handed.swap_remove(at);
        let step = self
            .queue
            .poll(number, &mut None)
            .expect("its wait is over");
        self.take(number, step);
    }

    fn cancel(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let at = self.roll(self.waiting.len() as u64) as usize;
        let (number, _) = self.waiting.remove(at);
        assert!(self.queue.withdraw(number).is_some());
    }

    /// The leader does something that may take a short or a long time.
    fn lead_on(&mut self) {
        let Some((number, since, _)) = self.leader else {
            return;
        };
        let long = [1, 60, 5_000, 150_000][self.roll(4) as usize];
        let until = self.now + Duration::from_millis(long);
        match self.queue.leader_lives(number, until, Cleanup) {
            Some(effects) => {
                self.carry_out(effects);
                self.leader = Some((number, since, Some(until)));
            }
            None => self.leader = None,
        }
    }

    fn win_or_leave(&mut self) {
        let Some((number, ..)) = self.leader.take() else {
            return;
        };
        if self.roll(3) == 0 {
            let effects = self.queue.leave(number, None, self.now);
            self.carry_out(effects);
        } else {
            let lease = Arc::new(BackendLease);
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
        let effects = self.queue.pass(&lease, || now);
        self.carry_out(effects);
    }

    /// Time passes, and checks run. Afterwards no member has a turn for longer than it may.
    fn sleep(&mut self) {
        let nap = [1, 20, 49, 51, 500, 7_000][self.roll(6) as usize];
        let end = self.now + Duration::from_millis(nap);
        while let Some(at) = self.checks.first().copied().filter(|at| *at <= end) {
            self.checks.remove(&at);
            self.now = at;
            let effects = self.queue.check(at);
            self.carry_out(effects);
        }
        self.now = end;
        let mut kept = Vec::new();
        for (number, since) in std::mem::take(&mut self.handed) {
            if self.now < since + FETCH_TIMEOUT {
                kept.push((number, since));
                continue;
            }
            let step = self.queue.poll(number, &mut None);
            assert!(
                matches!(step, Some(Step::QueueAgain)),
                "nobody looked after a turn that was handed over {:?} ago",
                self.now - since
            );
            self.taken_back += 1;
        }
        self.handed = kept;
        self.look_for_silence();
    }

    /// While a member waits, a leader without a sign of life is silent for too long once a check
    /// has seen it twice.
    fn look_for_silence(&mut self) {
        let first = self.waiting.iter().map(|(_, arrived)| *arrived).min();
        let (Some((number, since, until)), Some(first)) = (self.leader, first) else {
            return;
        };
        let seen_twice = since.max(first) + FETCH_TIMEOUT * 2;
        let until = until.map_or(seen_twice, |until| until.max(first + FETCH_TIMEOUT));
        if until > self.now {
            return;
        }
        let far = self.now + FETCH_TIMEOUT;
        let lives = self.queue.leader_lives(number, far, Cleanup);
        assert!(
            lives.is_none(),
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
