//! Subscribing for new waiters, in batches. Only a few batches run at a time.
//!
//! If one lock is waited for, its channel is subscribed at once. If thousands are wanted within a
//! moment, a burst takes only the memory of its batches, and fewer writes. Otherwise each lock
//! would need its own command, buffers and task.

use std::mem::take;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use locktopus_contract::lock;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Shared;
use super::topic::Topic;
use crate::client::ClientError;

/// The most topics in one batch.
const BATCH: usize = 64;
/// The most batches at once. Channels of a node that does not answer delay those of others only if
/// they fill more batches than this.
const BATCHES: usize = 8;

/// Topics that have waiters but no subscription yet.
#[derive(Debug, Default)]
pub(super) struct Joining(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    topics: Vec<Arc<Topic>>,
    /// The number of tasks that subscribe.
    under_way: usize,
}

/// The tasks that wait for the confirmation of a topic.
#[derive(Debug, Default)]
pub(super) struct Joiners(Mutex<Vec<oneshot::Sender<Result<(), ClientError>>>>);

impl Joiners {
    fn tell(&self, outcome: &Result<(), ClientError>) {
        for joiner in take(&mut *lock(&self.0)) {
            // A receiver that is gone has left the topic.
            let _ = joiner.send(outcome.clone());
        }
    }
}

impl Shared {
    /// Gets a topic subscribed. The receiver hears when the subscription is confirmed without a
    /// disruption in between. A task of the hub does the work: if a caller dropped it half-way, the
    /// hub would not know of the subscription.
    pub(super) fn confirm(
        self: &Arc<Self>,
        topic: &Arc<Topic>,
    ) -> oneshot::Receiver<Result<(), ClientError>> {
        let (joiner, answer) = oneshot::channel();
        let mut joiners = lock(&topic.joiners.0);
        let asked = !joiners.is_empty();
        joiners.push(joiner);
        drop(joiners);
        if asked {
            return answer;
        }
        let mut queue = lock(&self.joining.0);
        queue.topics.push(Arc::clone(topic));
        let begins = queue.under_way < BATCHES;
        queue.under_way += usize::from(begins);
        drop(queue);
        if begins {
            let subscribing = Subscribing {
                shared: Arc::clone(self),
                batch: Vec::new(),
                ended: false,
            };
            // Outside the lock: a runtime that is shutting down drops the task at once.
            tokio::spawn(subscribing.run());
        }
        answer
    }

    /// Subscribes to all topics and tells the waiters. A node that is down fails only its own
    /// channels.
    async fn confirm_all(&self, topics: &[Arc<Topic>]) {
        let together = match topics {
            [_, _, ..] => self.subscribe_to(topics).await.is_ok(),
            _ => false,
        };
        let each = topics.iter().map(|topic| async move {
            let outcome = match together {
                true => Ok(()),
                false => self.subscribe_to(std::slice::from_ref(topic)).await,
            };
            let name = topic.channels.name();
            self.refusals.note(name, &outcome, Instant::now());
            topic.joiners.tell(&outcome);
        });
        join_all(each).await;
    }

    /// Returns once all are confirmed with no disruption in between.
    async fn subscribe_to(&self, topics: &[Arc<Topic>]) -> Result<(), ClientError> {
        loop {
            let generation = self.generation();
            let confirmed = |topic: &Topic| topic.confirmed.load(Ordering::Acquire) == generation;
            let missing = topics.iter().filter(|topic| !confirmed(topic));
            let missing: Vec<_> = missing.collect();
            if missing.is_empty() {
                return Ok(());
            }
            let channels = self.channels(missing.iter().copied());
            self.client.subscribe(&channels).await?;
            for topic in missing {
                topic.confirmed.store(generation, Ordering::Release);
            }
        }
    }
}

/// A task that subscribes until the queue is empty.
struct Subscribing {
    shared: Arc<Shared>,
    batch: Vec<Arc<Topic>>,
    ended: bool,
}

impl Subscribing {
    async fn run(mut self) {
        while self.next() {
            self.shared.confirm_all(&self.batch).await;
        }
    }

    /// Takes the next batch. If it returns false, the queue is empty, and the next waiter starts
    /// another task.
    fn next(&mut self) -> bool {
        let mut queue = lock(&self.shared.joining.0);
        let most = queue.topics.len().min(BATCH);
        self.batch = queue.topics.drain(..most).collect();
        if self.batch.is_empty() {
            *queue = Queue {
                topics: Vec::new(),
                under_way: queue.under_way - 1,
            };
            self.ended = true;
        }
        !self.ended
    }
}

/// A task that is dropped early fails its waiters, so that none waits forever.
impl Drop for Subscribing {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let left = {
            let mut queue = lock(&self.shared.joining.0);
            queue.under_way -= 1;
            take(&mut queue.topics)
        };
        for topic in self.batch.iter().chain(&left) {
            lock(&topic.joiners.0).clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use bytes::Bytes;
    use tokio::time::sleep;

    use super::*;
    use crate::client::stub::{self, Stub};
    use crate::client::{Channel, ChannelFlavour};
    use crate::hub::{Hub, LockChannels};

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    /// Confirms subscriptions after a round trip, except those to a channel called `refused`.
    #[derive(Debug, Default)]
    struct Confirming {
        under_way: Mutex<usize>,
        /// For each subscription: its number of channels, and how many subscriptions were under
        /// way.
        seen: Mutex<Vec<(usize, usize)>>,
        /// The channels that were left, in order.
        left: Mutex<Vec<Bytes>>,
    }

    #[async_trait]
    impl Stub for Confirming {
        async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
            let under_way = {
                let mut under_way = lock(&self.under_way);
                *under_way += 1;
                *under_way
            };
            lock(&self.seen).push((channels.len(), under_way));
            sleep(ROUND_TRIP).await;
            *lock(&self.under_way) -= 1;
            if channels.iter().any(|channel| channel.name == "refused") {
                return Err(ClientError::NotSent("refused".to_owned()));
            }
            Ok(())
        }
        async fn unsubscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
            let names = channels.iter().map(|channel| channel.name.clone());
            lock(&self.left).extend(names);
            Ok(())
        }
    }

    fn hub() -> (Arc<Confirming>, Hub) {
        let client = Arc::<Confirming>::default();
        let (unclaimed, _) = tokio::sync::mpsc::channel(1);
        let hub = Hub::start(
            stub::client(&client),
            ChannelFlavour::Plain,
            ROUND_TRIP * 100,
            unclaimed,
        );
        (client, hub)
    }

    fn channels(name: &str) -> LockChannels {
        LockChannels {
            announced: Bytes::copy_from_slice(name.as_bytes()),
            inbox: None,
            native: None,
            wakes_all: false,
            plain: false,
        }
    }

    /// A release in between would count the client as another library's.
    #[tokio::test(start_paused = true)]
    async fn an_idle_lock_stops_being_announced_first() {
        let (client, hub) = hub();
        let channels = LockChannels {
            inbox: Some(Bytes::from_static(b"inbox")),
            native: Some(Bytes::from_static(b"native")),
            ..channels("announced")
        };
        drop(hub.join(channels, Instant::now() + ROUND_TRIP * 100).await);
        let all_left = async {
            while lock(&client.left).len() < 3 {
                sleep(ROUND_TRIP).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), all_left)
            .await
            .expect("an idle lock is left");
        let left = lock(&client.left).clone();
        assert_eq!(left, ["announced", "inbox", "native"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_subscribed_for_in_few_batches() {
        let (client, hub) = hub();
        let begun = Instant::now();
        let deadline = begun + ROUND_TRIP * 100;
        let joining =
            (0..2_000).map(|topic| hub.join(channels(&format!("topic {topic}")), deadline));
        let streams = join_all(joining).await;
        assert!(streams.iter().all(Result::is_ok));
        let seen = lock(&client.seen);
        assert!(
            seen.iter().all(|&(channels, _)| channels <= BATCH),
            "{seen:?}"
        );
        assert!(
            seen.iter().all(|&(_, under_way)| under_way <= BATCHES),
            "{seen:?}"
        );
        assert!(seen.len() <= 2_000 / BATCH + BATCHES, "{}", seen.len());
        assert!(begun.elapsed() <= ROUND_TRIP * 6, "{:?}", begun.elapsed());
    }

    /// A runtime that is shutting down drops tasks as they are spawned.
    #[tokio::test]
    async fn joining_on_a_runtime_that_has_ended_fails_and_blocks_nobody() {
        let (_client, hub) = hub();
        let (says, said) = tokio::sync::oneshot::channel();
        let shared = Arc::clone(&hub.shared);
        std::thread::spawn(move || {
            let ended = tokio::runtime::Builder::new_current_thread().build();
            let ended = ended.unwrap().handle().clone();
            let _inside = ended.enter();
            let topic = Arc::new(Topic::of(channels("a")));
            says.send(shared.confirm(&topic)).unwrap();
        });
        let answer = tokio::time::timeout(Duration::from_secs(30), said).await;
        let answer = answer.expect("it blocks").unwrap();
        assert!(answer.await.is_err());
        let deadline = Instant::now() + ROUND_TRIP * 100;
        assert!(hub.join(channels("a"), deadline).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_refused_fails_nobody_else() {
        let (client, hub) = hub();
        let deadline = Instant::now() + ROUND_TRIP * 100;
        let names = ["a", "b", "refused", "c", "d", "e", "f", "g", "h", "i", "j"];
        // The first ones keep all tasks busy, so that the others come together.
        let joining = (0..10 * BATCH).map(|first| format!("first {first}"));
        let joining = joining.chain(names.iter().map(|&name| name.to_owned()));
        let joining = joining.map(|name| async {
            let refused = hub.join(channels(&name), deadline).await.is_err();
            (name, refused)
        });
        for (name, refused) in join_all(joining).await {
            assert_eq!(refused, name == "refused", "{name}");
        }
        assert_eq!(*lock(&client.under_way), 0);
        assert!(hub.join(channels("a"), deadline).await.is_ok());
        let again = hub.join(channels("refused"), deadline).await;
        assert!(again.is_err(), "it is asked for again, and refused again");
    }

    #[tokio::test(start_paused = true)]
    async fn many_for_one_lock_subscribe_once_and_one_alone_at_once() {
        let (client, hub) = hub();
        let begun = Instant::now();
        let deadline = begun + ROUND_TRIP * 100;
        let joining = (0..100).map(|_| hub.join(channels("one"), deadline));
        assert!(join_all(joining).await.iter().all(Result::is_ok));
        assert_eq!(lock(&client.seen).len(), 1);
        hub.join(channels("another"), deadline)
            .await
            .map(drop)
            .unwrap();
        assert_eq!(lock(&client.seen).len(), 2);
        assert!(begun.elapsed() < ROUND_TRIP * 3, "{:?}", begun.elapsed());
    }
}
