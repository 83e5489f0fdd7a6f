//! The server that several clients share, and their subscriptions.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use locktopus_protocol::{Channel, ChannelFlavour, PushEvent};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::redis::Server;

/// Whether a channel is sharded, and its name: the server counts listeners by this.
type Topic = (bool, Vec<u8>);

#[derive(Debug, Default)]
pub(super) struct Store {
    server: Mutex<Server>,
    subscribers: Mutex<Vec<Subscriber>>,
    /// How many commands each script ran since `take_runs`.
    pub(super) runs: Mutex<Vec<usize>>,
    /// Set if the server's clock follows that of tokio: since when, and from what time on.
    begun: Option<(Instant, i64)>,
}

#[derive(Debug)]
struct Subscriber {
    events: UnboundedSender<PushEvent>,
    topics: BTreeSet<Topic>,
}

impl Store {
    /// A server whose clock follows that of tokio.
    pub(super) fn timed() -> Self {
        let store = Self::default();
        let clock = store.server().clock;
        Self {
            begun: Some((Instant::now(), clock)),
            ..store
        }
    }

    pub(super) fn is_timed(&self) -> bool {
        self.begun.is_some()
    }

    /// The server, with its clock set.
    pub(super) fn server(&self) -> MutexGuard<'_, Server> {
        let mut server = lock(&self.server);
        if let Some((begun, clock)) = self.begun {
            let passed = i64::try_from(begun.elapsed().as_micros()).unwrap_or(i64::MAX);
            // Scripts advance the clock by a microsecond for each command, so it may be ahead.
            server.clock = server.clock.max(clock.saturating_add(passed));
        }
        server
    }

    /// Adds a subscriber without channels, and returns its number.
    pub(super) fn join(&self, events: UnboundedSender<PushEvent>) -> usize {
        let mut subscribers = lock(&self.subscribers);
        subscribers.push(Subscriber {
            events,
            topics: BTreeSet::new(),
        });
        subscribers.len() - 1
    }

    pub(super) fn subscribe(&self, who: usize, channels: &[Channel]) {
        let mut subscribers = lock(&self.subscribers);
        let mut server = self.server();
        for topic in channels.iter().map(topic) {
            if subscribers[who].topics.insert(topic.clone()) {
                *server.listeners.entry(topic).or_default() += 1;
            }
        }
    }

    pub(super) fn unsubscribe(&self, who: usize, channels: &[Channel]) {
        let mut subscribers = lock(&self.subscribers);
        let topics = channels.iter().map(topic);
        let left: Vec<_> = topics
            .filter(|topic| subscribers[who].topics.remove(topic))
            .collect();
        drop(subscribers);
        self.forget(left);
    }

    /// Removes all subscriptions of a subscriber.
    pub(super) fn leave(&self, who: usize) {
        let topics = std::mem::take(&mut lock(&self.subscribers)[who].topics);
        self.forget(topics);
    }

    fn forget(&self, topics: impl IntoIterator<Item = Topic>) {
        let mut server = self.server();
        for topic in topics {
            if let Some(count) = server.listeners.get_mut(&topic) {
                *count = count.saturating_sub(1);
            }
        }
    }

    /// Delivers the messages published since the last call to their subscribers.
    pub(super) fn deliver(&self) {
        let published = self.server().take_published();
        let subscribers = lock(&self.subscribers);
        for message in published {
            let topic = (message.sharded, message.channel);
            for subscriber in &*subscribers {
                if subscriber.topics.contains(&topic) {
                    // A dropped client receives nothing.
                    let _ = subscriber.events.send(PushEvent::Message {
                        channel: Bytes::from(topic.1.clone()),
                        payload: Bytes::from(message.message.clone()),
                    });
                }
            }
        }
    }
}

fn topic(channel: &Channel) -> Topic {
    (
        channel.flavour == ChannelFlavour::Sharded,
        channel.name.to_vec(),
    )
}

/// A panic of a test leaves the data whole, so poison is ignored.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
