//! The slots of a cluster: which shard serves which.

use std::collections::BTreeMap;

use locktopus_protocol::slot::SLOTS;

use crate::plan::Plan;

/// Which shard serves which slot.
#[derive(Debug)]
pub(crate) struct Slots {
    pub(crate) shards: usize,
    /// Rotates the ranges of the shards, so that the seed decides which shard has a lock.
    turn: usize,
    /// Slots that have moved.
    moved: BTreeMap<u16, usize>,
    /// Moving slots: where to, and how long each key takes, in µs.
    pub(crate) moving: BTreeMap<u16, (usize, u64)>,
    /// Grows whenever a shard gets a slot or a new primary.
    pub(crate) epochs: Vec<u64>,
    /// The slots of each shard as text; cleared by a move.
    written: Vec<Option<String>>,
}

impl Slots {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            shards: plan.shards(),
            turn: usize::try_from(plan.seed % 7).unwrap_or(0),
            moved: BTreeMap::new(),
            moving: BTreeMap::new(),
            epochs: (1..=plan.shards() as u64).collect(),
            written: vec![None; plan.shards()],
        }
    }

    pub(crate) fn owner(&self, slot: u16) -> usize {
        let range = usize::from(slot) * self.shards / usize::from(SLOTS);
        let usual = (range + self.turn) % self.shards;
        self.moved.get(&slot).copied().unwrap_or(usual)
    }

    pub(crate) fn epoch(&mut self, shard: usize) {
        let newest = self.epochs.iter().max().copied().unwrap_or(0);
        self.epochs[shard] = newest + 1;
    }

    /// A slot has moved.
    pub(crate) fn moves_to(&mut self, slot: u16, shard: usize) {
        self.moving.remove(&slot);
        self.moved.insert(slot, shard);
        self.written.fill(None);
        self.epoch(shard);
    }

    /// The slots whose keys are moving to or from a shard one by one, or have moved to it.
    pub(crate) fn carried(&self, shard: usize) -> Vec<u16> {
        let moving = self.moving.iter();
        let moving = moving.filter(|(slot, (to, _))| *to == shard || self.owner(**slot) == shard);
        let moved = self.moved.iter().filter(|(_, to)| **to == shard);
        let all = moving.map(|(slot, _)| *slot);
        all.chain(moved.map(|(slot, _)| *slot)).collect()
    }

    /// The slots of a shard, in the format of `CLUSTER NODES`.
    pub(crate) fn ranges(&mut self, shard: usize) -> String {
        if let Some(written) = &self.written[shard] {
            return written.clone();
        }
        let ranges = self.write_ranges(shard);
        self.written[shard] = Some(ranges.clone());
        ranges
    }

    fn write_ranges(&self, shard: usize) -> String {
        let mut ranges = Vec::new();
        let mut begun = None;
        for slot in 0..=SLOTS {
            let own = slot < SLOTS && self.owner(slot) == shard;
            match (begun, own) {
                (None, true) => begun = Some(slot),
                (Some(first), false) => {
                    ranges.push(format!("{first}-{}", slot - 1));
                    begun = None;
                }
                _ => {}
            }
        }
        ranges.join(" ")
    }
}
