//! The subscription hub: which channels are wanted, who waits for them, and what to do when messages may
//! have been lost.
//!
//! Neither client library can be trusted to keep a sharded subscription alive, so the set of wanted
//! channels is kept here. After any disruption every wanted channel is subscribed again, and then every
//! waiter is told to look for itself. A channel without waiters stays subscribed for a moment, so that a
//! hot lock does not subscribe and unsubscribe with every hand-over.
//!
//! Two tasks share the work: one delivers messages and does nothing that could hold them up; the other, the
//! keeper, subscribes and unsubscribes, and may have to wait for a node that is down.
//!
//! A *generation* counts disruptions. A subscription confirmed in an earlier generation counts for nothing.

mod misplaced;
mod topic;
mod waiter_channels;
mod waiter_subscription;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use locktopus_core::WakeStream;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use crate::client::backoff::Backoff;
use crate::client::{Channel, ChannelFlavour, ClientError, PushEvent, RedisClient};

use misplaced::MisplacedReports;
use topic::{Placement, Topic};
use waiter_channels::WaiterChannels;

pub(crate) use topic::LockChannels;

/// How long a channel without waiters stays subscribed, give or take a sweep.
const LINGER: Duration = Duration::from_secs(2);
/// How often shard channels are subscribed again unasked: one client says nothing when a slot moves away.
const REFRESH: Duration = Duration::from_secs(5);
/// How long a channel may go without a subscription once its server is back. Trying costs a server nothing while it is
/// away: connections have pauses of their own.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How many channels are subscribed at once where each is tried by itself.
const ONE_BY_ONE: usize = 64;

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
    /// By each channel on which messages can arrive.
    topics: Mutex<HashMap<Bytes, Arc<Topic>>>,
    /// The channels of single waiters.
    waiter_channels: WaiterChannels,
    misplaced_reports: MisplacedReports,
    /// How many disruptions there were, counted from 1.
    generation: AtomicU64,
    /// Notified at a disruption, and when the first topic appears so that an idle hub sleeps.
    keeper: Notify,
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
            waiter_channels: WaiterChannels::default(),
            misplaced_reports: MisplacedReports::default(),
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

    /// Joins the waiters of a lock, subscribing first if need be. Once this returns, no message is
    /// missed without a resync.
    pub(crate) async fn join(
        &self,
        channels: LockChannels,
        deadline: Instant,
    ) -> Result<WakeStream, ClientError> {
        let topic = self.shared.topic(channels);
        // Joined before the subscription is confirmed: a message that comes in between is not lost.
        let stream = topic.group.join(());
        if topic.confirmed.load(Ordering::Acquire) == self.shared.generation() {
            return Ok(stream);
        }
        // A task of its own, because a subscription that is dropped half-way would not be known to be there.
        let shared = Arc::clone(&self.shared);
        let confirm = tokio::spawn(async move { shared.confirm(&topic).await });
        match timeout_at(deadline, confirm).await {
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

    /// Whether nobody of this process listens to anything.
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
        let announced = &topic.channels.announced;
        topics.insert(topic.channels.name().clone(), Arc::clone(&topic));
        // Kinds that share a channel should not share a name; if they do, one of them has its heartbeat.
        topics
            .entry(announced.clone())
            .or_insert_with(|| Arc::clone(&topic));
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

    /// Every topic, once.
    fn all_topics(&self) -> Vec<Arc<Topic>> {
        let topics = lock(&self.topics);
        topics
            .iter()
            .filter(|(name, topic)| *name == topic.channels.name())
            .map(|(_, topic)| Arc::clone(topic))
            .collect()
    }

    fn channels<'a>(&self, topics: impl IntoIterator<Item = &'a Arc<Topic>>) -> Vec<Channel> {
        topics
            .into_iter()
            .flat_map(|topic| topic.channels.list(self.flavour))
            .collect()
    }

    /// Returns once the subscription is confirmed and no disruption came in between.
    async fn confirm(&self, topic: &Arc<Topic>) -> Result<(), ClientError> {
        if topic.confirmed.load(Ordering::Acquire) == self.generation() {
            return Ok(());
        }
        let _turn = topic.subscribing.lock().await;
        loop {
            let generation = self.generation();
            if topic.confirmed.load(Ordering::Acquire) == generation {
                return Ok(());
            }
            self.client.subscribe(&self.channels([topic])).await?;
            topic.confirmed.store(generation, Ordering::Release);
        }
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
                    let topic = lock(&self.topics).get(&channel).map(Arc::clone);
                    match topic {
                        Some(topic) => {
                            let placed = topic.hear(&channel, &payload);
                            if placed == Placement::WrongServer
                                && self.misplaced_reports.due(Instant::now())
                            {
                                tracing::debug!(
                                    client = self.client.name(),
                                    "not counted on the primary, subscribing anew"
                                );
                                self.client.misplaced(&channel);
                            }
                        }
                        None => self.waiter_channels.hear(&channel),
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

    /// The task that keeps subscriptions as they should be.
    async fn keep(self: Arc<Self>) {
        let (mut sweep_at, mut refresh_at) =
            (Instant::now() + LINGER / 2, Instant::now() + REFRESH);
        let mut served = self.generation();
        loop {
            if self.generation() != served {
                served = self.recover().await;
                refresh_at = Instant::now() + REFRESH;
            }
            if lock(&self.topics).is_empty() {
                self.keeper.notified().await;
                continue;
            }
            tokio::select! {
                () = self.keeper.notified() => {}
                () = sleep_until(sweep_at) => {
                    self.sweep().await;
                    sweep_at = Instant::now() + LINGER / 2;
                }
                () = sleep_until(refresh_at), if self.flavour == ChannelFlavour::Sharded => {
                    self.refresh().await;
                    refresh_at = Instant::now() + REFRESH;
                }
            }
        }
    }

    /// Subscribes to everything wanted until it works, and lets everybody look: once at the beginning,
    /// because messages may be missing, and once more when a channel is confirmed again. Returns the
    /// generation it served.
    async fn recover(&self) -> u64 {
        let mut backoff = Backoff::up_to(LONGEST_PAUSE);
        for topic in self.all_topics() {
            topic.group.resync();
        }
        loop {
            let generation = self.generation();
            let mut missing = self.all_topics();
            missing.retain(|topic| {
                topic.confirmed.load(Ordering::Acquire) != generation && !topic.group.is_empty()
            });
            if missing.is_empty() || self.resubscribe(missing, generation).await {
                return generation;
            }
            sleep(backoff.pause()).await;
        }
    }

    /// Subscribes to all of `topics`; true if every one was confirmed. A node that is down fails only its
    /// own channels.
    async fn resubscribe(&self, topics: Vec<Arc<Topic>>, generation: u64) -> bool {
        let channels = self.channels(&topics);
        let confirmed = |topic: &Topic| {
            topic.confirmed.store(generation, Ordering::Release);
            topic.group.resync();
        };
        if let Ok(Ok(())) = timeout(self.call_timeout, self.client.subscribe(&channels)).await {
            topics.iter().for_each(|topic| confirmed(topic));
            return true;
        }
        let mut all = true;
        for batch in topics.chunks(ONE_BY_ONE) {
            let tries = batch.iter().map(|topic| async move {
                let subscribe = self.channels([topic]);
                let tried = timeout(self.call_timeout, self.client.subscribe(&subscribe)).await;
                let done = matches!(tried, Ok(Ok(())));
                if done {
                    confirmed(topic);
                }
                done
            });
            all &= join_all(tries).await.into_iter().all(|done| done);
        }
        all
    }

    /// Subscribes again without telling anybody: nothing is known to be lost.
    async fn refresh(&self) {
        let mut topics = self.all_topics();
        topics.retain(|topic| !topic.group.is_empty());
        let mut channels = self.channels(&topics);
        channels.extend(
            self.waiter_channels
                .all()
                .into_iter()
                .map(|name| self.channel(name)),
        );
        if channels.is_empty() {
            return;
        }
        if let Ok(Err(error)) = timeout(self.call_timeout, self.client.subscribe(&channels)).await {
            tracing::debug!(client = self.client.name(), %error, "refreshing subscriptions failed");
        }
    }

    async fn sweep(&self) {
        let mut idle = self.forget_idle();
        let gone = self.waiter_channels.forget_gone();
        idle.extend(gone.into_iter().map(|name| self.channel(name)));
        if idle.is_empty() {
            return;
        }
        let _ = timeout(self.call_timeout, self.client.unsubscribe(&idle)).await;
        // A waiter may have joined while its channel was being unsubscribed, and the server may have
        // processed its subscription first.
        let generation = self.generation();
        let mut wanted = self.all_topics();
        wanted.retain(|topic| {
            let names = topic.channels.list(self.flavour);
            names.iter().any(|name| idle.contains(name))
        });
        for topic in &wanted {
            topic.confirmed.store(0, Ordering::Release);
        }
        if !wanted.is_empty() && !self.resubscribe(wanted, generation).await {
            // What is missing is tried again like after a disruption.
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Removes channels that nobody has waited for for a while.
    fn forget_idle(&self) -> Vec<Channel> {
        let now = Instant::now();
        let mut topics = lock(&self.topics);
        let mut idle = Vec::new();
        for (name, topic) in topics.iter() {
            if name != topic.channels.name() {
                continue;
            }
            let mut idle_since = lock(&topic.idle_since);
            let names = topics.get(&topic.channels.announced);
            let listed = 1 + usize::from(
                topic.channels.inbox.is_some()
                    && names.is_some_and(|other| Arc::ptr_eq(other, topic)),
            );
            // A further owner is somebody who joins right now.
            if !topic.group.is_empty() || Arc::strong_count(topic) > listed {
                *idle_since = None;
            } else if now.duration_since(*idle_since.get_or_insert(now)) >= LINGER {
                idle.push(Arc::clone(topic));
            }
        }
        topics.retain(|_, topic| !idle.iter().any(|gone| Arc::ptr_eq(gone, topic)));
        self.channels(&idle)
    }
}

/// A panic while one of these short sections runs leaves the data whole, so poison is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
