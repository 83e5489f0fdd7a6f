//! How waiters of Redisson's objects are woken. A process subscribes to a channel once for all its
//! waiters there, and a message lets one or several of them ask again. Messages sent while the
//! connection is down are lost: the waiters sleep for the rest of the lease they saw.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktopus_core::lock;
use locktopus_protocol::{Channel, ChannelFlavour, PushEvent, RedisClient as _};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{sleep, timeout};

use crate::client::SimClient;
use crate::object::{LEASE, flavour};
use crate::pace::millis;

/// The pause before a process subscribes again.
const AGAIN: Duration = Duration::from_millis(40);

/// The subscriptions of one process.
pub(crate) struct Ears {
    client: Arc<SimClient>,
    flavour: ChannelFlavour,
    channels: Mutex<BTreeMap<String, Waiters>>,
    /// Notified when subscriptions may be gone.
    lost: Notify,
}

/// The waiters on a channel, and how many of them may ask again.
#[derive(Clone)]
struct Waiters {
    number: usize,
    wake: Arc<Semaphore>,
}

/// One waiter. It must call [`leave`](Self::leave).
pub(crate) struct Waiter {
    ears: Arc<Ears>,
    channel: String,
    wake: Arc<Semaphore>,
}

impl Ears {
    /// The subscriptions of a process, kept for as long as it lives.
    pub(crate) fn of(client: &Arc<SimClient>) -> Arc<Self> {
        let ears = Arc::new(Self {
            client: Arc::clone(client),
            flavour: flavour(client),
            channels: Mutex::default(),
            lost: Notify::new(),
        });
        tokio::spawn(Arc::clone(&ears).hear());
        tokio::spawn(Arc::clone(&ears).keep());
        ears
    }

    /// Subscribes to a channel. Earlier messages may have been missed.
    pub(crate) async fn join(self: &Arc<Self>, channel: String) -> Waiter {
        let waiters = {
            let mut channels = lock(&self.channels);
            let waiters = channels.entry(channel.clone()).or_insert_with(|| Waiters {
                number: 0,
                wake: Arc::new(Semaphore::new(0)),
            });
            waiters.number += 1;
            waiters.clone()
        };
        if !self.listen(&[self.named(&channel)]).await {
            self.lost.notify_one();
        }
        Waiter {
            ears: Arc::clone(self),
            channel,
            wake: waiters.wake,
        }
    }

    fn named(&self, channel: &str) -> Channel {
        Channel {
            name: channel.to_owned().into(),
            flavour: self.flavour,
        }
    }

    async fn listen(&self, channels: &[Channel]) -> bool {
        let listening = timeout(millis(LEASE), self.client.subscribe(channels));
        channels.is_empty() || matches!(listening.await, Ok(Ok(())))
    }

    /// Subscribes again after each interruption.
    async fn keep(self: Arc<Self>) {
        loop {
            self.lost.notified().await;
            while !self.listen(&self.all()).await {
                sleep(AGAIN).await;
            }
        }
    }

    fn all(&self) -> Vec<Channel> {
        let channels = lock(&self.channels);
        channels.keys().map(|channel| self.named(channel)).collect()
    }

    async fn hear(self: Arc<Self>) {
        let Some(mut events) = self.client.take_events() else {
            return;
        };
        while let Some(event) = events.recv().await {
            match event {
                PushEvent::Message { channel, payload } => {
                    let [channel, word] =
                        [&channel, &payload].map(|it| String::from_utf8_lossy(it));
                    self.wakes(&channel, &word);
                }
                PushEvent::Disrupted { .. } => self.lost.notify_one(),
            }
        }
    }

    /// Wakes waiters as Redisson's `LockPubSub` and `SemaphorePubSub` do.
    fn wakes(&self, channel: &str, word: &str) {
        // Redisson parses a number here, and fails on anything else.
        let number: usize = word
            .parse()
            .unwrap_or_else(|_| panic!("{word:?} was published on {channel}"));
        let channels = lock(&self.channels);
        let Some(waiters) = channels.get(channel) else {
            return;
        };
        let woken = match number {
            number if channel.starts_with("redisson_sc") => number.min(waiters.number),
            0 => 1,
            1 => waiters.number,
            _ => 0,
        };
        waiters.wake.add_permits(woken);
    }
}

impl Waiter {
    /// Whether a message arrived within this time.
    pub(crate) async fn woken(&self, most: Duration) -> bool {
        match timeout(most, self.wake.acquire()).await {
            Ok(Ok(permit)) => {
                permit.forget();
                true
            }
            _ => false,
        }
    }

    /// The last waiter to leave unsubscribes.
    pub(crate) async fn leave(self) {
        {
            let mut channels = lock(&self.ears.channels);
            let Some(waiters) = channels.get_mut(&self.channel) else {
                return;
            };
            waiters.number -= 1;
            if waiters.number > 0 {
                return;
            }
            channels.remove(&self.channel);
        }
        let channel = self.ears.named(&self.channel);
        // Without a connection there is nothing to unsubscribe.
        let _ = self.ears.client.unsubscribe(&[channel]).await;
    }
}
