//! Tracks which node carries each channel.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{Channel, ChannelFlavour, HostPort, lock};

use super::shared::Table;

/// The confirmed subscriptions and their nodes.
#[derive(Default)]
pub(super) struct Placements {
    nodes: Mutex<HashMap<Channel, HostPort>>,
}

impl Placements {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<Channel, HostPort>> {
        lock(&self.nodes)
    }

    /// The node that carries the channel with this name.
    pub(super) fn find(&self, name: &[u8]) -> Option<HostPort> {
        let placed = self.lock();
        let mut placed = placed.iter();
        placed
            .find(|(channel, _)| channel.name == name)
            .map(|(_, place)| place.clone())
    }

    /// Whether any shard channel is subscribed.
    pub(super) fn any_sharded(&self) -> bool {
        self.lock()
            .keys()
            .any(|channel| channel.flavour == ChannelFlavour::Sharded)
    }

    /// Whether a shard channel is on a node that no longer serves its slot. True once per move.
    pub(super) fn any_moved(&self, map: &Table) -> bool {
        let mut placed = self.lock();
        let before = placed.len();
        placed.retain(|channel, place| {
            channel.flavour == ChannelFlavour::Plain
                || map
                    .owner(key_slot(&channel.name))
                    .is_none_or(|owner| owner.address == *place)
        });
        placed.len() != before
    }
}
