//! Subscriptions that the server refused, so that polling waiters do not request them each time.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use locktopus_contract::lock;
use tokio::time::Instant;

use crate::client::ClientError;
use crate::execution::refusals::is_passing;

/// How long the first refusal stands. Each further one in a row doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// A server does not announce a new permission, so the hub retries now and then.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Refusals by topic name. The empty name stands for all topics.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    standing: Mutex<HashMap<Bytes, Refusal>>,
    ever: AtomicBool,
}

#[derive(Debug)]
struct Refusal {
    error: ClientError,
    at: Instant,
    pause: Duration,
}

impl Refusals {
    /// The refusal that still stands for this topic, if any.
    pub(super) fn standing(&self, topic: &Bytes, now: Instant) -> Option<ClientError> {
        let refusals = lock(&self.standing);
        let concerning = [&Bytes::new(), topic].map(|name| refusals.get(name));
        let mut concerning = concerning.into_iter().flatten();
        let standing = concerning.find(|refusal| now.duration_since(refusal.at) < refusal.pause)?;
        Some(standing.error.clone())
    }

    /// Whether the server refused this topic last time, even if that refusal no longer stands.
    pub(super) fn known(&self, topic: &[u8]) -> bool {
        let refusals = lock(&self.standing);
        [&[], topic].iter().any(|name| refusals.contains_key(*name))
    }

    /// Whether the server ever refused anything.
    pub(super) fn ever(&self) -> bool {
        self.ever.load(Ordering::Acquire)
    }

    /// Notes how subscribing to a topic went.
    pub(super) fn note(&self, topic: &Bytes, outcome: &Result<(), ClientError>, now: Instant) {
        let mut refusals = lock(&self.standing);
        refusals.retain(|_, refusal| now.duration_since(refusal.at) < refusal.pause * 4);
        match outcome {
            Ok(()) => {
                refusals.remove(topic);
                refusals.remove(&Bytes::new());
            }
            Err(error @ ClientError::Rejected { code, message }) if !is_passing(code) => {
                self.ever.store(true, Ordering::Release);
                // A refused channel affects one lock, a refused command all of them.
                let name = match message.contains("channel") {
                    true => topic.clone(),
                    false => Bytes::new(),
                };
                let last = refusals.get(&name).map(|refusal| refusal.pause * 2);
                let pause = last.unwrap_or(FIRST_PAUSE).min(LONGEST_PAUSE);
                let refusal = Refusal {
                    error: error.clone(),
                    at: now,
                    pause,
                };
                refusals.insert(name, refusal);
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: &str = "NOPERM User app has no permissions to run the 'subscribe' command";
    const CHANNEL: &str =
        "NOPERM User app has no permissions to access one of the channels used as arguments";

    fn topic(name: &'static str) -> Bytes {
        Bytes::from_static(name.as_bytes())
    }

    #[test]
    fn a_refusal_stands_for_longer_each_time() {
        let (refusals, begun) = (Refusals::default(), Instant::now());
        let mut asked = 0;
        // A waiter polls every 10 ms for two minutes.
        for now in (0..12_000).map(|tenth| begun + Duration::from_millis(10) * tenth) {
            if refusals.standing(&topic("a"), now).is_none() {
                asked += 1;
                refusals.note(&topic("a"), &Err(ClientError::rejected(COMMAND)), now);
            }
        }
        assert!((6..=9).contains(&asked), "{asked}");
        let later = begun + Duration::from_secs(600);
        refusals.note(&topic("a"), &Ok(()), later);
        assert_eq!(refusals.standing(&topic("a"), later), None);
    }

    #[test]
    fn a_channel_is_refused_alone_and_a_command_for_all() {
        let now = Instant::now();
        for (line, others) in [(CHANNEL, false), (COMMAND, true)] {
            let refusals = Refusals::default();
            refusals.note(&topic("a"), &Err(ClientError::rejected(line)), now);
            assert!(refusals.standing(&topic("a"), now).is_some());
            assert_eq!(refusals.standing(&topic("b"), now).is_some(), others);
        }
        // The hub retries at once after a temporary refusal, and after no answer.
        let refusals = Refusals::default();
        for error in [
            ClientError::rejected("LOADING dataset"),
            ClientError::NotSent("away".to_owned()),
            ClientError::MaybeExecuted("lost".to_owned()),
        ] {
            refusals.note(&topic("a"), &Err(error), now);
            assert_eq!(refusals.standing(&topic("a"), now), None);
        }
    }
}
