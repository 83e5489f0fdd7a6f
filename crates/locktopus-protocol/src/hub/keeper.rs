//! The keeper: the task that subscribes again after a disruption, refreshes subscriptions and drops
//! idle ones.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use locktopus_contract::lock;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::Shared;
use super::topic::Topic;
use super::topics::Topics;
use crate::client::backoff::Backoff;
use crate::client::{Channel, ChannelFlavour};

/// How long a channel without waiters stays subscribed, plus or minus one sweep.
const LINGER: Duration = Duration::from_secs(2);
/// How often the keeper renews shard subscriptions unprompted: one client does not report when a
/// slot moves away.
const REFRESH: Duration = Duration::from_secs(5);
/// The longest that a channel may lack a subscription once its server is back. Retries cost an
/// absent server nothing, because connections have their own back-off.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// The most channels subscribed at once when each is tried separately.
const ONE_BY_ONE: usize = 64;

impl Shared {
    /// The task that maintains the subscriptions.
    pub(super) async fn keep(self: Arc<Self>) {
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
                // Timers first: a busy client has constant news, which must not keep idle channels
                // subscribed.
                biased;
                () = sleep_until(sweep_at) => {
                    self.sweep().await;
                    sweep_at = Instant::now() + LINGER / 2;
                }
                () = sleep_until(refresh_at), if self.flavour == ChannelFlavour::Sharded => {
                    self.refresh().await;
                    refresh_at = Instant::now() + REFRESH;
                }
                () = self.keeper.notified() => {}
            }
        }
    }

    /// Subscribes to everything wanted until it works. Every waiter checks its lock once at the
    /// start, because messages may be missing, and again when its channel is confirmed. Returns the
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

    /// Subscribes to all of `topics`; true if all were confirmed. A node that is down fails only
    /// its own channels.
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

    /// Subscribes again without waking waiters, because no loss is known.
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
        idle.reverse(); // See `LockChannels::list`.
        let _ = timeout(self.call_timeout, self.client.unsubscribe(&idle)).await;
        // A waiter may have joined while its channel was being unsubscribed, and the server may
        // have processed its subscription first.
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
            // Retried as after a disruption.
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Removes channels that have had no waiters for a while.
    fn forget_idle(&self) -> Vec<Channel> {
        let now = Instant::now();
        let mut topics = lock(&self.topics);
        let mut idle = Vec::new();
        for topic in topics.all() {
            let mut idle_since = lock(&topic.idle_since);
            // Another owner of the topic is a task that is joining right now.
            if !topic.group.is_empty() || Topics::is_in_use(topic) {
                *idle_since = None;
            } else if now.duration_since(*idle_since.get_or_insert(now)) >= LINGER {
                idle.push(Arc::clone(topic));
            }
        }
        topics.remove(&idle);
        drop(topics);
        self.channels(&idle)
    }
}
