//! Subscriptions on a cluster.
//!
//! A shard channel must be on the node that serves its slot. A plain channel may be on any node, so
//! it stays on its node while that is up.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::slot_map::Redirect;
use locktopus_protocol::{Channel, ChannelFlavour, ClientError, HostPort, Route};

use super::Cluster;
use super::shared::{Node, Shared, Table};
use crate::connection::link::Link;
use crate::connection::messages;

/// How many times to send channels on to another node before failing.
const ROUNDS: usize = 5;

impl Cluster {
    /// Subscribes each channel on the right node. Returns when all are confirmed.
    pub(crate) async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        let shared = &*self.shared;
        shared.check_open()?;
        let mut missing = channels.to_vec();
        for _round in 0..ROUNDS {
            let groups = group(shared, std::mem::take(&mut missing))?;
            let outcomes = groups.into_iter().map(|group| group.subscribe(shared));
            for outcome in join_all(outcomes).await {
                missing.extend(outcome?);
            }
            if missing.is_empty() {
                return Ok(());
            }
        }
        Err(ClientError::NotSent(format!(
            "{} shard channels were sent from node to node {ROUNDS} times",
            missing.len()
        )))
    }

    /// Unsubscribes on the nodes that carry the channels.
    pub(crate) async fn unsubscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        let mut leaving: HashMap<HostPort, Vec<Channel>> = HashMap::new();
        {
            let mut placed = self.shared.placements.lock();
            for channel in channels {
                if let Some(place) = placed.remove(channel) {
                    leaving.entry(place).or_default().push(channel.clone());
                }
            }
        }
        for node in self.shared.map.table().nodes() {
            let Some(channels) = leaving.remove(&node.address) else {
                continue;
            };
            // Without the connection its subscriptions are gone too.
            let conn = node.links.open_messages().and_then(Link::current);
            if let Some(conn) = conn {
                messages::unsubscribe(&conn, &channels).await?;
            }
        }
        Ok(())
    }
}

/// The channels for one node.
struct Group {
    node: Arc<Node>,
    channels: Vec<Channel>,
}

fn group(shared: &Shared, channels: Vec<Channel>) -> Result<Vec<Group>, ClientError> {
    let map = shared.map.table();
    let mut groups: Vec<Group> = Vec::new();
    for channel in channels {
        let node = place(shared, &map, &channel).ok_or_else(|| {
            let slot = key_slot(&channel.name);
            ClientError::NotSent(format!("no primary of the cluster serves slot {slot}"))
        })?;
        let mut known = groups.iter_mut();
        match known.find(|group| group.node.address == node.address) {
            Some(group) => group.channels.push(channel),
            None => groups.push(Group {
                node,
                channels: vec![channel],
            }),
        }
    }
    Ok(groups)
}

fn place(shared: &Shared, map: &Table, channel: &Channel) -> Option<Arc<Node>> {
    let owner = map.owner(key_slot(&channel.name));
    if channel.flavour == ChannelFlavour::Sharded {
        return owner.map(Arc::clone);
    }
    let up = |node: &&Arc<Node>| node.is_up();
    let place = shared.placements.lock().get(channel).cloned();
    let settled = place.and_then(|place| map.node_at(&place));
    let node = settled
        .filter(up)
        .or_else(|| owner.filter(up))
        .or_else(|| map.nodes().iter().find(up));
    node.or(owner)
        .or_else(|| map.nodes().first())
        .map(Arc::clone)
}

impl Group {
    /// Subscribes. Returns the channels that now belong elsewhere.
    async fn subscribe(self, shared: &Shared) -> Result<Vec<Channel>, ClientError> {
        let conn = match self.node.links.messages().conn().await {
            Ok(conn) => conn,
            Err(unreachable) => return self.hand_over(shared, unreachable).await,
        };
        let outcomes = messages::subscribe(&conn, &self.channels).await;
        let address = &self.node.address;
        let (mut elsewhere, mut failure) = (Vec::new(), None);
        for (channel, outcome) in self.channels.into_iter().zip(outcomes) {
            match outcome {
                Ok(()) => {
                    shared.placements.lock().insert(channel, address.clone());
                }
                Err(ClientError::Rejected { code, message }) if code == "MOVED" => {
                    if let Some(to) = Redirect::parse(&message, address) {
                        shared.moved(&to);
                    }
                    elsewhere.push(channel);
                }
                Err(other) => failure = Some(other),
            }
        }
        failure.map_or(Ok(elsewhere), Err)
    }

    /// After the node was unreachable: returns its channels if another node can take them now.
    async fn hand_over(
        self,
        shared: &Shared,
        unreachable: ClientError,
    ) -> Result<Vec<Channel>, ClientError> {
        let is_sharded = |channel: &&Channel| channel.flavour == ChannelFlavour::Sharded;
        let sharded = self.channels.iter().find(is_sharded);
        let route = sharded.map_or(Route::Any, |channel| Route::Slot(key_slot(&channel.name)));
        shared.successor(&self.node, route, unreachable).await?;
        Ok(self.channels)
    }
}
