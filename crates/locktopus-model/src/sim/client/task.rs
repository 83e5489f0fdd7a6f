//! What the tasks of a process do all day: want the lock, hold it for a while, want it again.

use super::acquisition::{Acquisition, Wait};
use super::{Act, Process, Timer};
use crate::Rng;
use crate::sim::rules::{MS, Micros, Strategy};

/// What tasks like to do.
#[derive(Debug, Clone)]
pub(in crate::sim) struct Habits {
    pub(in crate::sim) strategies: Vec<Strategy>,
    pub(in crate::sim) rest: (Micros, Micros),
    pub(in crate::sim) hold: (Micros, Micros),
    /// In a thousand: leases that nobody renews.
    pub(in crate::sim) fixed: u64,
    /// In a thousand: guards that are dropped, not released.
    pub(in crate::sim) drops: u64,
    /// In a thousand: acquisitions that are dropped.
    pub(in crate::sim) cancels: u64,
    /// In a thousand: acquisitions that do not wait.
    pub(in crate::sim) impatient: u64,
    /// In a thousand: acquisitions that wait a limited time.
    pub(in crate::sim) limited: u64,
    pub(in crate::sim) patience: (Micros, Micros),
}

impl Habits {
    pub(super) fn wait(&self, rng: &mut Rng) -> Wait {
        if rng.permille(self.impatient) {
            Wait::Not
        } else if rng.permille(self.limited) {
            Wait::AtMost(rng.between(self.patience.0, self.patience.1))
        } else {
            Wait::Forever
        }
    }
}

/// What a task is at.
#[derive(Debug, Default)]
pub(super) enum Phase {
    /// Nothing, until its timer fires.
    #[default]
    Resting,
    Attempting,
    Subscribing,
    Pausing,
    /// Holds a lease until its timer fires.
    Holding(u64),
    /// Waits for the answer to a release.
    Releasing(u64),
    /// For good.
    Stopped,
}

/// One task.
#[derive(Debug, Default)]
pub(super) struct Task {
    pub(super) phase: Phase,
    /// Counts changes of phase, so that timers of an earlier one are known.
    pub(super) turn: u64,
    /// Counts acquisitions.
    pub(super) round: u64,
    pub(super) acquisition: Option<Acquisition>,
}

impl Process {
    pub(super) fn enter(&mut self, task: usize, phase: Phase) {
        self.tasks[task].phase = phase;
        self.tasks[task].turn += 1;
    }

    pub(super) fn enter_until(&mut self, task: usize, phase: Phase, until: Micros) {
        self.enter(task, phase);
        let turn = self.tasks[task].turn;
        self.wake(until, Timer::Task { task, turn });
    }

    /// Does nothing for a while.
    pub(super) fn rest(&mut self, task: usize) {
        if self.stopping {
            self.enter(task, Phase::Stopped);
            return;
        }
        let (low, high) = self.habits.rest;
        let until = self.now + self.rng.between(low, high);
        self.enter_until(task, Phase::Resting, until);
    }

    pub(super) fn task_fired(&mut self, task: usize, turn: u64) {
        if self.tasks[task].turn != turn {
            return;
        }
        match self.tasks[task].phase {
            Phase::Resting => self.begin(task),
            Phase::Pausing => self.pause_over(task),
            Phase::Holding(lease) => self.end_hold(task, lease),
            _ => {}
        }
    }

    fn begin(&mut self, task: usize) {
        self.acts.push(Act::Wants { task, wants: true });
        self.tasks[task].round += 1;
        if self.rng.permille(self.habits.cancels) {
            let round = self.tasks[task].round;
            let at = self.now + self.rng.between(0, self.habits.patience.1);
            self.wake(at, Timer::Cancel { task, round });
        }
        self.begin_acquisition(task);
    }

    /// The lock is ours: keep it for a while.
    pub(super) fn hold(&mut self, task: usize, lease: u64) {
        self.acts.push(Act::Wants { task, wants: false });
        let (low, high) = self.habits.hold;
        // Mostly short, sometimes for the whole range.
        let high = if self.rng.permille(700) {
            low + (high - low) / 8
        } else {
            high
        };
        let until = self.now + self.rng.between(low, high.max(low + MS));
        self.enter_until(task, Phase::Holding(lease), until);
    }

    fn end_hold(&mut self, task: usize, lease: u64) {
        if self.keep(lease) {
            self.rest(task);
        } else if self.rng.permille(self.habits.drops) {
            self.drop_guard(lease);
            self.rest(task);
        } else {
            self.release(task, lease);
        }
    }

    /// The acquisition of a task is over without the lock.
    pub(super) fn gave_up(&mut self, task: usize) {
        self.drop_acquisition(task);
        self.acts.push(Act::Wants { task, wants: false });
        self.rest(task);
    }

    pub(super) fn cancel_fired(&mut self, task: usize, round: u64) {
        let waits = self.tasks[task].acquisition.is_some();
        if waits && self.tasks[task].round == round {
            self.gave_up(task);
        }
    }

    pub(super) fn stop_task(&mut self, task: usize) {
        match self.tasks[task].phase {
            Phase::Holding(lease) => self.end_hold(task, lease),
            Phase::Attempting | Phase::Subscribing | Phase::Pausing => self.gave_up(task),
            Phase::Resting => self.enter(task, Phase::Stopped),
            // Rests when its release is answered, which stops it.
            Phase::Releasing(_) | Phase::Stopped => {}
        }
    }
}
