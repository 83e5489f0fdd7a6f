//! The servers: what arrives is run, judged, answered and told to those who listen.

use super::World;
use super::event::{Arrival, Event};
use crate::redis::{Published, Unsupported};
use crate::sim::ask::{Answer, Ask};
use crate::sim::client::Input;
use crate::sim::judge::Execution;
use crate::sim::node::LONGEST_LAG;
use crate::sim::rules::Micros;

impl World<'_> {
    pub(super) fn arrive(&mut self, arrival: Arrival) -> Result<(), Unsupported> {
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
}
