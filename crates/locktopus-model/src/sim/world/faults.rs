//! What goes wrong in a schedule, and when.

use super::World;
use super::event::{Event, Fault, Successor};
use crate::sim::actor::OUTAGE;
use crate::sim::client::Input;
use crate::sim::rules::{MS, Micros};
use crate::sim::setup::Trouble;

impl World<'_> {
    /// Draws the faults of the schedule.
    pub(super) fn plan_faults(&mut self) {
        let faults = self.setup.faults;
        if let Trouble::Cut { at, notice } = self.setup.trouble {
            self.at(at, Event::Fault(Fault::Cut(Some(notice))));
        }
        for _ in 0..faults.crashes {
            self.plan(Fault::Crash);
        }
        for _ in 0..faults.strangers {
            self.plan(Fault::Stranger);
        }
        for _ in 0..faults.pauses {
            let pause = self.rng.between(MS, faults.longest_pause);
            self.plan(Fault::Pause(pause));
        }
        for _ in 0..faults.cuts {
            let notice = self.rng.between(0, self.rules.lease / 2);
            let notice = self.rng.permille(800).then_some(notice);
            self.plan(Fault::Cut(notice));
        }
        for _ in 0..faults.droughts {
            let at = self.rng.between(0, self.setup.end);
            let length = self.rng.between(MS, self.rules.lease);
            self.at(at, Event::Fault(Fault::Drought(true)));
            self.at(at + length, Event::Fault(Fault::Drought(false)));
        }
        self.plan_in_turn(faults.steps, |world| {
            // Forward by less than the margin allows for, once in a lease; backward by much more.
            let (forward, back) = (world.rules.clock_step - MS, world.rules.lease);
            let step = if world.rng.permille(500) {
                world.rng.between(0, forward)
            } else {
                -world.rng.between(0, back)
            };
            Fault::Step(step)
        });
        self.plan_in_turn(faults.changes, |world| {
            let outage = world.rng.between(OUTAGE.0, OUTAGE.1);
            Fault::ChangePlaces { outage }
        });
        self.plan_in_turn(faults.failovers, |world| {
            let outage = world.rng.between(OUTAGE.0, OUTAGE.1);
            // The new clock is not further behind than the outage was long.
            let clock = world.rng.between(-outage * 9 / 10, 1_000 * MS);
            Fault::Die { outage, clock }
        });
    }

    fn plan(&mut self, fault: Fault) {
        let at = self.rng.between(0, self.setup.end);
        self.at(at, Event::Fault(fault));
    }

    /// Faults that must not come close together.
    fn plan_in_turn(&mut self, count: u64, fault: impl Fn(&mut Self) -> Fault) {
        let mut at = 0;
        for _ in 0..count {
            at += self.rules.lease * 5 / 4 + OUTAGE.1 + self.rng.between(0, self.setup.end / 3);
            if at < self.setup.end {
                let fault = fault(self);
                self.at(at, Event::Fault(fault));
            }
        }
    }

    /// A fault happens.
    pub(super) fn strike(&mut self, fault: Fault) {
        let now = self.now;
        self.trace.note(now, || format!("FAULT {fault:?}"));
        match fault {
            Fault::Crash => self.crash(),
            Fault::Stranger => self.meet(),
            Fault::Pause(length) => self.pause(length),
            Fault::Cut(notice) => self.cut(notice),
            Fault::Step(by) => self.nodes.iter_mut().for_each(|node| node.offset += by),
            Fault::Drought(dry) => {
                let dry = dry && !self.ended;
                self.nodes
                    .iter_mut()
                    .for_each(|node| node.server.out_of_memory = dry);
            }
            Fault::Die { outage, clock } => self.die(outage, clock),
            Fault::ChangePlaces { outage } => self.change_places(outage),
            Fault::TakeOver(successor) => {
                let in_order = successor.in_order;
                self.take_over(*successor);
                if !in_order {
                    self.disrupt_all();
                }
            }
            Fault::Forget { process } => {
                self.nodes
                    .iter_mut()
                    .for_each(|node| node.stop_listening(process));
            }
        }
    }

    fn somebody(&mut self) -> Option<usize> {
        let running = |(id, actor): (usize, &crate::sim::actor::Actor)| {
            (actor.alive && !actor.paused).then_some(id)
        };
        let running: Vec<usize> = self.actors.iter().enumerate().filter_map(running).collect();
        (!running.is_empty()).then(|| *self.rng.pick(&running))
    }

    /// A process dies, and another is started in its place.
    fn crash(&mut self) {
        if self.ended {
            return;
        }
        let Some(process) = self.somebody() else {
            return;
        };
        self.trace
            .note(self.now, || format!("process {process} dies"));
        self.actors[process].alive = false;
        self.judge.died(self.now, process);
        // A server notices at once, or, if the whole machine is gone, much later.
        let notice = if self.rng.permille(600) {
            MS
        } else {
            2 * self.rules.lease
        };
        self.at(self.now + notice, Event::Fault(Fault::Forget { process }));
        self.spawn();
        self.look_for_stalls();
    }

    fn pause(&mut self, length: Micros) {
        let Some(process) = self.somebody() else {
            return;
        };
        self.actors[process].paused = true;
        self.judge.paused(self.now, process, true);
        self.at(self.now + length, Event::Resume { process });
        self.look_for_stalls();
    }

    pub(super) fn resume(&mut self, process: usize) {
        self.trace
            .note(self.now, || format!("process {process} goes on"));
        self.actors[process].paused = false;
        self.judge.paused(self.now, process, false);
        let backlog = std::mem::take(&mut self.actors[process].backlog);
        backlog
            .into_iter()
            .for_each(|input| self.reach(process, input));
        self.look_for_stalls();
    }

    /// A process stops hearing messages, and notices after a while, or never.
    fn cut(&mut self, notice: Option<Micros>) {
        let Some(process) = self.somebody() else {
            return;
        };
        self.nodes
            .iter_mut()
            .for_each(|node| node.stop_listening(process));
        if let Some(notice) = notice {
            self.at(
                self.now + notice,
                Event::Reach {
                    process,
                    input: Input::Disrupted,
                },
            );
        }
    }

    fn die(&mut self, outage: Micros, clock: Micros) {
        let node = self.primary();
        if self.ended || !std::mem::replace(&mut self.nodes[node].up, false) {
            return;
        }
        let mut base = std::mem::take(&mut self.replica);
        self.nodes[node].replica(&mut base, self.now);
        let offset = self.nodes[node].offset + clock;
        let successor = Box::new(Successor {
            base,
            offset,
            in_order: false,
        });
        self.at(self.now + outage, Event::Fault(Fault::TakeOver(successor)));
    }

    /// The primary stops taking requests, its replica catches up and takes over.
    fn change_places(&mut self, outage: Micros) {
        let node = self.primary();
        if self.ended || !std::mem::replace(&mut self.nodes[node].up, false) {
            return;
        }
        let mut base = std::mem::take(&mut self.replica);
        self.nodes[node].replica(&mut base, Micros::MAX);
        let successor = Box::new(Successor {
            base,
            offset: self.nodes[node].offset,
            in_order: true,
        });
        self.at(self.now + outage, Event::Fault(Fault::TakeOver(successor)));
    }

    fn disrupt_all(&mut self) {
        for process in 0..self.actors.len() {
            let notice = self.rng.between(0, 20 * MS);
            self.at(
                self.now + notice,
                Event::Reach {
                    process,
                    input: Input::Disrupted,
                },
            );
        }
    }
}
