//! Tracks which server carries each channel, and receives pushed messages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use locktopus_protocol::{Channel, ChannelFlavour, HostPort, PushEvent, lock};
use redis::{PushInfo, PushKind, Value};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use crate::connection::health::{Health, Listener};
use crate::topology::{Location, Topology};

/// The state of the subscriptions. Listens on every connection that carries one.
pub(crate) struct Placements {
    topology: Arc<Topology>,
    events: UnboundedSender<PushEvent>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Used in a cluster.
    placed: HashMap<Channel, Location>,
    /// Unsubscribe requests for shard channels that the server has not confirmed yet. Any other
    /// confirmation means that the server itself ended the subscription.
    leaving: HashMap<Bytes, usize>,
}

impl Placements {
    pub(crate) fn new(topology: Arc<Topology>, events: UnboundedSender<PushEvent>) -> Self {
        Self {
            topology,
            events,
            state: Mutex::default(),
        }
    }

    /// The place of every channel, if there is only one.
    fn only_place(&self) -> Option<Location> {
        match &*self.topology {
            Topology::Single(_) => Some(Location::Primary),
            Topology::Cluster(_) => None,
        }
    }

    /// Notes where a channel is subscribed. Returns its previous place, if that differs.
    pub(crate) fn put(&self, channel: &Channel, place: &Location) -> Option<Location> {
        if self.only_place().is_some() {
            return None;
        }
        let before = lock(&self.state)
            .placed
            .insert(channel.clone(), place.clone());
        before.filter(|before| before != place)
    }

    /// Notes that a channel is no longer wanted. Returns its place.
    pub(crate) fn take(&self, channel: &Channel) -> Option<Location> {
        self.only_place()
            .or_else(|| lock(&self.state).placed.remove(channel))
    }

    /// The place of the channel with this name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<Location> {
        if let Some(place) = self.only_place() {
            return Some(place);
        }
        let state = lock(&self.state);
        let mut placed = state.placed.iter();
        placed
            .find(|(channel, _)| channel.name == name)
            .map(|(_, place)| place.clone())
    }

    /// Notes that an unsubscribe request is about to be sent.
    pub(crate) fn expect_end(&self, channel: &Channel) {
        if channel.flavour == ChannelFlavour::Sharded {
            *lock(&self.state)
                .leaving
                .entry(channel.name.clone())
                .or_default() += 1;
        }
    }

    /// Notes that an unsubscribe request was confirmed, or never will be. False if there was none.
    pub(crate) fn ended(&self, name: &[u8]) -> bool {
        let leaving = &mut lock(&self.state).leaving;
        let Some(count) = leaving.get_mut(name) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            leaving.remove(name);
        }
        true
    }

    fn send(&self, event: PushEvent) {
        // The receiver may be gone.
        let _ = self.events.send(event);
    }
}

impl Listener for Placements {
    fn pushed(&self, health: &Arc<Health>, push: PushInfo) {
        match push.kind {
            // Ignore messages from a connection that was given up for being on the wrong server.
            PushKind::Message | PushKind::SMessage if health.is_dead() => {}
            PushKind::Message | PushKind::SMessage => {
                let mut parts = push.data.into_iter();
                if let (Some(Value::BulkString(channel)), Some(Value::BulkString(payload))) =
                    (parts.next(), parts.next())
                {
                    let (channel, payload) = (channel.into(), payload.into());
                    self.send(PushEvent::Message { channel, payload });
                }
            }
            PushKind::SUnsubscribe => {
                let Some(Value::BulkString(name)) = push.data.first() else {
                    return;
                };
                // redis-rs takes this push for the answer to a command, so later answers on this
                // connection may be off by one. It must be replaced in any case.
                if !self.ended(name) {
                    health.kill("a slot moved to another node");
                }
            }
            _ => {}
        }
    }

    fn lost(&self, _: &HostPort, reason: &'static str) {
        self.topology.mark_stale();
        self.send(PushEvent::Disrupted { reason });
    }

    fn disturbances(&self) -> watch::Receiver<u64> {
        self.topology.disturbances()
    }

    fn still_right(&self, server: &HostPort) -> bool {
        match &*self.topology {
            Topology::Single(single) => single.is_current(server),
            Topology::Cluster(_) => {
                let state = lock(&self.state);
                let here =
                    |place: &Location| matches!(place, Location::Node(node) if node == server);
                state
                    .placed
                    .iter()
                    .filter(|(_, place)| here(place))
                    // A slot without an owner is served, if at all, where it was.
                    .all(|(channel, place)| {
                        self.topology
                            .location_of(channel)
                            .is_none_or(|right| right == *place)
                    })
            }
        }
    }
}
