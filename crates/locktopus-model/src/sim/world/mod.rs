//! The simulation: one thing happens after the other, in the order of a virtual clock.

mod event;
mod faults;
mod meeting;
mod processes;
mod serving;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::Rng;
use crate::lua::Interpreter;
use crate::redis::{Keyspace, Role, Unsupported};
use crate::sim::actor::Actor;
use crate::sim::client::{Habits, Input, Process};
use crate::sim::config::Config;
use crate::sim::counts::Counts;
use crate::sim::judge::{Judge, Verdict};
use crate::sim::net::Net;
use crate::sim::node::Node;
use crate::sim::rules::{MS, Micros, Rules};
use crate::sim::setup::Setup;
use crate::sim::strangers::Strangers;
use crate::sim::trace::Trace;
use crate::sim::wire::Wire;
use event::{Event, Successor};

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

    fn at(&mut self, at: Micros, event: Event) {
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
    fn primary(&self) -> usize {
        self.nodes.len() - 1
    }

    fn spawn(&mut self) {
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

    /// A replica takes the place of the primary, with what it has.
    fn take_over(&mut self, successor: Successor) {
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
