//! The subscription hub: which channels are wanted, who waits for them, and what to do when messages may
//! have been lost.
//!
//! Neither client library can be trusted to keep a sharded subscription alive, so the set of wanted
//! channels is kept here. After any disruption every wanted channel is subscribed again, and then every
//! waiter is told to look for itself. A channel without waiters stays subscribed for a moment, so that a
//! hot lock does not subscribe and unsubscribe with every hand-over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use locktopus_core::{WakeGroup, WakeStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use crate::client::{Channel, ChannelFlavour, ClientError, PushEvent, RedisClient};

/// How long a channel without waiters stays subscribed, give or take a sweep.
const LINGER: Duration = Duration::from_secs(2);
/// How often shard channels are subscribed again unasked: one client says nothing when a slot moves away.
const REFRESH: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The channels of one backend.
#[derive(Debug)]
pub(crate) struct Hub {
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    client: Arc<dyn RedisClient>,
    flavour: ChannelFlavour,
    call_timeout: Duration,
    topics: Mutex<HashMap<Bytes, Arc<Topic>>>,
    /// Rung when the first topic appears, so that an idle hub sleeps.
    busy: Notify,
}

/// One channel.
#[derive(Debug)]
struct Topic {
    group: Arc<WakeGroup>,
    /// Whether the server has confirmed the subscription since the last disruption. Held while confirming,
    /// so that a crowd of new waiters subscribes once.
    confirmed: tokio::sync::Mutex<bool>,
    /// Since when nobody waits.
    idle_since: Mutex<Option<Instant>>,
}

impl Hub {
    /// Starts the hub. Must be called on a runtime.
    pub(crate) fn start(
        client: Arc<dyn RedisClient>,
        flavour: ChannelFlavour,
        call_timeout: Duration,
    ) -> Self {
        let events = client.take_events();
        let shared = Arc::new(Shared {
            client,
            flavour,
            call_timeout,
            topics: Mutex::default(),
            busy: Notify::new(),
        });
        let task = tokio::spawn(Arc::clone(&shared).serve(events)).abort_handle();
        Self { shared, task }
    }

    /// Joins the waiters of a channel, subscribing first if need be. Once this returns, no message is
    /// missed without a resync.
    pub(crate) async fn join(
        &self,
        name: &Bytes,
        deadline: Instant,
    ) -> Result<WakeStream, ClientError> {
        let topic = self.shared.topic(name);
        // Joined before the subscription is confirmed: a message that comes in between is not lost.
        let stream = topic.group.join(());
        let confirm = async {
            let mut confirmed = topic.confirmed.lock().await;
            if !*confirmed {
                let channel = Channel {
                    name: name.clone(),
                    flavour: self.shared.flavour,
                };
                self.shared.client.subscribe(&[channel]).await?;
                *confirmed = true;
            }
            Ok(())
        };
        match timeout_at(deadline, confirm).await {
            Ok(done) => done.map(|()| stream),
            Err(_) => Err(ClientError::MaybeExecuted(
                "no confirmation of a subscription in time".to_owned(),
            )),
        }
    }

    /// Stops serving. Waiters fall back to their heartbeats.
    pub(crate) fn stop(&self) {
        self.task.abort();
        lock(&self.shared.topics).clear();
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn topic(&self, name: &Bytes) -> Arc<Topic> {
        let mut topics = lock(&self.topics);
        if topics.is_empty() {
            self.busy.notify_one();
        }
        let topic = topics.entry(name.clone()).or_insert_with(|| {
            Arc::new(Topic {
                group: Arc::default(),
                confirmed: tokio::sync::Mutex::new(false),
                idle_since: Mutex::new(None),
            })
        });
        Arc::clone(topic)
    }

    async fn serve(self: Arc<Self>, events: Option<mpsc::UnboundedReceiver<PushEvent>>) {
        let Some(mut events) = events else { return };
        let mut next_refresh = Instant::now() + REFRESH;
        loop {
            let next_sweep = async {
                if lock(&self.topics).is_empty() {
                    self.busy.notified().await;
                }
                sleep(LINGER / 2).await;
            };
            let refresh_due = async {
                sleep_until(next_refresh).await;
                if self.flavour == ChannelFlavour::Plain || lock(&self.topics).is_empty() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                event = events.recv() => match event {
                    Some(PushEvent::Message { channel, .. }) => self.deliver(&channel),
                    Some(PushEvent::Disrupted { reason }) => {
                        tracing::debug!(client = self.client.name(), reason, "subscriptions disrupted");
                        self.recover(&mut events).await;
                        next_refresh = Instant::now() + REFRESH;
                    }
                    None => return,
                },
                () = next_sweep => self.sweep().await,
                () = refresh_due => {
                    self.refresh().await;
                    next_refresh = Instant::now() + REFRESH;
                }
            }
        }
    }

    fn deliver(&self, channel: &Bytes) {
        let topic = lock(&self.topics).get(channel).map(Arc::clone);
        if let Some(topic) = topic {
            topic.group.wake_one();
        }
    }

    /// Subscribes to everything wanted until it works, then lets everybody look. Messages that arrive
    /// meanwhile are delivered; further disruptions start it over.
    async fn recover(&self, events: &mut mpsc::UnboundedReceiver<PushEvent>) {
        let mut pause = FIRST_PAUSE;
        loop {
            while let Ok(event) = events.try_recv() {
                if let PushEvent::Message { channel, .. } = event {
                    self.deliver(&channel);
                }
            }
            self.forget_idle(Duration::ZERO);
            if self.resubscribe().await && events.is_empty() {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// One try to subscribe to every wanted channel. Waiters look again either way.
    async fn resubscribe(&self) -> bool {
        let topics: Vec<_> = lock(&self.topics)
            .iter()
            .map(|(name, topic)| (name.clone(), Arc::clone(topic)))
            .collect();
        let mut open = Vec::with_capacity(topics.len());
        for (_, topic) in &topics {
            // A newcomer may be confirming right now, on a connection that is just as broken; its call
            // ends within its deadline.
            let mut confirmed = topic.confirmed.lock().await;
            *confirmed = false;
            open.push(confirmed);
        }
        let channels: Vec<_> = topics
            .iter()
            .map(|(name, _)| Channel {
                name: name.clone(),
                flavour: self.flavour,
            })
            .collect();
        let done = channels.is_empty()
            || matches!(
                timeout(self.call_timeout * 2, self.client.subscribe(&channels)).await,
                Ok(Ok(()))
            );
        for mut confirmed in open {
            *confirmed = done;
        }
        for (_, topic) in topics {
            topic.group.resync();
        }
        done
    }

    /// Subscribes again without telling anybody: nothing is known to be lost.
    async fn refresh(&self) {
        let channels: Vec<_> = lock(&self.topics)
            .iter()
            .filter(|(_, topic)| !topic.group.is_empty())
            .map(|(name, _)| Channel {
                name: name.clone(),
                flavour: self.flavour,
            })
            .collect();
        if channels.is_empty() {
            return;
        }
        if let Ok(Err(error)) = timeout(self.call_timeout, self.client.subscribe(&channels)).await {
            tracing::debug!(client = self.client.name(), %error, "refreshing subscriptions failed");
        }
    }

    async fn sweep(&self) {
        let idle = self.forget_idle(LINGER);
        if !idle.is_empty() {
            let _ = timeout(self.call_timeout, self.client.unsubscribe(&idle)).await;
            self.subscribe_again_if_wanted(idle).await;
        }
    }

    /// A waiter may have joined a channel while it was being unsubscribed: the server may have processed
    /// its subscription first.
    async fn subscribe_again_if_wanted(&self, channels: Vec<Channel>) {
        let wanted: Vec<_> = channels
            .into_iter()
            .filter(|channel| lock(&self.topics).contains_key(&channel.name))
            .collect();
        if wanted.is_empty() {
            return;
        }
        let _ = timeout(self.call_timeout, self.client.subscribe(&wanted)).await;
        for channel in wanted {
            if let Some(topic) = lock(&self.topics).get(&channel.name) {
                topic.group.resync();
            }
        }
    }

    /// Removes channels that nobody has waited for longer than `linger`.
    fn forget_idle(&self, linger: Duration) -> Vec<Channel> {
        let now = Instant::now();
        let mut idle = Vec::new();
        lock(&self.topics).retain(|name, topic| {
            let mut idle_since = lock(&topic.idle_since);
            // A second owner is somebody who joins right now.
            if !topic.group.is_empty() || Arc::strong_count(topic) > 1 {
                *idle_since = None;
                return true;
            }
            let over = now.duration_since(*idle_since.get_or_insert(now)) >= linger;
            if over {
                idle.push(Channel {
                    name: name.clone(),
                    flavour: self.flavour,
                });
            }
            !over
        });
        idle
    }
}

/// A panic while one of these short sections runs leaves the data whole, so poison is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
