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
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.task.abort();
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
