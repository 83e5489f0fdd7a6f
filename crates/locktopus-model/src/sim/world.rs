//! The simulation: one thing happens after the other, in the order of a virtual clock.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use super::actor::Actor;
use super::ask::{Answer, Ask};
use super::client::{Act, Habits, How, Input, Process, Timer};
use super::judge::{Execution, Judge, Verdict};
use super::net::{LOCAL, Net};
use super::node::Node;
use super::rules::{MS, Micros, Rules};
use super::setup::Setup;
use super::strangers::Strangers;
use super::trace::Trace;
use super::wire::Wire;
use super::{Config, Counts};
use crate::Rng;
use crate::lua::Interpreter;
use crate::redis::{Keyspace, Published, Role, Unsupported};

/// Something that will happen.
#[derive(Debug)]
pub(super) enum Event {
    /// A request arrives at a server.
    Arrive(Arrival),
    /// Something reaches a process.
    Reach {
        process: usize,
        input: Input,
    },
    Resume {
        process: usize,
    },
    Fault(Fault),
    /// Judge whether something has been overdue since then.
    Overdue {
        since: u64,
    },
    /// Judge whether a waiter still shows life.
    Silent {
        process: usize,
        task: usize,
    },
    End,
}

/// A request at a server's door.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    node: usize,
    process: usize,
    call: u64,
    ask: Rc<Ask>,
    /// It had to wait, because the server was busy.
    waited: bool,
}

/// Something that goes wrong.
#[derive(Debug)]
pub(super) enum Fault {
    Crash,
    Pause(Micros),
    /// A process stops hearing messages, and notices after this time, or never.
    Cut(Option<Micros>),
    Step(Micros),
    Drought(bool),
    /// Somebody takes the name for another kind, or loses the number of a semaphore.
    Stranger,
    /// The primary dies; a replica takes over after a while.
    Die {
        outage: Micros,
        clock: Micros,
    },
    /// The primary and its replica change places, in order: nothing is lost, and nobody is told.
    ChangePlaces {
        outage: Micros,
    },
    TakeOver(Box<Successor>),
    /// Servers forget a process that is gone.
    Forget {
        process: usize,
    },
}

/// The replica that takes over.
pub(super) struct Successor {
    pub(super) base: Keyspace,
    pub(super) offset: Micros,
    /// The old primary is its replica, and whoever listened to the one still does.
    pub(super) in_order: bool,
}

impl fmt::Debug for Successor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Successor")
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

/// The whole of one schedule.
pub(super) struct World<'a> {
    pub(super) lua: &'a Interpreter,
    pub(super) wire: &'a Wire,
    pub(super) setup: Setup,
    pub(super) rules: Rc<Rules>,
    pub(super) habits: Rc<Habits>,
    pub(super) now: Micros,
    pub(super) serial: u64,
    events: BTreeMap<(Micros, u64), Event>,
    pub(super) rng: Rng,
    pub(super) net: Net,
    pub(super) nodes: Vec<Node>,
    /// What the replica of the primary has.
    pub(super) replica: Keyspace,
    pub(super) actors: Vec<Actor>,
    pub(super) judge: Judge,
    pub(super) trace: Trace,
    pub(super) counts: Counts,
    pub(super) ended: bool,
    pub(super) strangers: Option<&'a Strangers>,
    /// What the model lacked for a fault.
    pub(super) lacking: Option<Unsupported>,
}

/// How far behind a replica is at most.
pub(super) const LONGEST_LAG: Micros = 20 * MS;

/// How long after the end everything may take to be given back.
const AFTERMATH: Micros = 4_000 * MS;

impl<'a> World<'a> {
    pub(super) fn new(
        lua: &'a Interpreter,
        wire: &'a Wire,
        config: &Config,
        seed: u64,
        trace: bool,
    ) -> Self {
        let mut rng = Rng::new(seed);
        let setup = Setup::draw(&mut rng, config);
        let (rules, habits) = (Rc::new(setup.rules.clone()), Rc::new(setup.habits.clone()));
        let mut world = Self {
            lua,
            wire,
            now: 0,
            serial: 0,
            events: BTreeMap::new(),
            net: Net::new(rng.fork(), setup.weather, setup.trouble.mishap()),
            nodes: vec![Node::new(
                rng.between(-3_600_000, 3_600_000) * MS,
                setup.script_time,
                0,
            )],
            replica: Keyspace::default(),
            actors: Vec::new(),
            judge: Judge::new(&setup),
            trace: Trace::new(trace),
            counts: Counts::default(),
            ended: false,
            strangers: None,
            lacking: None,
            setup,
            rules,
            habits,
            rng,
        };
        world.trace.note(0, || format!("{:?}", world.setup));
        for _ in 0..world.setup.processes {
            world.spawn();
        }
        world.plan_faults();
        world.at(world.setup.end, Event::End);
        world
    }

    /// Runs to the end, or to the first violation.
    pub(super) fn run(&mut self) -> Result<Verdict, Unsupported> {
        self.wire
            .layout
            .prepare(&mut self.nodes[0].server, self.rules.total)?;
        self.nodes[0].replicate(0);
        while let Some(((now, _), event)) = self.events.pop_first() {
            self.now = now;
            self.counts.events += 1;
            if self.ended && now > self.last_moment() {
                break;
            }
            self.happen(event)?;
            if let Some(lacking) = self.lacking.take() {
                return Err(lacking);
            }
            if let Some(violation) = self.judge.violation() {
                return Ok(Err(violation));
            }
        }
        self.now = self.now.max(self.last_moment());
        self.nodes.iter_mut().for_each(|node| node.at(self.now));
        self.judge.at_the_end(self.now, self.wire, &self.nodes);
        Ok(self.judge.violation().map_or(Ok(()), Err))
    }

    /// When everything must have been given back.
    fn last_moment(&self) -> Micros {
        let steps = i64::try_from(self.setup.faults.steps).unwrap_or(0) + 1;
        self.setup.end + self.rules.lease * 2 * steps + self.rules.longest_place() * 2 + AFTERMATH
    }

    pub(super) fn at(&mut self, at: Micros, event: Event) {
        self.serial += 1;
        self.events.insert((at.max(self.now), self.serial), event);
    }

    fn happen(&mut self, event: Event) -> Result<(), Unsupported> {
        match event {
            Event::Arrive(arrival) => self.arrive(arrival)?,
            Event::Reach { process, input } => self.reach(process, input),
            Event::Resume { process } => self.resume(process),
            Event::Fault(fault) => self.strike(fault),
            Event::Overdue { since } => self.judge.overdue(self.now, since),
            Event::Silent { process, task } => {
                if let Some(at) = self.judge.silent(self.now, process, task) {
                    self.at(at, Event::Silent { process, task });
                }
            }
            Event::End => self.end(),
        }
        Ok(())
    }

    /// From now on nothing goes wrong and nothing begins.
    fn end(&mut self) {
        self.ended = true;
        self.net.weather = self.net.weather.calm();
        self.nodes
            .iter_mut()
            .for_each(|node| node.server.out_of_memory = false);
        for process in 0..self.actors.len() {
            self.at(
                self.now,
                Event::Reach {
                    process,
                    input: Input::Stop,
                },
            );
        }
    }

    /// The server that clients talk to.
    pub(super) fn primary(&self) -> usize {
        self.nodes.len() - 1
    }

    pub(super) fn spawn(&mut self) {
        let tasks = 1 + self.rng.below(self.setup.tasks);
        let id = self.actors.len();
        let tasks = usize::try_from(tasks).unwrap_or(1);
        let process = Process::new(id, tasks, &self.rules, &self.habits, self.rng.fork());
        let actor = Actor::new(process, &mut self.rng, self.rules.drift_ppm);
        self.actors.push(actor);
        self.at(
            self.now,
            Event::Reach {
                process: id,
                input: Input::Begin,
            },
        );
    }

    fn arrive(&mut self, arrival: Arrival) -> Result<(), Unsupported> {
        let now = self.now;
        if !self.nodes[arrival.node].up {
            return Ok(());
        }
        if let Some(at) = self.nodes[arrival.node].turn(now, arrival.waited) {
            self.at(
                at,
                Event::Arrive(Arrival {
                    waited: true,
                    ..arrival
                }),
            );
            return Ok(());
        }
        let Arrival {
            node,
            process,
            call,
            ask,
            ..
        } = arrival;
        self.nodes[node].at(now);
        match &*ask {
            Ask::Subscribe if self.actors[process].alive => {
                let to_replica = !self.ended && self.rng.permille(self.setup.faults.misplaced);
                self.nodes[node].listen(process, to_replica);
            }
            Ask::Unsubscribe => {
                self.nodes[node].stop_listening(process);
            }
            _ => {}
        }
        if matches!(*ask, Ask::Subscribe | Ask::Unsubscribe) {
            self.answer(process, call, Answer::Done, None);
            return Ok(());
        }
        self.execute(node, process, call, &ask)
    }

    /// Runs a script, has it judged, and sends what came of it.
    fn execute(
        &mut self,
        node: usize,
        process: usize,
        call: u64,
        ask: &Ask,
    ) -> Result<(), Unsupported> {
        let now = self.now;
        self.nodes[node].count_listeners(self.wire, self.setup.strangers);
        let before = self.judge.look(self.wire, &self.nodes[node]);
        let started = self.nodes[node].server.clock;
        let ran = self
            .wire
            .run(self.lua, &mut self.nodes[node].server, process, ask)?;
        self.nodes[node].busy_until = now + self.nodes[node].server.clock - started;
        self.nodes[node].at(now);
        self.counts.scripts += 1;
        self.trace.note(now, || {
            let (answer, server) = (&ran.answer, &self.nodes[node].server);
            format!(
                "server {node} runs {ask:?} of {process}: {answer:?}\n{}",
                server.dump()
            )
        });
        let execution = Execution {
            now,
            ask,
            ran: &ran,
            before,
        };
        self.judge
            .executed(&execution, self.wire, &self.nodes[node], &mut self.counts);
        let lag = self.rng.between(100, LONGEST_LAG);
        let replicated = self.nodes[node].replicate(now + lag);
        self.answer(process, call, ran.answer.clone(), ran.micros);
        self.tell(node, replicated, &ran.published);
        Ok(())
    }

    /// Sends what was published to those who listen; those on the replica hear it when that has what was written.
    pub(super) fn tell(&mut self, node: usize, replicated: Micros, published: &[Published]) {
        for published in published {
            let heard = Input::Heard(self.wire.heard(published));
            let [here, at_replica] = self.nodes[node].who_hears(self.wire, &published.channel);
            for process in here {
                self.reach_later(process, self.now, &heard);
            }
            for process in at_replica {
                self.reach_later(process, replicated, &heard);
            }
        }
    }

    fn answer(&mut self, process: usize, call: u64, answer: Answer, micros: Option<i64>) {
        self.reach_later(
            process,
            self.now,
            &Input::Answer {
                call,
                answer,
                micros,
            },
        );
    }

    /// Sends something to a process over the network at a time.
    fn reach_later(&mut self, process: usize, from: Micros, input: &Input) {
        for delay in self.net.deliveries() {
            let input = input.clone();
            self.at(from + delay, Event::Reach { process, input });
        }
    }

    pub(super) fn reach(&mut self, process: usize, input: Input) {
        let now = self.now;
        let actor = &mut self.actors[process];
        if !actor.alive {
            return;
        }
        if actor.paused {
            actor.backlog.push(input);
            return;
        }
        if !matches!(input, Input::Timer(_)) {
            self.trace
                .note(now, || format!("process {process} gets {input:?}"));
        }
        let acts = actor.process.on(actor.clock.local(now), input);
        acts.into_iter().for_each(|act| self.act(process, act));
    }

    fn act(&mut self, process: usize, act: Act) {
        let (now, clock) = (self.now, self.actors[process].clock);
        if !matches!(act, Act::Wake { .. }) {
            self.trace
                .note(now, || format!("process {process} does {act:?}"));
        }
        match act {
            Act::Send { call, ask, task } => {
                if let Some(task) = task {
                    self.judge.tried(now, process, task);
                }
                self.send(process, call, ask);
            }
            Act::Wake { at, timer } => self.wake(process, at, timer),
            Act::Believe {
                owner,
                mode,
                permits,
                until,
                tokens,
                how,
            } => {
                self.counts.grants += 1;
                self.counts.pushed += u64::from(how == How::Pushed);
                self.counts.again += u64::from(how == How::Kept);
                let until = clock.true_time(until);
                let node = self.primary();
                self.nodes[node].at(now);
                let belief = super::judge::Belief {
                    process,
                    owner,
                    mode,
                    permits,
                    until,
                };
                self.judge
                    .believes(now, belief, tokens, self.wire, &self.nodes[node]);
            }
            Act::BelieveUntil { owner, until } => {
                let until = clock.true_time(until);
                let node = self.primary();
                self.nodes[node].at(now);
                self.judge
                    .believes_until(now, &owner, until, self.wire, &self.nodes[node]);
            }
            Act::Disbelieve { owner } => self.judge.disbelieves(now, &owner),
            Act::GaveUp { owner } => self.judge.gave_up(&owner),
            Act::Wants { task, wants } => {
                if self.judge.wants(now, process, task, wants) {
                    self.at(now, Event::Silent { process, task });
                }
            }
        }
        self.look_for_stalls();
    }

    /// Has the judge come back when the lock has been free and wanted for too long.
    pub(super) fn look_for_stalls(&mut self) {
        if let Some((at, since)) = self.judge.next_overdue() {
            self.at(at, Event::Overdue { since });
        }
    }

    fn send(&mut self, process: usize, call: u64, ask: Ask) {
        let (node, ask) = (self.primary(), Rc::new(ask));
        for delay in self.net.deliveries() {
            let arrival = Arrival {
                node,
                process,
                call,
                ask: Rc::clone(&ask),
                waited: false,
            };
            self.at(self.now + delay, Event::Arrive(arrival));
        }
    }

    fn wake(&mut self, process: usize, at: Micros, timer: Timer) {
        // Nobody is woken right on time.
        let late = self.rng.between(0, LOCAL);
        let at = self.actors[process].clock.true_time(at) + late;
        self.at(
            at,
            Event::Reach {
                process,
                input: Input::Timer(timer),
            },
        );
    }

    /// A replica takes the place of the primary, with what it has.
    pub(super) fn take_over(&mut self, successor: Successor) {
        let mut node = Node::new(successor.offset, self.setup.script_time, self.nodes.len());
        node.server.keys = successor.base;
        node.server.role = Role::Primary;
        if successor.in_order {
            let old = self.primary();
            node.offset = self.nodes[old].offset;
            node.listeners = std::mem::take(&mut self.nodes[old].distant);
            node.distant = std::mem::take(&mut self.nodes[old].listeners);
        }
        self.nodes.push(node);
        self.replica = self.nodes[self.primary()].server.keys.clone();
    }

    /// What is to be told of a violation.
    pub(super) fn into_trace(self) -> Vec<String> {
        self.trace.into_lines()
    }
}
