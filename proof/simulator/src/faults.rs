//! Faults of servers and connections. Those of processes are in `process`.

use locktopus_model::redis::Role;
use locktopus_protocol::ClientError;

use crate::event::{Event, Lasting};
use crate::node::replid;
use crate::plan::Fault;
use crate::world::{MS, World};

impl World {
    pub(crate) fn fault(&mut self, _number: usize, fault: Fault) {
        self.trace.say(self.now, || format!("-- {fault:?}"));
        match fault {
            Fault::Kill(shard) => {
                let primary = self.primaries[shard];
                if !self.nodes[primary].is_primary() || self.nodes[primary].replicas.is_empty() {
                    return;
                }
                self.stop(primary);
                let (down, found) = (
                    500 * MS + self.rng.below(2_000 * MS),
                    30 * MS + self.rng.below(400 * MS),
                );
                self.after(found, Event::Promote(primary));
                self.after(
                    down + found,
                    Event::Start {
                        node: primary,
                        keeps_data: true,
                    },
                );
            }
            Fault::Orderly(shard) | Fault::Split(shard, _) | Fault::Return(shard, _)
                if !self.nodes[self.primaries[shard]].is_primary()
                    || self.best(self.primaries[shard]).is_none() =>
            {
                return;
            }
            Fault::Orderly(shard) => self.hand_over(self.primaries[shard]),
            Fault::Split(shard, time) => {
                let primary = self.primaries[shard];
                self.promote(primary);
                self.after(time * MS, Event::Over(Lasting::Split(primary)));
            }
            Fault::Return(shard, time) => {
                let primary = self.primaries[shard];
                self.stand_still(primary);
                self.promote(primary);
                self.after(time * MS, Event::Over(Lasting::Still(primary)));
            }
            Fault::Restart(node, _, _) if !self.nodes[node].up => return,
            Fault::Restart(node, time, keeps_data) => {
                self.stop(node);
                self.after(time * MS, Event::Start { node, keeps_data });
            }
            Fault::FlushScripts(node) => self.nodes[node].scripts.clear(),
            Fault::OutOfMemory(node, time) => {
                self.nodes[node].server.out_of_memory = true;
                self.after(time * MS, Event::Over(Lasting::OutOfMemory(node)));
            }
            Fault::LacksReplicas(node, time) => {
                self.nodes[node].server.lacks_replicas = true;
                self.after(time * MS, Event::Over(Lasting::LacksReplicas(node)));
            }
            Fault::Lag(node, time) => {
                self.nodes[node].lag = time * MS;
                self.after(time * MS, Event::Over(Lasting::Lag(node)));
            }
            Fault::Break(process) => {
                for link in self.links_of(process) {
                    self.disconnect(link, "the network");
                }
            }
            Fault::Stall(process, time) => {
                let until = self.now + time * MS;
                for link in self.links_of(process) {
                    let link = &mut self.links[link];
                    link.stalled_until = link.stalled_until.max(until);
                }
            }
            Fault::SetClock(node, by) => {
                let node = &mut self.nodes[node];
                node.skew += by * MS as i64;
                node.clock_set = true;
            }
            Fault::MoveSlot(lock, takes) => {
                let name = self.names.get(lock).cloned().unwrap_or_default();
                if !self.move_slot(&name, takes) {
                    return;
                }
            }
            Fault::Misplace(process) => {
                if !self.misplace(process) {
                    return;
                }
            }
            // `run` does these.
            Fault::Suspend(..) | Fault::Sleep(..) | Fault::Die(_) => return,
        }
        self.count(fault.name());
    }

    pub(crate) fn over(&mut self, lasting: Lasting) {
        self.trace.say(self.now, || format!("-- over: {lasting:?}"));
        match lasting {
            Lasting::OutOfMemory(node) => self.nodes[node].server.out_of_memory = false,
            Lasting::LacksReplicas(node) => self.nodes[node].server.lacks_replicas = false,
            Lasting::Lag(node) => self.nodes[node].lag = 0,
            Lasting::Split(node) => {
                if self.nodes[node].is_primary() && self.primary_of(node) != node {
                    self.demote(node);
                    for link in self.links_to(node) {
                        self.disconnect(link, "it is a replica now");
                    }
                }
            }
            Lasting::Still(node) => self.promote_again(node),
            Lasting::Stays(link) => {
                self.hear_sentinels(link);
                let (to, group) = (self.links[link].to, self.links[link].group);
                if to.is_some_and(|to| to != self.primaries[group]) {
                    self.disconnect(link, "the sentinels name another primary");
                }
            }
        }
    }

    /// Freezes a server. Its clients lose their connections.
    fn stand_still(&mut self, node: usize) {
        for link in self.links_to(node) {
            self.disconnect(link, "the server is silent");
        }
        for link in 0..self.links.len() {
            if self.links[link].listens_at == node {
                self.stop_listening(link);
            }
        }
        let server = &mut self.nodes[node];
        server.up = false;
        server.stream += 1;
        server.waiting.clear();
    }

    /// Stops a server. It loses its script cache and its subscriptions.
    fn stop(&mut self, node: usize) {
        self.stand_still(node);
        let server = &mut self.nodes[node];
        server.scripts.clear();
        server.server.listeners.clear();
        server.server.out_of_memory = false;
        server.server.lacks_replicas = false;
    }

    pub(crate) fn start(&mut self, node: usize, keeps_data: bool) {
        if self.nodes[node].up {
            return;
        }
        self.trace.say(self.now, || {
            format!("-- n{node} starts, keeps its data: {keeps_data}")
        });
        let (id, now) = (self.number(), self.now);
        let leads = self.primary_of(node) == node;
        let server = &mut self.nodes[node];
        server.up = true;
        server.started = now;
        server.run_id = id;
        server.server.replid = replid(id);
        if !keeps_data {
            server.server.keys.clear();
        }
        if !keeps_data {
            self.witness.forget(node);
            self.tears_slots(node);
        }
        if leads {
            self.nodes[node].server.role = Role::Primary;
            self.lead(node);
        } else {
            self.demote(node);
        }
    }

    /// Marks the slots that move or have moved: this server lost some of their keys and others did
    /// not.
    fn tears_slots(&mut self, node: usize) {
        let shard = self.shard_of(node);
        let carried = self.slots.as_ref().map(|slots| slots.carried(shard));
        for slot in carried.unwrap_or_default() {
            self.witness.tears(slot);
        }
    }

    /// The replica that has received most from a primary.
    fn best(&self, primary: usize) -> Option<usize> {
        let replicas = self.nodes[primary].replicas.keys().copied();
        let replicas = replicas.filter(|node| self.nodes[*node].up);
        replicas.max_by_key(|node| (self.nodes[*node].applied, std::cmp::Reverse(*node)))
    }

    /// Promotes the best replica, with the data it has.
    pub(crate) fn promote(&mut self, old: usize) {
        if self.primary_of(old) != old {
            return;
        }
        let Some(new) = self.best(old) else {
            // No replica is up: tries again.
            self.after(100 * MS, Event::Promote(old));
            return;
        };
        let missing = self.nodes[old].offset - self.nodes[new].applied;
        if missing > 0 {
            self.count("failover with loss");
            self.tears_slots(new);
        }
        self.trace.say(self.now, || {
            format!("-- n{new} becomes the primary, and misses {missing} writes")
        });
        self.take_over(new, old);
    }

    /// The successor dies, and the frozen server is promoted again. It knows nothing of the time in
    /// between.
    fn promote_again(&mut self, node: usize) {
        if self.nodes[node].up {
            return;
        }
        let between = self.primary_of(node);
        self.trace.say(self.now, || {
            format!("-- n{between} dies, and n{node} is promoted again as it was")
        });
        self.stop(between);
        let down = 500 * MS + self.rng.below(2_000 * MS);
        self.after(
            down,
            Event::Start {
                node: between,
                keeps_data: true,
            },
        );
        self.nodes[node].up = true;
        self.name_primary(node, between);
    }

    fn take_over(&mut self, new: usize, old: usize) {
        let id = self.number();
        let node = &mut self.nodes[new];
        node.server.role = Role::Primary;
        node.server.replid = replid(id);
        node.offset = node.applied;
        self.name_primary(new, old);
    }

    /// Makes another server the primary, and tells the sentinels or the other shards.
    fn name_primary(&mut self, new: usize, old: usize) {
        let shard = self.shard_of(old);
        self.primaries[shard] = new;
        self.failovers[shard] += 1;
        if let Some(slots) = &mut self.slots {
            slots.epoch(shard);
        }
        if shard > 0 {
            self.count("failover of another shard");
        }
        self.nodes[old].stream += 1;
        self.nodes[old].replicas.clear();
        self.lead(new);
        for link in 0..self.links.len() {
            let learns = 5 * MS + self.rng.below(1_500 * MS);
            self.after(learns, Event::Over(Lasting::Stays(link)));
        }
    }

    /// Begins a new history, which the other servers follow.
    fn lead(&mut self, node: usize) {
        self.nodes[node].stream += 1;
        self.nodes[node].replicas.clear();
        for other in 0..self.nodes.len() {
            if other != node
                && self.shard_of(other) == self.shard_of(node)
                && self.nodes[other].up
                && self.nodes[other].server.role == Role::Replica
            {
                self.nodes[other].stream += 1;
                self.follow(other);
            }
        }
    }

    fn follow(&mut self, node: usize) {
        let stream = self.nodes[node].stream;
        let takes = 10 * MS + self.rng.below(200 * MS);
        self.after(takes, Event::Resync { node, stream });
    }

    fn demote(&mut self, node: usize) {
        let server = &mut self.nodes[node];
        server.server.role = Role::Replica;
        server.stream += 1;
        server.replicas.clear();
        // As in Redis: a server that becomes a replica unblocks its `WAIT`s with an error.
        let waiting: Vec<_> = server.waiting.drain(..).collect();
        for mut waiting in waiting {
            let told = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";
            waiting.replies.push(Err(ClientError::rejected(told)));
            self.answer(&waiting.request, waiting.replies);
        }
        self.follow(node);
    }

    /// A planned failover: the replica takes over once it has all data.
    fn hand_over(&mut self, old: usize) {
        let Some(new) = self.best(old) else {
            return;
        };
        let (keys, offset) = (self.nodes[old].server.keys.clone(), self.nodes[old].offset);
        self.nodes[new].server.keys = keys;
        self.witness.forget(new);
        self.nodes[new].applied = offset;
        self.trace.say(self.now, || {
            format!("-- n{new} has everything of n{old}, and becomes the primary")
        });
        self.take_over(new, old);
        self.demote(old);
    }

    /// Moves the listening connection to a replica.
    fn misplace(&mut self, process: usize) -> bool {
        let mut links = self.links_of(process).into_iter();
        let found = links.find_map(|link| {
            let primary = self.primaries[self.links[link].group];
            let listens = self.links[link].listens_at == primary;
            let replica = self.best(primary)?;
            (listens && !self.links[link].topics.is_empty()).then_some((link, primary, replica))
        });
        let Some((link, primary, replica)) = found else {
            return false;
        };
        for topic in self.links[link].topics.clone() {
            self.uncount(primary, &topic);
            *self.nodes[replica]
                .server
                .listeners
                .entry(topic)
                .or_default() += 1;
        }
        self.links[link].listens_at = replica;
        true
    }
}
