//! Strangers come to the lock, and operators lose a number.

use super::World;
use crate::redis::{Published, Unsupported};
use crate::sim::node::LONGEST_LAG;
use crate::sim::strangers::Strangers;

impl World<'_> {
    /// Somebody takes the name for another kind, or loses the number of a semaphore and gives it anew.
    pub(super) fn meet(&mut self) {
        let node = self.primary();
        let Some(strangers) = self
            .strangers
            .filter(|_| self.nodes[node].up && !self.ended)
        else {
            return;
        };
        let now = self.now;
        self.nodes[node].at(now);
        self.nodes[node].count_listeners(self.wire, self.setup.strangers);
        let lost = self.rules.kind.is_counted() && self.rng.permille(300);
        let met = if lost {
            self.lose_number(node, strangers)
        } else {
            self.mistake(node, strangers)
        };
        self.nodes[node].at(now);
        let lag = self.rng.between(100, LONGEST_LAG);
        let replicated = self.nodes[node].replicate(now + lag);
        match met {
            Ok(published) => self.tell(node, replicated, &published),
            Err(lacking) => self.lacking = Some(lacking),
        }
    }

    fn mistake(
        &mut self,
        node: usize,
        strangers: &Strangers,
    ) -> Result<Vec<Published>, Unsupported> {
        let now = self.now;
        if !self.judge.is_in_use(self.wire, &self.nodes[node]) {
            return Ok(Vec::new());
        }
        self.counts.strange += 1;
        let server = &mut self.nodes[node].server;
        let before = server.dump();
        let heard = strangers.ask(self.lua, server, &mut self.rng)?;
        let published = server.take_published();
        self.nodes[node].at(now);
        let after = self.nodes[node].server.dump();
        self.trace.note(now, || format!("STRANGER {heard:?}"));
        self.judge.met(now, &heard, &before, &after);
        Ok(published)
    }

    fn lose_number(
        &mut self,
        node: usize,
        strangers: &Strangers,
    ) -> Result<Vec<Published>, Unsupported> {
        let (now, total) = (self.now, self.rules.total);
        self.serial += 1;
        let operation = self.serial;
        let server = &mut self.nodes[node].server;
        if server.out_of_memory {
            return Ok(Vec::new());
        }
        self.wire.layout.lose(server)?;
        let heard = strangers.give(self.lua, server, total, operation)?;
        let published = server.take_published();
        self.nodes[node].at(now);
        self.trace.note(now, || {
            format!("THE NUMBER IS LOST and given anew: {heard:?}")
        });
        let after = self.judge.look(self.wire, &self.nodes[node]);
        self.judge.counted(now, &after);
        Ok(published)
    }
}
