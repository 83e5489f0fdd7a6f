//! Which channel is subscribed to on which server, and what the server says about it unasked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use locktopus_protocol::{Channel, ChannelFlavour, HostPort, PushEvent};
use redis::{PushInfo, PushKind, Value};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use crate::connection::health::{Health, Listener};
use crate::connection::sync::locked;
use crate::topology::{Place, Topology};

/// The books of the subscriptions; listens on every connection that carries some.
pub(crate) struct Places {
    topology: Arc<Topology>,
    events: UnboundedSender<PushEvent>,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    placed: HashMap<Channel, Place>,
    /// Requests to unsubscribe from shard channels that the server has yet to confirm. Any other
    /// confirmation means that the server ended the subscription by itself.
    leaving: HashMap<Bytes, usize>,
}

impl Places {
    pub(crate) fn new(topology: Arc<Topology>, events: UnboundedSender<PushEvent>) -> Self {
        Self {
            topology,
            events,
            books: Mutex::default(),
        }
    }

    /// Notes that a channel is subscribed to. Returns where it was before, if elsewhere.
    pub(crate) fn put(&self, channel: &Channel, place: &Place) -> Option<Place> {
        let before = locked(&self.books)
            .placed
            .insert(channel.clone(), place.clone());
        before.filter(|before| before != place)
    }

    /// Notes that a channel is no longer wanted. Returns where it is.
    pub(crate) fn take(&self, channel: &Channel) -> Option<Place> {
        locked(&self.books).placed.remove(channel)
    }

    /// Where a channel of this name is.
    pub(crate) fn find(&self, name: &[u8]) -> Option<Place> {
        let books = locked(&self.books);
        let mut placed = books.placed.iter();
        placed
            .find(|(channel, _)| channel.name == name)
            .map(|(_, place)| place.clone())
    }

    /// Notes that a request to unsubscribe is about to be sent.
    pub(crate) fn expect_end(&self, channel: &Channel) {
        if channel.flavour == ChannelFlavour::Sharded {
            *locked(&self.books)
                .leaving
                .entry(channel.name.clone())
                .or_default() += 1;
        }
    }

    /// Notes that a request to unsubscribe was confirmed, or never will be. False if there was none.
    pub(crate) fn ended(&self, name: &[u8]) -> bool {
        let leaving = &mut locked(&self.books).leaving;
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
        // Without a receiver nobody is interested any more.
        let _ = self.events.send(event);
    }
}

impl Listener for Places {
    fn pushed(&self, health: &Arc<Health>, push: PushInfo) {
        match push.kind {
            // What a connection says after it was given up for being in the wrong place is not to be believed.
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
                // redis-rs takes such a push for the answer to a command, so that from here on the
                // answers on this connection may be one off. It has to be replaced in any case.
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

    fn unrest(&self) -> watch::Receiver<u64> {
        self.topology.unrest()
    }

    fn still_right(&self, server: &HostPort) -> bool {
        match &*self.topology {
            Topology::Single(single) => single.is_current(server),
            Topology::Cluster(_) => {
                let books = locked(&self.books);
                let here = |place: &Place| matches!(place, Place::Node(node) if node == server);
                books
                    .placed
                    .iter()
                    .filter(|(_, place)| here(place))
                    // A slot without an owner is still served where it was, if anywhere.
                    .all(|(channel, place)| {
                        self.topology
                            .place_of(channel)
                            .is_none_or(|right| right == *place)
                    })
            }
        }
    }
}
