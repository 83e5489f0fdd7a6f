//! A listener that records everything on its channels.

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::common::SOON;
use crate::common::raw::{Raw, Value};
use crate::wire_objects::At;

pub(crate) struct Ear {
    heard: UnboundedReceiver<(String, String)>,
    task: JoinHandle<()>,
}

impl Ear {
    /// Listens to a lock's channels, in the flavour in use. Returns once all are confirmed.
    pub(crate) async fn to(at: &At, name: &str, channels: &[String]) -> Self {
        let node = at.place.primary_for(name).await.unwrap();
        let mut raw = Raw::to(node).await;
        let subscribe = if at.is_sharded() {
            "SSUBSCRIBE"
        } else {
            "SUBSCRIBE"
        };
        for channel in channels {
            raw.say(&[subscribe, channel]).await;
        }
        let (sender, heard) = unbounded_channel();
        let task = tokio::spawn(async move {
            loop {
                let said = raw.hear_whenever().await;
                let [kind, channel, payload] = said.list() else {
                    panic!("not a message: {said:?}");
                };
                assert!(kind.text().ends_with("message"), "{said:?}");
                if sender.send((channel.text(), payload.text())).is_err() {
                    return;
                }
            }
        });
        Self { heard, task }
    }

    /// The next message, which must come soon.
    pub(crate) async fn next(&mut self) -> (String, String) {
        timeout(SOON, self.heard.recv())
            .await
            .expect("a message comes soon")
            .unwrap()
    }

    /// All unread messages so far.
    pub(crate) fn so_far(&mut self) -> Vec<(String, String)> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Listens to every channel that Redisson's clients of a name may read.
pub(crate) struct Spy(Ear);

impl Spy {
    pub(crate) async fn on(at: &At, name: &str) -> Self {
        let channels = [
            "redisson_lock__channel:",
            "redisson_rwlock:",
            "redisson_sc:",
            "redisson_countdownlatch__channel__",
        ];
        let channels = channels.map(|channel| format!("{channel}{{{name}}}"));
        Self(Ear::to(at, name, &channels).await)
    }

    /// The messages since the last call, all of them numbers.
    pub(crate) fn numbers(&mut self) -> Vec<i64> {
        let said = self.0.so_far();
        let number = |(channel, payload): &(String, String)| {
            let number = payload.parse::<i64>();
            number.unwrap_or_else(|_| panic!("{payload:?} on {channel}"))
        };
        said.iter().map(number).collect()
    }

    /// The next number, which must come soon.
    pub(crate) async fn next(&mut self) -> i64 {
        let (channel, payload) = self.0.next().await;
        payload
            .parse()
            .unwrap_or_else(|_| panic!("{payload:?} on {channel}"))
    }
}

/// How many connections listen to a channel, as its node counts.
pub(crate) async fn listeners(at: &At, raw: &mut Raw, channel: &str) -> i64 {
    let count = if at.is_sharded() {
        "SHARDNUMSUB"
    } else {
        "NUMSUB"
    };
    match raw.say(&["PUBSUB", count, channel]).await.list() {
        [_, Value::Int(count)] => *count,
        other => panic!("{other:?}"),
    }
}
