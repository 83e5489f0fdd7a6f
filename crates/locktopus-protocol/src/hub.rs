//! The subscription hub: which channels are wanted, who waits for them, and what to do when
//! messages may have been lost.
//!
//! Neither client library reliably keeps a sharded subscription alive, so the hub keeps the set of
//! wanted channels. After any disruption it subscribes to all of them again and then makes every
//! waiter check its lock. A channel without waiters stays subscribed briefly, so that a hot lock
//! does not subscribe and unsubscribe at every hand-over.
//!
//! Two tasks share the work. One delivers messages and does nothing that could delay them. The
//! other, the keeper, subscribes and unsubscribes, and may have to wait for a node that is down.
//!
//! A *generation* counts disruptions. A subscription confirmed in an earlier generation no longer
//! counts.

mod joining;
mod keeper;
mod misplaced_subscriptions;
mod refusals;
mod topic;
mod topics;
mod waiter_channels;
mod waiter_subscription;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use locktopus_contract::{WakeStream, lock};
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use crate::client::{Channel, ChannelFlavour, ClientError, PushEvent, RedisClient};

use joining::Joining;
use misplaced_subscriptions::MisplacedReports;
use refusals::Refusals;
use topic::{Heard, Topic};
use topics::Topics;
use waiter_channels::WaiterChannels;

pub(crate) use topic::LockChannels;

/// The channels of one backend.
#[derive(Debug)]
pub(crate) struct Hub {
    shared: Arc<Shared>,
    tasks: [AbortHandle; 2],
}

#[derive(Debug)]
struct Shared {
    client: Arc<dyn RedisClient>,
    flavour: ChannelFlavour,
    call_timeout: Duration,
    topics: Mutex<Topics>,
    /// Topics that have waiters but no subscription yet.
    joining: Joining,
    /// The channels of single waiters.
    waiter_channels: WaiterChannels,
    misplaced_reports: MisplacedReports,
    refusals: Refusals,
    /// Sends the owner ids of grants without a waiter.
    unclaimed: mpsc::Sender<Bytes>,
    /// The number of disruptions, starting at 1.
    generation: AtomicU64,
    /// Notified at a disruption, and when the first topic appears, so that an idle hub can sleep.
    keeper: Notify,
}

impl Hub {
    /// Starts the hub, which needs a tokio runtime. It sends the owner ids of grants without a
    /// waiter to `unclaimed`.
    pub(crate) fn start(
        client: Arc<dyn RedisClient>,
        flavour: ChannelFlavour,
        call_timeout: Duration,
        unclaimed: mpsc::Sender<Bytes>,
    ) -> Self {
        let events = client.take_events();
        let shared = Arc::new(Shared {
            client,
            flavour,
            call_timeout,
            topics: Mutex::default(),
            joining: Joining::default(),
            waiter_channels: WaiterChannels::default(),
            misplaced_reports: MisplacedReports::default(),
            refusals: Refusals::default(),
            unclaimed,
            generation: AtomicU64::new(1),
            keeper: Notify::new(),
        });
        let deliver = tokio::spawn(Arc::clone(&shared).deliver(events));
        let keep = tokio::spawn(Arc::clone(&shared).keep());
        Self {
            shared,
            tasks: [deliver.abort_handle(), keep.abort_handle()],
        }
    }

    /// Joins the waiters of a lock, subscribing first if needed. Once this returns, every message
    /// arrives or a resync follows.
    pub(crate) async fn join(
        &self,
        channels: LockChannels,
        deadline: Instant,
    ) -> Result<WakeStream, ClientError> {
        let refused = self
            .shared
            .refusals
            .standing(channels.name(), Instant::now());
        if let Some(refused) = refused {
            return Err(refused);
        }
        let topic = self.shared.topic(channels);
        // Joins before the subscription is confirmed, so that a message in between is not lost.
        let stream = topic.group.join(());
        if topic.confirmed.load(Ordering::Acquire) == self.shared.generation() {
            return Ok(stream);
        }
        match timeout_at(deadline, self.shared.confirm(&topic)).await {
            Ok(Ok(done)) => done.map(|()| stream),
            Ok(Err(_)) | Err(_) => Err(ClientError::MaybeExecuted(
                "no confirmation of a subscription in time".to_owned(),
            )),
        }
    }

    /// Joins the waiters of a lock if its channels are subscribed and nothing was missed.
    pub(crate) fn listening(&self, channels: &LockChannels) -> Option<WakeStream> {
        let topics = lock(&self.shared.topics);
        let topic = topics.get(channels.name())?;
        let confirmed = topic.confirmed.load(Ordering::Acquire);
        (confirmed == self.shared.generation()).then(|| topic.group.join(()))
    }

    /// Whether the server refuses to let this client subscribe to this topic.
    pub(crate) fn is_refused(&self, topic: &str) -> bool {
        self.shared.refusals.known(topic.as_bytes())
    }

    /// Whether the server has ever refused a subscription of this client.
    pub(crate) fn was_refused(&self) -> bool {
        self.shared.refusals.ever()
    }

    /// Whether this process listens to nothing.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.shared.topics).is_empty()
    }

    /// Stops serving. Waiters fall back to their heartbeats.
    pub(crate) fn stop(&self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        lock(&self.shared.topics).clear();
        self.shared.waiter_channels.forget_all();
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Shared {
    fn topic(&self, channels: LockChannels) -> Arc<Topic> {
        let mut topics = lock(&self.topics);
        if topics.is_empty() {
            self.keeper.notify_one();
        }
        if let Some(topic) = topics.get(channels.name()) {
            return Arc::clone(topic);
        }
        let topic = Arc::new(Topic::of(channels));
        topics.insert(&topic);
        topic
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn channel(&self, name: Bytes) -> Channel {
        Channel {
            name,
            flavour: self.flavour,
        }
    }

    /// Every topic once, in an order that is the same in each run.
    fn all_topics(&self) -> Vec<Arc<Topic>> {
        let topics = lock(&self.topics);
        let mut all: Vec<_> = topics.all().map(Arc::clone).collect();
        all.sort_unstable_by(|one, other| one.channels.name().cmp(other.channels.name()));
        all
    }

    fn channels<'a>(&self, topics: impl IntoIterator<Item = &'a Arc<Topic>>) -> Vec<Channel> {
        topics
            .into_iter()
            .flat_map(|topic| topic.channels.list(self.flavour))
            .collect()
    }

    /// The task that delivers messages.
    async fn deliver(self: Arc<Self>, events: Option<mpsc::UnboundedReceiver<PushEvent>>) {
        let Some(mut events) = events else {
            tracing::warn!(
                client = self.client.name(),
                "no events from this client: waiters poll"
            );
            return;
        };
        while let Some(event) = events.recv().await {
            match event {
                PushEvent::Message { channel, payload } => {
                    let (topic, beside) = {
                        let topics = lock(&self.topics);
                        (
                            topics.get(&channel).map(Arc::clone),
                            topics.beside(&channel),
                        )
                    };
                    for topic in beside {
                        topic.hear(&channel, &payload);
                    }
                    match topic {
                        Some(topic) => match topic.hear(&channel, &payload) {
                            Heard::Nothing => {}
                            Heard::Unclaimed => self.is_unclaimed(&payload),
                            Heard::WrongServer => self.is_misplaced(&channel),
                        },
                        None => {
                            self.waiter_channels.hear(&channel);
                            // The last waiter may have left just now.
                            self.is_unclaimed(&payload);
                        }
                    }
                }
                PushEvent::Disrupted { reason } => {
                    tracing::debug!(
                        client = self.client.name(),
                        reason,
                        "subscriptions disrupted"
                    );
                    self.generation.fetch_add(1, Ordering::AcqRel);
                    self.keeper.notify_one();
                }
            }
        }
    }

    /// Reports a message without a waiter, if it is a grant.
    fn is_unclaimed(&self, payload: &Bytes) {
        if let Some((_, owner)) = topic::grant(payload) {
            // If the queue is full, the lease expires on the server.
            let _full = self.unclaimed.try_send(payload.slice_ref(owner));
        }
    }

    /// Acts on a message saying that the server counted no subscriber.
    fn is_misplaced(&self, channel: &Bytes) {
        if self.misplaced_reports.due(Instant::now()) {
            tracing::debug!(
                client = self.client.name(),
                "not counted on the primary, subscribing anew"
            );
            self.client.subscription_misplaced(channel);
        }
    }
}
