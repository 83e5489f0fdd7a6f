//! Plays the hub above the client: knows the wanted channels and resubscribes on `Disrupted`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use locktopus_fred::FredClient;
use locktopus_protocol::{Channel, ChannelFlavour, PushEvent, RedisClient};
use tokio::task::JoinHandle;

#[derive(Clone)]
pub(crate) struct Hub {
    pub(crate) client: Arc<FredClient>,
    pub(crate) wanted: Arc<Vec<Channel>>,
    received: Arc<Mutex<HashMap<Bytes, Vec<Bytes>>>>,
    reasons: Arc<Mutex<Vec<&'static str>>>,
    restored: Arc<AtomicUsize>,
    _task: Arc<Aborting>,
}

struct Aborting(JoinHandle<()>);

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Hub {
    /// Subscribes to `names` and keeps them subscribed.
    pub(crate) async fn new(client: FredClient, flavour: ChannelFlavour, names: &[String]) -> Self {
        Self::start(client, flavour, names, true).await
    }

    /// Subscribes to `names` once and leaves repairs to the test.
    pub(crate) async fn passive(
        client: FredClient,
        flavour: ChannelFlavour,
        names: &[String],
    ) -> Self {
        Self::start(client, flavour, names, false).await
    }

    async fn start(
        client: FredClient,
        flavour: ChannelFlavour,
        names: &[String],
        repairs: bool,
    ) -> Self {
        let client = Arc::new(client);
        let channel = |name: &String| Channel {
            name: Bytes::from(name.clone()),
            flavour,
        };
        let wanted: Arc<Vec<_>> = Arc::new(names.iter().map(channel).collect());
        let received = Arc::new(Mutex::new(HashMap::<_, Vec<_>>::new()));
        let reasons = Arc::new(Mutex::new(Vec::new()));
        let restored = Arc::new(AtomicUsize::new(0));
        let mut events = client.take_events().unwrap();
        client.subscribe(&wanted).await.unwrap();
        let task = tokio::spawn({
            let (client, wanted) = (Arc::clone(&client), Arc::clone(&wanted));
            let (received, reasons) = (Arc::clone(&received), Arc::clone(&reasons));
            let restored = Arc::clone(&restored);
            async move {
                while let Some(event) = events.recv().await {
                    match event {
                        PushEvent::Message { channel, payload } => {
                            received
                                .lock()
                                .unwrap()
                                .entry(channel)
                                .or_default()
                                .push(payload);
                        }
                        PushEvent::Disrupted { reason } => {
                            reasons.lock().unwrap().push(reason);
                            if !repairs {
                                continue;
                            }
                            tokio::spawn(resubscribe(
                                Arc::clone(&client),
                                Arc::clone(&wanted),
                                Arc::clone(&restored),
                            ));
                        }
                    }
                }
            }
        });
        Self {
            client,
            wanted,
            received,
            reasons,
            restored,
            _task: Arc::new(Aborting(task)),
        }
    }

    /// How many times `payload` arrived on `channel`.
    pub(crate) fn count(&self, channel: &str, payload: &str) -> usize {
        let received = self.received.lock().unwrap();
        let all = received.get(channel.as_bytes()).into_iter().flatten();
        all.filter(|got| got.as_ref() == payload.as_bytes()).count()
    }

    pub(crate) fn reasons(&self) -> Vec<&'static str> {
        self.reasons.lock().unwrap().clone()
    }

    /// How many times all wanted channels were resubscribed.
    pub(crate) fn restored(&self) -> usize {
        self.restored.load(Ordering::SeqCst)
    }
}

async fn resubscribe(
    client: Arc<FredClient>,
    wanted: Arc<Vec<Channel>>,
    restored: Arc<AtomicUsize>,
) {
    loop {
        let attempt = client.subscribe(&wanted);
        match tokio::time::timeout(Duration::from_secs(2), attempt).await {
            Ok(Ok(())) => break,
            Ok(Err(_)) | Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    restored.fetch_add(1, Ordering::SeqCst);
}
