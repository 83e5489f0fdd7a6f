//! A simulated process: it follows the rules of the library's core, without doing any input or output.
//!
//! Mirrors `locktopus-core`: `attempts` is its loop of attempts, `holding` is `watchdog.rs` and the guard, `reaper`
//! is `reaper.rs`, `keeping` is `acquisition/kept_lease.rs`, `hub` is `wake.rs` and the protocol crate's `hub.rs`. What goes
//! in is an [`Input`] with the time on the process's own clock; what comes out are [`Act`]s.

mod acquisition;
mod attempts;
mod giving_up;
mod holding;
mod hub;
mod keeping;
mod reaper;
mod task;
mod waiting;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::Rng;
use crate::sim::ask::{Answer, Ask, Heard, Mode, Owner};
use crate::sim::kind::Kind;
use crate::sim::rules::{Flaw, MS, Micros, Rules};
use holding::Lease;
use hub::Hub;
use reaper::Debt;
pub(super) use task::Habits;
use task::Task;

/// What happens to a process.
#[derive(Debug, Clone)]
pub(super) enum Input {
    Begin,
    Answer {
        call: u64,
        answer: Answer,
        micros: Option<i64>,
    },
    Heard(Heard),
    /// The connection that carries messages was lost and is there again.
    Disrupted,
    Timer(Timer),
    /// Start nothing new and give everything back.
    Stop,
}

/// What a process wants to be woken for. Those that name a turn mean nothing after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    Task { task: usize, turn: u64 },
    Cancel { task: usize, round: u64 },
    Lease { lease: u64, turn: u64 },
    Kept { lease: u64 },
    Debt { debt: u64 },
    Call(u64),
    Linger { turn: u64 },
}

/// What a process does. Times are on its own clock.
#[derive(Debug)]
pub(super) enum Act {
    /// `task`: an attempt of this one.
    Send {
        call: u64,
        ask: Ask,
        task: Option<usize>,
    },
    Wake {
        at: Micros,
        timer: Timer,
    },
    /// It believes from now on that it holds the lock, with these tokens.
    Believe {
        owner: Owner,
        mode: Mode,
        permits: i64,
        until: Micros,
        tokens: (i64, i64),
        how: How,
    },
    /// It believes longer.
    BelieveUntil {
        owner: Owner,
        until: Micros,
    },
    /// It does not believe any more.
    Disbelieve {
        owner: Owner,
    },
    /// It wants the lock, or does not any more.
    Wants {
        task: usize,
        wants: bool,
    },
    /// It has given up an owner; nothing of it should remain.
    GaveUp {
        owner: Owner,
    },
}

/// How a process came to believe that it holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// It asked.
    Answered,
    /// It was told.
    Pushed,
    /// It had kept a lease.
    Kept,
}

#[derive(Debug)]
struct Call {
    purpose: Purpose,
    sent: Micros,
    deadline: Micros,
}

#[derive(Debug, Clone, Copy)]
enum Purpose {
    Attempt(usize),
    Subscribe,
    Unsubscribe,
    Renew(u64),
    Release(usize),
    Reap(u64),
}

/// One process.
#[derive(Debug)]
pub(super) struct Process {
    id: usize,
    rng: Rng,
    rules: Rc<Rules>,
    habits: Rc<Habits>,
    now: Micros,
    acts: Vec<Act>,
    calls: BTreeMap<u64, Call>,
    /// Calls whose time is over; only a flawed client looks at their answers.
    overdue: BTreeMap<u64, Call>,
    serial: u64,
    /// Between what server time minus own time is, in microseconds, once known.
    clock: Option<(Micros, Micros)>,
    hub: Hub,
    tasks: Vec<Task>,
    leases: BTreeMap<u64, Lease>,
    /// A lease that nobody holds and that is kept.
    kept: Option<u64>,
    debts: BTreeMap<u64, Debt>,
    spare_owner: Option<Owner>,
    stopping: bool,
}

/// How much later than the caller's deadline an attempt may still run.
const SLACK: Micros = 100 * MS;

impl Process {
    pub(super) fn new(
        id: usize,
        tasks: usize,
        rules: &Rc<Rules>,
        habits: &Rc<Habits>,
        rng: Rng,
    ) -> Self {
        Self {
            id,
            rng,
            rules: Rc::clone(rules),
            habits: Rc::clone(habits),
            now: 0,
            acts: Vec::new(),
            calls: BTreeMap::new(),
            overdue: BTreeMap::new(),
            serial: 0,
            clock: None,
            hub: Hub::default(),
            tasks: (0..tasks).map(|_| Task::default()).collect(),
            leases: BTreeMap::new(),
            kept: None,
            debts: BTreeMap::new(),
            spare_owner: None,
            stopping: false,
        }
    }

    /// Lets something happen to it at a time on its own clock, and returns what it does.
    pub(super) fn on(&mut self, now: Micros, input: Input) -> Vec<Act> {
        self.now = self.now.max(now);
        match input {
            Input::Begin => (0..self.tasks.len()).for_each(|task| self.rest(task)),
            Input::Answer {
                call,
                answer,
                micros,
            } => self.answered(call, answer, micros),
            Input::Heard(heard) => self.heard(heard),
            Input::Disrupted => self.disrupted(),
            Input::Timer(timer) => self.fired(timer),
            Input::Stop => self.stop(),
        }
        std::mem::take(&mut self.acts)
    }

    fn fired(&mut self, timer: Timer) {
        match timer {
            Timer::Task { task, turn } => self.task_fired(task, turn),
            Timer::Cancel { task, round } => self.cancel_fired(task, round),
            Timer::Lease { lease, turn } => self.lease_fired(lease, turn),
            Timer::Kept { lease } => self.end_keeping(lease),
            Timer::Debt { debt } => self.settle(debt),
            Timer::Linger { turn } => self.linger_over(turn),
            Timer::Call(call) => {
                if let Some(over) = self.calls.remove(&call) {
                    let purpose = over.purpose;
                    self.overdue.insert(call, over);
                    self.failed(purpose);
                }
            }
        }
    }

    fn answered(&mut self, call: u64, answer: Answer, micros: Option<i64>) {
        let known = self.calls.remove(&call).or_else(|| {
            let overdue = self.overdue.remove(&call);
            overdue.filter(|_| self.rules.is(Flaw::LateAnswer))
        });
        let Some(known) = known else {
            return; // a second copy, or too late
        };
        if let Some(micros) = micros {
            let (least, most) = (micros - self.now, micros - known.sent);
            let both = self
                .clock
                .map(|known| (known.0.max(least), known.1.min(most)));
            // A contradiction: another server answered, or a clock was set.
            self.clock = both.filter(|both| both.0 <= both.1).or(Some((least, most)));
        }
        match known.purpose {
            Purpose::Attempt(task) => self.attempt_answered(task, &known, answer),
            Purpose::Subscribe => self.subscribed(answer == Answer::Done),
            Purpose::Unsubscribe => self.unsubscribed(),
            Purpose::Renew(lease) => self.renewal_answered(lease, known.sent, &answer),
            Purpose::Release(task) => self.release_answered(task, &answer),
            Purpose::Reap(debt) => self.reap_answered(debt, &answer),
        }
    }

    /// No answer came in time.
    fn failed(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Attempt(task) => self.attempt_failed(task, true),
            Purpose::Subscribe => self.subscribed(false),
            Purpose::Unsubscribe => self.unsubscribed(),
            Purpose::Renew(lease) => self.renewal_failed(lease),
            Purpose::Release(task) => self.release_failed(task),
            Purpose::Reap(debt) => self.reap_failed(debt),
        }
    }

    fn send(&mut self, purpose: Purpose, ask: Ask, deadline: Micros) -> u64 {
        let call = self.serial();
        let sent = self.now;
        self.calls.insert(
            call,
            Call {
                purpose,
                sent,
                deadline,
            },
        );
        let task = match purpose {
            Purpose::Attempt(task) => Some(task),
            _ => None,
        };
        self.acts.push(Act::Send { call, ask, task });
        self.wake(deadline, Timer::Call(call));
        call
    }

    fn wake(&mut self, at: Micros, timer: Timer) {
        self.acts.push(Act::Wake { at, timer });
    }

    fn serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    fn new_owner(&mut self) -> Owner {
        if let Some(owner) = self
            .spare_owner
            .take()
            .filter(|_| self.rules.is(Flaw::SameOwner))
        {
            return owner;
        }
        let serial = self.serial();
        if self.rules.kind == Kind::Permits {
            // Sixteen bytes; the last two number the permits.
            return Rc::from(format!("{:05x}-{serial:08x}\0\0", self.id));
        }
        Rc::from(format!(
            "{:08x}-0000-8c70-a705-000000000000:{}",
            self.id,
            self.rules.kind.number(serial)
        ))
    }

    /// The latest server time in microseconds at which a request may run; 0 if unknown.
    fn not_after(&self, deadline: Micros) -> i64 {
        match self.clock {
            Some((least, _)) => deadline + least + SLACK,
            _ => 0,
        }
    }

    /// A random duration between the two.
    fn jitter(&mut self, low: Micros, high: Micros) -> Micros {
        self.rng.between(low, high.max(low))
    }

    fn stop(&mut self) {
        self.stopping = true;
        (0..self.tasks.len()).for_each(|task| self.stop_task(task));
        if let Some(kept) = self.kept {
            self.end_keeping(kept);
        }
    }
}
