//! The processes: what reaches them, and what they do then.

use std::rc::Rc;

use super::World;
use super::event::{Arrival, Event};
use crate::sim::ask::Ask;
use crate::sim::client::{Act, How, Input, Timer};
use crate::sim::judge::Belief;
use crate::sim::net::LOCAL;
use crate::sim::rules::Micros;

impl World<'_> {
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
                let belief = Belief {
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
}
