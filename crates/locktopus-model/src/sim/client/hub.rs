//! Who listens in a process, and whom a message wakes.
//!
//! Mirrors `WakeGroup` and `WakeStream` of the core, and the topic of the protocol crate's hub.

use super::task::Phase;
use super::{Process, Purpose, Timer};
use crate::sim::ask::{Ask, Heard, Owner};
use crate::sim::rules::{Flaw, MS};

/// What a waiter was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    Released,
    Granted { token: i64 },
    Resync,
}

/// One who listens.
#[derive(Debug)]
struct Stream {
    task: usize,
    owner: Option<Owner>,
    pending: Option<Hint>,
    /// It was told of a release and has neither won nor come back.
    looking: bool,
    /// It was told that others want what it may have got.
    wanted: bool,
}

/// The channels of a process for the lock.
#[derive(Debug, Default)]
pub(super) struct Hub {
    streams: Vec<Stream>,
    /// Holders who want to be told, and their leases.
    ears: Vec<(Owner, u64)>,
    /// Counts disruptions.
    generation: u64,
    /// The generation in which the subscription was confirmed, plus one; 0 if it is not.
    confirmed: u64,
    subscribing: bool,
    asked_in: u64,
    pause: i64,
    /// Counts the times in which nobody listens.
    idle: u64,
    recovering: bool,
}

impl Hub {
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed == self.generation + 1
    }

    fn is_idle(&self) -> bool {
        self.streams.is_empty() && self.ears.is_empty()
    }

    fn stream(&mut self, task: usize) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.task == task)
    }

    pub(super) fn listens(&self, task: usize) -> bool {
        self.streams.iter().any(|stream| stream.task == task)
    }

    /// Says whose grants a stream is for.
    pub(super) fn claim(&mut self, task: usize, owner: &Owner) {
        if let Some(stream) = self.stream(task) {
            stream.owner = Some(owner.clone());
        }
    }

    /// What a waiter was told since it last asked.
    pub(super) fn take(&mut self, task: usize) -> Option<Hint> {
        let stream = self.stream(task)?;
        stream.looking = false;
        let hint = stream.pending.take();
        stream.looking = hint == Some(Hint::Released);
        hint
    }
}

impl Process {
    /// Joins those who listen.
    pub(super) fn join(&mut self, task: usize) {
        self.hub.idle += 1;
        self.hub.streams.push(Stream {
            task,
            owner: None,
            pending: None,
            looking: false,
            wanted: false,
        });
    }

    /// Subscribes unless that is done already or under way. True if it is done.
    pub(super) fn confirm(&mut self) -> bool {
        if !self.hub.is_confirmed() && !self.hub.subscribing {
            self.subscribe();
        }
        self.hub.is_confirmed()
    }

    fn subscribe(&mut self) {
        self.hub.subscribing = true;
        self.hub.asked_in = self.hub.generation;
        let deadline = self.now + self.rules.call_timeout;
        self.send(Purpose::Subscribe, Ask::Subscribe, deadline);
    }

    pub(super) fn subscribed(&mut self, done: bool) {
        self.hub.subscribing = false;
        if done && self.hub.asked_in == self.hub.generation {
            self.hub.confirmed = self.hub.generation + 1;
            self.hub.pause = 0;
            if std::mem::take(&mut self.hub.recovering) {
                self.resync();
            }
        }
        let confirmed = self.hub.is_confirmed();
        let waiting = |phase: &Phase| matches!(phase, Phase::Subscribing);
        for task in 0..self.tasks.len() {
            if waiting(&self.tasks[task].phase) {
                self.subscription_done(task, confirmed);
            }
        }
        let wanted = !self.hub.is_idle();
        if !self.hub.is_confirmed() && wanted && !self.hub.subscribing {
            // The keeper tries again until it works.
            self.hub.pause = (self.hub.pause * 2).clamp(20 * MS, 500 * MS);
            let at = self.now + self.hub.pause;
            self.wake(at, Timer::Linger { turn: u64::MAX });
        }
    }

    /// The connection that carries messages is a new one.
    pub(super) fn disrupted(&mut self) {
        self.hub.generation += 1;
        if self.hub.is_idle() {
            return;
        }
        self.hub.recovering = true;
        self.resync();
        if !self.hub.subscribing {
            self.subscribe();
        }
    }

    /// Makes every waiter look: messages may have been lost.
    fn resync(&mut self) {
        if self.rules.is(Flaw::NoResync) {
            return;
        }
        // Those who are told may leave.
        let tasks: Vec<usize> = self.hub.streams.iter().map(|stream| stream.task).collect();
        for task in tasks {
            if let Some(place) = self
                .hub
                .streams
                .iter()
                .position(|stream| stream.task == task)
            {
                self.tell(place, Hint::Resync);
            }
        }
        for (_, lease) in self.hub.ears.clone() {
            self.wanted(lease);
        }
    }

    pub(super) fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Released => self.wake_one(),
            Heard::Granted { owner, token } => self.tell_owner(&owner, Hint::Granted { token }),
            Heard::Look { owner } => self.tell_owner(&owner, Hint::Resync),
            Heard::Wanted { owner } => self.wanted_from(&owner),
            // It listens in the wrong place: it looks, and subscribes anew.
            Heard::PassedOver { owner } => {
                self.tell_owner(&owner, Hint::Resync);
                if !self.hub.subscribing {
                    self.disrupted();
                }
            }
            Heard::Nonsense => {}
        }
    }

    fn wake_one(&mut self) {
        let first = self
            .hub
            .streams
            .iter()
            .position(|stream| stream.pending.is_none());
        if let Some(place) = first {
            self.tell(place, Hint::Released);
        }
    }

    fn tell_owner(&mut self, owner: &Owner, hint: Hint) {
        let claimed = |stream: &Stream| stream.owner.as_ref() == Some(owner);
        if let Some(place) = self.hub.streams.iter().position(claimed) {
            self.tell(place, hint);
        }
    }

    /// Others want what this owner has, or is just getting.
    fn wanted_from(&mut self, owner: &Owner) {
        let ear = self.hub.ears.iter().find(|(holder, _)| holder == owner);
        if let Some((_, lease)) = ear {
            return self.wanted(*lease);
        }
        let mut streams = self.hub.streams.iter_mut();
        if let Some(stream) = streams.find(|stream| stream.owner.as_ref() == Some(owner)) {
            stream.wanted = true;
        }
    }

    fn tell(&mut self, place: usize, hint: Hint) {
        let stream = &mut self.hub.streams[place];
        stream.wanted |= hint == Hint::Resync;
        stream.pending = Some(hint);
        let task = stream.task;
        if matches!(self.tasks[task].phase, Phase::Pausing) {
            self.pause_over(task);
        }
    }

    /// Stops listening, as one who got the lock.
    pub(super) fn won(&mut self, task: usize) {
        self.hub.streams.retain(|stream| stream.task != task);
        self.nobody_listens();
    }

    /// Goes on listening as the holder of a lease. True if others want it already.
    pub(super) fn holds(&mut self, task: usize, owner: &Owner, lease: u64) -> bool {
        let wanted = self.hub.stream(task).is_some_and(|stream| stream.wanted);
        self.hub.ears.push((owner.clone(), lease));
        self.won(task);
        wanted
    }

    /// A holder stops listening.
    pub(super) fn deafen(&mut self, lease: u64) {
        let ears = self.hub.ears.len();
        self.hub.ears.retain(|(_, it)| *it != lease);
        if self.hub.ears.len() < ears {
            self.nobody_listens();
        }
    }

    /// Stops listening, and passes an unused hint on.
    pub(super) fn leave(&mut self, task: usize) {
        let Some(place) = self
            .hub
            .streams
            .iter()
            .position(|stream| stream.task == task)
        else {
            return;
        };
        let stream = self.hub.streams.remove(place);
        let unused = stream.pending == Some(Hint::Released) || stream.looking;
        if unused {
            self.wake_one();
        }
        self.nobody_listens();
    }

    fn nobody_listens(&mut self) {
        if self.hub.is_idle() {
            self.hub.idle += 1;
            let (at, turn) = (self.now + self.rules.linger, self.hub.idle);
            self.wake(at, Timer::Linger { turn });
        }
    }

    pub(super) fn linger_over(&mut self, turn: u64) {
        if turn == u64::MAX {
            if !self.hub.is_idle() {
                self.confirm();
            }
        } else if turn == self.hub.idle && self.hub.is_idle() && self.hub.confirmed != 0 {
            self.hub.confirmed = 0;
            let deadline = self.now + self.rules.call_timeout;
            self.hub.subscribing = true;
            self.send(Purpose::Unsubscribe, Ask::Unsubscribe, deadline);
        }
    }

    /// Somebody may have joined meanwhile, and the server may have processed its subscription first.
    pub(super) fn unsubscribed(&mut self) {
        self.hub.subscribing = false;
        if !self.hub.is_idle() {
            self.subscribe();
        }
    }
}
