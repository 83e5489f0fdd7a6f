//! A cluster: servers redirect clients, and slots move to other shards while their locks are held.

use locktopus_model::redis::{Reply as Told, Role};
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{Channel, ChannelFlavour, PushEvent};

use crate::event::{Delivery, Event, LISTENING};
use crate::flaw::Flaw;
use crate::link::Topic;
use crate::world::{MS, World};

/// The keys of a command.
fn keys(words: &[Vec<u8>]) -> &[Vec<u8>] {
    match words[0].as_slice() {
        b"EVAL" | b"EVALSHA" => {
            let count = std::str::from_utf8(&words[2]).ok();
            let count: usize = count.and_then(|count| count.parse().ok()).unwrap_or(0);
            &words[3..3 + count]
        }
        b"ROLE" | b"INFO" | b"PUBSUB" | b"CLUSTER" | b"WAIT" | b"TIME" => &[],
        _ => &words[1..2],
    }
}

impl World {
    /// The shard that a server belongs to.
    pub(crate) fn shard_of(&self, node: usize) -> usize {
        self.nodes[node].shard
    }

    /// The primary of a server's shard, as the other servers know it.
    pub(crate) fn primary_of(&self, node: usize) -> usize {
        self.primaries[self.shard_of(node)]
    }

    /// The redirect or `TRYAGAIN` that a cluster server answers instead of running a command, if
    /// any.
    pub(crate) fn redirect(
        &mut self,
        node: usize,
        words: &[Vec<u8>],
        asking: bool,
    ) -> Option<Told> {
        let slots = self.slots.as_ref()?;
        let keys = keys(words);
        let slot = key_slot(keys.first()?);
        assert!(
            keys.iter().all(|key| key_slot(key) == slot),
            "CROSSSLOT: {keys:?}"
        );
        let (owner, shard) = (slots.owner(slot), self.shard_of(node));
        let server = &self.nodes[node].server;
        let here = keys
            .iter()
            .filter(|key| server.keys.peek(key, server.now()).is_some())
            .count();
        let primary = server.role == Role::Primary;
        let moving = slots.moving.get(&slot).map(|(to, _)| *to);
        let answer = match moving {
            _ if primary && owner == shard && moving.is_none() => return None,
            Some(_) if primary && owner == shard && here == keys.len() => return None,
            Some(_) if primary && owner == shard && here > 0 => {
                "TRYAGAIN Multiple keys request during rehashing of slot".to_owned()
            }
            Some(to) if primary && owner == shard => format!("ASK {slot} n{}", self.primaries[to]),
            Some(to) if primary && to == shard && asking => {
                if keys.len() == 1 || here == keys.len() {
                    return None;
                }
                "TRYAGAIN Multiple keys request during rehashing of slot".to_owned()
            }
            _ => format!("MOVED {slot} n{}", self.primaries[owner]),
        };
        self.count(match answer.as_bytes()[0] {
            b'M' => "MOVED",
            b'A' => "ASK",
            _ => "TRYAGAIN",
        });
        Some(Told::Error(answer))
    }

    /// `CLUSTER NODES`. Clients read only the server's own line.
    pub(crate) fn cluster_nodes(&mut self, node: usize) -> Told {
        let shard = self.shard_of(node);
        let (epoch, ranges) = self.slots.as_mut().map_or((0, String::new()), |slots| {
            (slots.epochs[shard], slots.ranges(shard))
        });
        let (role, ranges) = match self.nodes[node].server.role {
            Role::Primary => ("master", ranges),
            Role::Replica => ("slave", String::new()),
        };
        let line =
            format!("id{node} 127.0.0.1:{node} myself,{role} - 0 0 {epoch} connected {ranges}\n");
        Told::Bulk(line.into_bytes())
    }

    /// Begins to move the slot of a lock. Returns `false` if it is moving already or there is no
    /// cluster.
    pub(crate) fn move_slot(&mut self, name: &str, takes: u64) -> bool {
        let shards = self.primaries.len() as u64;
        let further = 1 + self.rng.below(shards.saturating_sub(1).max(1));
        let Some(slots) = &mut self.slots else {
            return false;
        };
        let slot = key_slot(name.as_bytes());
        let to = (slots.owner(slot) + usize::try_from(further).unwrap_or(1)) % slots.shards;
        if slots.moving.contains_key(&slot) {
            return false;
        }
        slots.moving.insert(slot, (to, takes * MS / 6));
        self.after(takes * MS / 6, Event::MoveKey(slot));
        true
    }

    /// Moves the next key of a slot, or the slot itself once no key is left.
    pub(crate) fn move_key(&mut self, slot: u16) {
        let Some((owner, (to, each))) = self.slots.as_ref().and_then(|slots| {
            let moving = slots.moving.get(&slot).copied();
            moving.map(|moving| (slots.owner(slot), moving))
        }) else {
            return;
        };
        let [source, target] = [owner, to].map(|shard| self.primaries[shard]);
        if !self.nodes[source].is_primary() || !self.nodes[target].is_primary() {
            self.after(100 * MS, Event::MoveKey(slot));
            return;
        }
        for node in [source, target] {
            self.nodes[node].set_time(self.now);
        }
        let server = &self.nodes[source].server;
        let keys = server.keys.iter(server.now()).map(|(key, _)| key);
        let keys: Vec<_> = keys
            .filter(|key| key_slot(key) == slot)
            .map(<[u8]>::to_vec)
            .collect();
        let stay = self.flaw == Some(Flaw::LeavesKeysBehind);
        if keys.is_empty() || stay {
            self.slot_moved(slot, owner, to);
            return;
        }
        let at = usize::try_from(self.rng.below(keys.len() as u64)).unwrap_or(0);
        let (key, now) = (&keys[at], self.nodes[source].server.now());
        let mut entry = self.nodes[source].server.keys.peek(key, now).cloned();
        // MIGRATE carries the remaining time of a key, not its deadline, since clocks differ.
        let ahead = self.nodes[target].server.now() - now;
        if let Some(end) = entry.as_mut().and_then(|entry| entry.expires_at.as_mut()) {
            *end += ahead;
        }
        self.nodes[target].server.write((key.clone(), entry));
        self.nodes[source].server.write((key.clone(), None));
        self.trace.say(self.now, || {
            format!(
                "-- {} moves from n{source} to n{target}",
                String::from_utf8_lossy(key)
            )
        });
        self.spread(source);
        self.spread(target);
        let pause = each / 2 + self.rng.below(each + 1);
        self.after(pause, Event::MoveKey(slot));
    }

    /// The slot has moved. Listeners of its channels hear of that, or not.
    fn slot_moved(&mut self, slot: u16, from: usize, to: usize) {
        if let Some(slots) = &mut self.slots {
            slots.moves_to(slot, to);
        }
        let [source, target] = [from, to].map(|shard| self.primaries[shard]);
        self.witness.slot_moved(slot, source, target);
        self.count("slot moved");
        self.trace.say(self.now, || {
            format!("-- slot {slot} is served by shard {to}")
        });
        // A server deletes all keys of a slot that it no longer serves.
        for node in 0..self.nodes.len() {
            if self.nodes[node].up && self.shard_of(node) == from {
                let keys = self.nodes[node].server.keys.iter(i64::MIN);
                let keys = keys.map(|(key, _)| key).filter(|key| key_slot(key) == slot);
                for key in keys.map(<[u8]>::to_vec).collect::<Vec<_>>() {
                    self.nodes[node].server.keys.apply((key, None));
                }
            }
        }
        for link in 0..self.links.len() {
            if self.shard_of(self.links[link].listens_at) != from {
                continue;
            }
            let gone = |topic: &&Topic| topic.0 && key_slot(&topic.1) == slot;
            let gone: Vec<_> = self.links[link]
                .topics
                .iter()
                .filter(gone)
                .cloned()
                .collect();
            let node = self.links[link].listens_at;
            for topic in &gone {
                self.links[link].topics.remove(topic);
                self.uncount(node, topic);
            }
            // One client library says nothing when that happens.
            if !gone.is_empty() && self.rng.permille(500) {
                let (travel, epoch) = (self.travels(), self.listening_epoch(link));
                let at = self.links[link].arrival(LISTENING, true, self.now, travel);
                let reason = "a slot moved away";
                let event = PushEvent::Disrupted { reason };
                self.deliver(link, at, Delivery::Push { epoch, event });
            }
        }
    }

    /// The redirect that a cluster server answers to a subscription, if any.
    pub(crate) fn redirect_listener(
        &mut self,
        node: usize,
        channels: &[Channel],
    ) -> Option<String> {
        let slots = self.slots.as_ref()?;
        let shard = self.shard_of(node);
        let sharded = channels.iter();
        let mut sharded = sharded.filter(|it| it.flavour == ChannelFlavour::Sharded);
        let elsewhere = sharded.find_map(|channel| {
            let slot = key_slot(&channel.name);
            (slots.owner(slot) != shard).then(|| (slot, slots.owner(slot)))
        });
        let (slot, owner) = elsewhere?;
        self.count("MOVED");
        Some(format!("MOVED {slot} n{}", self.primaries[owner]))
    }
}
