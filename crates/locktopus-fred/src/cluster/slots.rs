//! Who serves which hash slot, with the links to its nodes.

use std::collections::HashMap;
use std::sync::Arc;

use locktopus_protocol::HostPort;
use locktopus_protocol::slot::SLOTS;
use locktopus_protocol::slot_map::{Redirect, SlotRange};

use super::node::Node;

const NOBODY: u16 = u16::MAX;

/// An immutable slot table. Changes make a new one, so readers never wait.
#[derive(Clone)]
pub(super) struct SlotMap {
    owners: Box<[u16]>,
    nodes: Vec<Arc<Node>>,
}

impl SlotMap {
    /// A table in which nobody serves anything.
    pub(super) fn empty() -> Self {
        Self {
            owners: vec![NOBODY; usize::from(SLOTS)].into(),
            nodes: Vec::new(),
        }
    }

    /// The table that `ranges` describe. Nodes that `self` knows already keep their connections.
    pub(super) fn replaced_by(
        &self,
        ranges: &[SlotRange],
        mut make: impl FnMut(&HostPort) -> Arc<Node>,
    ) -> Self {
        let mut next = Self::empty();
        let mut numbers = HashMap::new();
        for range in ranges {
            let number = *numbers.entry(&range.primary).or_insert_with(|| {
                let known = self
                    .nodes
                    .iter()
                    .find(|node| *node.address() == range.primary);
                next.nodes
                    .push(known.map_or_else(|| make(&range.primary), Arc::clone));
                next.nodes.len() - 1
            });
            let span = usize::from(range.first)..=usize::from(range.last);
            next.owners[span].fill(u16::try_from(number).unwrap_or(NOBODY));
        }
        next
    }

    /// This table with one slot moved.
    pub(super) fn with_moved(
        &self,
        to: &Redirect,
        make: impl FnOnce(&HostPort) -> Arc<Node>,
    ) -> Self {
        let mut next = self.clone();
        let number = next
            .nodes
            .iter()
            .position(|node| *node.address() == to.node);
        let number = number.unwrap_or_else(|| {
            next.nodes.push(make(&to.node));
            next.nodes.len() - 1
        });
        next.owners[usize::from(to.slot)] = u16::try_from(number).unwrap_or(NOBODY);
        next
    }

    /// Whether both say the same of every slot.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        let addresses = |map: &Self| -> Vec<HostPort> {
            let nodes = map.nodes.iter();
            nodes.map(|node| node.address().clone()).collect()
        };
        self.owners == other.owners && addresses(self) == addresses(other)
    }

    /// The node that serves `slot`.
    pub(super) fn owner(&self, slot: u16) -> Option<&Arc<Node>> {
        self.nodes
            .get(usize::from(*self.owners.get(usize::from(slot))?))
    }

    /// All primaries that serve at least one slot, as far as known.
    pub(super) fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }
}
