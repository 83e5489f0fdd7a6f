//! A lock server, its clients and its failovers in virtual time, with optional mistakes.
//!
//! Nanoseconds stand for milliseconds here: only their order matters.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use locktopus_history::{
    Checker, Event, FailReason, Grant, History, LockingSet, LostUpdates, Mode, Options, Record,
    ReleaseOutcome, Verdict, Write, WriteOutcome,
};

use super::lives::Dice;

/// The mistakes of the lock; none by default.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mistakes {
    pub(crate) release_of_anybody: bool,
    pub(crate) validity_from_reply: bool,
    pub(crate) counted_tokens: bool,
    pub(crate) no_rejoin_delay: bool,
}

const LEASE: u64 = 1_000;
const CLIENTS: u32 = 4;
const UNTIL: u64 = 200_000;
/// Writes of this last period are lost when the server fails over.
const LAG: u64 = 60;

#[derive(Clone, Copy, Default)]
struct Server {
    owner: Option<u64>,
    lapses: u64,
    counter: u64,
    closed_until: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Failover,
    Ask(u32),
    /// The request arrives, then its answer; with when it was sent.
    AskArrives(u32, u64),
    Answer(u32, u64, Option<u64>),
    Read(u32),
    Store(u32),
    Release(u32),
    ReleaseArrives(u64),
}

/// A store of values that may check tokens.
#[derive(Default)]
struct Resource {
    largest: u64,
    values: Vec<u64>,
    decisions: u64,
}

#[derive(Clone, Default)]
struct Client {
    attempt: u64,
    token: u64,
    seen: [Vec<u64>; 2],
    issued: u64,
}

struct Simulation {
    mistakes: Mistakes,
    dice: Dice,
    now: u64,
    steps: BinaryHeap<Reverse<(u64, u64, Step)>>,
    scheduled: u64,
    server: Server,
    past: BTreeMap<u64, Server>,
    clients: Vec<Client>,
    /// The first one checks tokens.
    resources: [Resource; 2],
    sets: [LockingSet; 2],
    records: Vec<Record>,
}

/// Runs about a thousand turns and fifty failovers.
pub(crate) fn run(mistakes: Mistakes, seed: u64) -> Verdict {
    let mut simulation = Simulation {
        mistakes,
        dice: Dice(seed),
        now: 0,
        steps: BinaryHeap::new(),
        scheduled: 0,
        server: Server::default(),
        past: BTreeMap::new(),
        clients: vec![Client::default(); CLIENTS as usize],
        resources: Default::default(),
        sets: Default::default(),
        records: Vec::new(),
    };
    for client in 0..CLIENTS {
        simulation.after(1, Step::Ask(client));
    }
    simulation.after(3_000, Step::Failover);
    while let Some(Reverse((at, _, step))) = simulation.steps.pop() {
        simulation.now = at;
        simulation.step(step);
    }
    let [checked, unchecked] = [0, 1].map(|at| {
        let values = simulation.resources[at].values.iter().copied();
        simulation.sets[at].judge(values)
    });
    Checker::new()
        .options(Options {
            reaction: std::time::Duration::ZERO,
            ..Options::default()
        })
        .lost_updates(LostUpdates { unchecked, checked })
        .check(&History::from_records(simulation.records))
}

impl Simulation {
    fn after(&mut self, delay: u64, step: Step) {
        self.scheduled += 1;
        let at = self.now + delay;
        self.steps.push(Reverse((at, self.scheduled, step)));
    }

    fn record(&mut self, worker: u32, event: Event) {
        let at = self.now;
        self.records.push(Record { at, worker, event });
    }

    /// Mostly quick, sometimes as slow as half a lease.
    fn delay(&mut self) -> u64 {
        let slow = self.dice.percent(5);
        self.dice.between(1, if slow { LEASE / 2 } else { 15 })
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Failover => self.fail_over(),
            Step::Ask(client) => self.ask(client),
            Step::AskArrives(client, sent) => {
                let token = self.serve(client);
                let delay = self.delay();
                self.after(delay, Step::Answer(client, sent, token));
            }
            Step::Answer(client, sent, token) => self.answer(client, sent, token),
            Step::Read(client) => self.read(client),
            Step::Store(client) => self.store(client),
            Step::Release(client) => self.release(client),
            Step::ReleaseArrives(id) => {
                if self.server.owner == Some(id) || self.mistakes.release_of_anybody {
                    self.server.owner = None;
                    self.changed();
                }
            }
        }
    }

    fn changed(&mut self) {
        self.past.insert(self.now, self.server);
    }

    fn fail_over(&mut self) {
        let (verb, target) = ("kill".to_owned(), "primary".to_owned());
        self.record(CLIENTS, Event::Fault { verb, target });
        let before = self.now - LAG;
        let known = self.past.range(..=before).next_back();
        self.server = known.map_or_else(Server::default, |(_, server)| *server);
        if !self.mistakes.no_rejoin_delay {
            self.server.closed_until = self.now + LEASE;
        }
        self.past.clear();
        self.changed();
        if self.now < UNTIL {
            let delay = self.dice.between(2_500, 5_000);
            self.after(delay, Step::Failover);
        }
    }

    fn id(&self, client: u32) -> u64 {
        u64::from(client) << 32 | self.clients[client as usize].attempt
    }

    fn ask(&mut self, client: u32) {
        if self.now >= UNTIL {
            return;
        }
        self.clients[client as usize].attempt += 1;
        let attempt = self.clients[client as usize].attempt;
        let lock = "a".to_owned();
        let started = Event::Started {
            attempt,
            lock,
            holder: None,
        };
        self.record(client, started);
        let delay = self.delay();
        self.after(delay, Step::AskArrives(client, self.now));
    }

    fn serve(&mut self, client: u32) -> Option<u64> {
        let held = self.server.owner.is_some() && self.now < self.server.lapses;
        if held || self.now < self.server.closed_until {
            return None;
        }
        self.server.owner = Some(self.id(client));
        self.server.lapses = self.now + LEASE;
        self.server.counter += 1;
        if !self.mistakes.counted_tokens {
            self.server.counter = self.server.counter.max(self.now);
        }
        self.changed();
        Some(self.server.counter)
    }

    fn answer(&mut self, client: u32, sent: u64, token: Option<u64>) {
        let attempt = self.clients[client as usize].attempt;
        let since = if self.mistakes.validity_from_reply {
            self.now
        } else {
            sent
        };
        let valid_until = since + LEASE;
        let Some(token) = token.filter(|_| valid_until > self.now) else {
            let failed = Event::Failed {
                attempt,
                reason: FailReason::Held,
                waited_until: None,
            };
            self.record(client, failed);
            let delay = self.dice.between(5, 60);
            return self.after(delay, Step::Ask(client));
        };
        self.clients[client as usize].token = token;
        let grant = Grant {
            token: Some(token),
            valid_until,
            mode: Mode::Exclusive,
            safety: "simulated".to_owned(),
        };
        self.record(client, Event::Granted { attempt, grant });
        self.record(client, Event::UseStarted { attempt });
        self.after(1, Step::Read(client));
    }

    fn read(&mut self, client: u32) {
        let seen = [0, 1].map(|at| self.resources[at].values.clone());
        let resource = &mut self.resources[0];
        let token = self.clients[client as usize].token;
        // A reader shows its token as well, or an older write could slip in behind it.
        resource.largest = resource.largest.max(token);
        self.clients[client as usize].seen = seen;
        self.clients[client as usize].issued = self.now;
        // Some sleep through the end of their lease.
        let sleeps = self.dice.percent(6);
        let delay = if sleeps {
            self.dice.between(LEASE, 2 * LEASE)
        } else {
            self.dice.between(10, 60)
        };
        self.after(delay, Step::Store(client));
    }

    fn store(&mut self, client: u32) {
        let Client {
            attempt,
            token,
            seen,
            ..
        } = std::mem::take(&mut self.clients[client as usize]);
        self.clients[client as usize].attempt = attempt;
        self.clients[client as usize].token = token;
        let element = self.id(client);
        let refused = token < self.resources[0].largest;
        for (at, mut values) in seen.into_iter().enumerate() {
            if at == 0 && refused {
                self.sets[at].refused(element);
            } else {
                values.push(element);
                self.resources[at].values = values;
                self.sets[at].acknowledged(element);
            }
        }
        let resource = &mut self.resources[0];
        resource.decisions += 1;
        let write = Write {
            resource: "checked".to_owned(),
            token,
            issued: self.now,
            outcome: if refused {
                WriteOutcome::Rejected
            } else {
                WriteOutcome::Accepted
            },
            order: Some(resource.decisions),
        };
        self.record(client, Event::Wrote { attempt, write });
        self.record(client, Event::UseEnded { attempt });
        self.after(1, Step::Release(client));
    }

    fn release(&mut self, client: u32) {
        let attempt = self.clients[client as usize].attempt;
        self.record(client, Event::ReleaseStarted { attempt });
        let (id, delay) = (self.id(client), self.delay());
        self.after(delay, Step::ReleaseArrives(id));
        let outcome = ReleaseOutcome::Ok;
        self.record(client, Event::ReleaseEnded { attempt, outcome });
        let delay = self.dice.between(1, 40);
        self.after(delay, Step::Ask(client));
    }
}
