//! A modelled server in the simulation: its clock, who listens, and what its replica has not received yet.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use crate::redis::{Change, Keyspace, ScriptTime, Server};
use crate::sim::rules::{MS, Micros};
use crate::sim::wire::Wire;

/// One server.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) server: Server,
    /// The server's clock minus true time.
    pub(super) offset: Micros,
    pub(super) up: bool,
    /// A server does one thing at a time.
    pub(super) busy_until: Micros,
    /// When the next one who has to wait has its turn.
    next_turn: Micros,
    /// Processes that listen.
    pub(super) listeners: BTreeSet<usize>,
    /// Processes that listen to this server's replica: they hear what is said here, but nobody here knows of them.
    pub(super) distant: BTreeSet<usize>,
    /// The channels that somebody listens to, and whether they and the server's own counts are right.
    heard: Rc<BTreeSet<Vec<u8>>>,
    counted: bool,
    /// What was written and when a replica has it.
    stream: VecDeque<(Micros, Vec<Change>)>,
    /// When the replica has the last of it.
    replicated_at: Micros,
}

impl Node {
    pub(super) fn new(offset: Micros, script_time: ScriptTime, number: usize) -> Self {
        let mut server = Server::default();
        server.script_time = script_time;
        server.replid = format!("{number:040x}");
        Self {
            server,
            offset,
            up: true,
            busy_until: 0,
            next_turn: 0,
            listeners: BTreeSet::new(),
            distant: BTreeSet::new(),
            heard: Rc::default(),
            counted: false,
            stream: VecDeque::new(),
            replicated_at: 0,
        }
    }

    /// Sets the server's clock to a true time.
    pub(super) fn at(&mut self, now: Micros) {
        self.server.clock = EPOCH + now + self.offset;
    }

    /// A server time in microseconds as true time.
    pub(super) fn true_time(&self, server: i64) -> Micros {
        server - EPOCH - self.offset
    }

    /// When it is the turn of a request that is there at `now`, if not at once. First come, first served.
    pub(super) fn turn(&mut self, now: Micros, waited: bool) -> Option<Micros> {
        let free = now >= self.busy_until && (waited || now >= self.next_turn);
        if free {
            return None;
        }
        let at = self.busy_until.max(self.next_turn);
        self.next_turn = at + 1;
        Some(at)
    }

    /// A process listens here, or to the replica.
    pub(super) fn listen(&mut self, process: usize, to_replica: bool) {
        self.stop_listening(process);
        if to_replica {
            self.distant.insert(process);
        } else {
            self.listeners.insert(process);
            self.counted = false;
        }
    }

    pub(super) fn stop_listening(&mut self, process: usize) {
        self.counted &= !self.listeners.remove(&process);
        self.distant.remove(&process);
    }

    /// Who hears what is said on a channel: here, and at the replica.
    pub(super) fn who_hears(&self, wire: &Wire, channel: &[u8]) -> [Vec<usize>; 2] {
        let hears = |process: &usize| wire.channels(*process).iter().any(|it| it == channel);
        [&self.listeners, &self.distant].map(|all| all.iter().copied().filter(hears).collect())
    }

    /// Makes the counts that scripts can ask for agree with who listens.
    /// With `strangers`, clients of another library listen to announcements.
    pub(super) fn count_listeners(&mut self, wire: &Wire, strangers: bool) {
        if std::mem::replace(&mut self.counted, true) {
            return;
        }
        self.server.listeners.clear();
        for &process in &self.listeners {
            for channel in wire.channels(process).iter() {
                *self
                    .server
                    .listeners
                    .entry((false, channel.clone()))
                    .or_default() += 1;
            }
        }
        let channels = self.server.listeners.keys();
        self.heard = Rc::new(channels.map(|(_, channel)| channel.clone()).collect());
        if strangers {
            let announced = (false, wire.announced().to_vec());
            *self.server.listeners.entry(announced).or_default() += 1;
        }
    }

    /// The channels that somebody listened to when they were last counted.
    pub(super) fn heard(&self) -> Rc<BTreeSet<Vec<u8>>> {
        Rc::clone(&self.heard)
    }

    /// Notes what was written for the replica, which has it at `at` at the earliest. A stream has an order: nothing
    /// overtakes. Returns when the replica has it, and what was said meanwhile.
    pub(super) fn replicate(&mut self, at: Micros) -> Micros {
        let at = self.replicated_at.max(at);
        self.replicated_at = at;
        let changes = self.server.take_changes();
        if !changes.is_empty() {
            self.stream.push_back((at, changes));
        }
        at
    }

    /// What a replica has at a time.
    pub(super) fn replica(&mut self, base: &mut Keyspace, now: Micros) {
        while self.stream.front().is_some_and(|(at, _)| *at <= now) {
            let changes = self.stream.pop_front().map(|(_, changes)| changes);
            changes
                .into_iter()
                .flatten()
                .for_each(|change| base.apply(change));
        }
    }
}

/// How far behind a replica is at most.
pub(super) const LONGEST_LAG: Micros = 20 * MS;

/// True time 0 on a server's clock.
pub(super) const EPOCH: Micros = 1_760_000_000_000_000;
