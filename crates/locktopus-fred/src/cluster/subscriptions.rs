//! Subscriptions on a cluster.
//!
//! A shard channel must be on the node that serves its slot. A plain channel may be on any node, so
//! it stays on its node while that is up.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::slot_map::Redirect;
use locktopus_protocol::{Channel, ChannelFlavour, ClientError, HostPort, Route};

use super::Cluster;
use super::node::Node;
use super::shared::{Shared, Table};
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
        let mut leaving: HashMap<HostPort, (Vec<Bytes>, Vec<Bytes>)> = HashMap::new();
        {
            let mut placed = self.shared.placements.lock();
            for channel in channels {
                let Some(place) = placed.remove(channel) else {
                    continue;
                };
                let (plain, sharded) = leaving.entry(place).or_default();
                match channel.flavour {
                    ChannelFlavour::Plain => plain.push(channel.name.clone()),
                    ChannelFlavour::Sharded => sharded.push(channel.name.clone()),
                }
            }
        }
        for node in self.shared.map().nodes() {
            let Some((plain, sharded)) = leaving.remove(node.address()) else {
                continue;
            };
            // Without the connection its subscriptions are gone too.
            if let Some(conn) = node.open_messages().and_then(|link| link.current()) {
                messages::unsubscribe(&conn, plain, sharded).await?;
            }
        }
        Ok(())
    }
}

/// The channels for one node.
struct Group {
    node: Arc<Node>,
    plain: Vec<Bytes>,
    sharded: Vec<Bytes>,
}

fn group(shared: &Shared, channels: Vec<Channel>) -> Result<Vec<Group>, ClientError> {
    let map = shared.map();
    let mut groups: Vec<Group> = Vec::new();
    for channel in channels {
        let node = place(shared, &map, &channel).ok_or_else(|| {
            ClientError::NotSent(format!(
                "no primary of the cluster serves slot {}",
                key_slot(&channel.name)
            ))
        })?;
        let found = groups
            .iter()
            .position(|group| group.node.address() == node.address());
        let index = found.unwrap_or_else(|| {
            groups.push(Group {
                node,
                plain: Vec::new(),
                sharded: Vec::new(),
            });
            groups.len() - 1
        });
        match channel.flavour {
            ChannelFlavour::Plain => groups[index].plain.push(channel.name),
            ChannelFlavour::Sharded => groups[index].sharded.push(channel.name),
        }
    }
    Ok(groups)
}

fn place(shared: &Shared, map: &Table, channel: &Channel) -> Option<Arc<Node>> {
    let owner = map.owner(key_slot(&channel.name));
    if channel.flavour == ChannelFlavour::Sharded {
        return owner.map(Arc::clone);
    }
    let up = |node: &&Arc<Node>| node.commands().current().is_some();
    let place = shared.placements.lock().get(channel).cloned();
    let settled = map
        .nodes()
        .iter()
        .find(|node| Some(node.address()) == place.as_ref());
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
        let conn = match self.node.messages().conn().await {
            Ok(conn) => conn,
            Err(unreachable) => return self.hand_over(shared, unreachable).await,
        };
        if !self.plain.is_empty() {
            messages::subscribe_plain(&conn, &self.plain).await?;
            self.settle(shared, &self.plain, ChannelFlavour::Plain);
        }
        let mut elsewhere = Vec::new();
        let mut confirmed = Vec::new();
        let mut failure = None;
        let outcomes = messages::subscribe_sharded(&conn, &self.sharded).await;
        for (name, outcome) in self.sharded.iter().zip(outcomes) {
            match outcome {
                Ok(()) => confirmed.push(name.clone()),
                Err(ClientError::Rejected { code, message }) if code == "MOVED" => {
                    if let Some(to) = Redirect::parse(&message, self.node.address()) {
                        shared.moved(&to);
                    }
                    let flavour = ChannelFlavour::Sharded;
                    elsewhere.push(Channel {
                        name: name.clone(),
                        flavour,
                    });
                }
                Err(other) => failure = Some(other),
            }
        }
        self.settle(shared, &confirmed, ChannelFlavour::Sharded);
        match failure {
            Some(failure) => Err(failure),
            None => Ok(elsewhere),
        }
    }

    /// After the node was unreachable: returns its channels if another node can take them now.
    async fn hand_over(
        self,
        shared: &Shared,
        unreachable: ClientError,
    ) -> Result<Vec<Channel>, ClientError> {
        if let Some(name) = self.sharded.first() {
            let route = Route::Slot(key_slot(name));
            shared.successor(&self.node, route, unreachable).await?;
        } else {
            shared
                .successor(&self.node, Route::Any, unreachable)
                .await?;
        }
        let sharded = self
            .sharded
            .into_iter()
            .map(|name| (name, ChannelFlavour::Sharded));
        let plain = self
            .plain
            .into_iter()
            .map(|name| (name, ChannelFlavour::Plain));
        Ok(sharded
            .chain(plain)
            .map(|(name, flavour)| Channel { name, flavour })
            .collect())
    }

    fn settle(&self, shared: &Shared, names: &[Bytes], flavour: ChannelFlavour) {
        let mut placed = shared.placements.lock();
        for name in names {
            placed.insert(
                Channel {
                    name: name.clone(),
                    flavour,
                },
                self.node.address().clone(),
            );
        }
    }
}
