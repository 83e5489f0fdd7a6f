//! R1, the reference: what most pub/sub locks do, without anything that makes them safe to cancel.
//!
//! It is a hash with an owner, taken by a script. If that fails, the caller subscribes, waits for a
//! message or for the end of the lease, and tries again together with all other waiters. A release
//! publishes the message. It uses one connection for commands and one for messages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use locktopus_protocol::{Channel, ChannelFlavour, PushEvent, RedisClient};
use tokio::sync::Notify;

use super::script::{Script, script};
use super::{Held, Kind, LEASE, Subject};
use crate::shared::error_chain::chain;

static ACQUIRE: Script = script!(
    "\
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return -1
end
return redis.call('pttl', KEYS[1])"
);

static RELEASE: Script = script!(
    "\
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then return 0 end
redis.call('del', KEYS[1])
redis.call('publish', ARGV[2], '0')
return 1"
);

pub(crate) async fn connect(url: &str) -> Result<Arc<dyn Subject>, String> {
    let client = locktopus::connect_client(url)
        .await
        .map_err(|error| chain(&error))?;
    let subscriptions: Arc<Mutex<HashMap<Vec<u8>, Arc<Subscription>>>> = Arc::default();
    let mut events = client.take_events().ok_or("the client gives no events")?;
    let notified = Arc::clone(&subscriptions);
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if let PushEvent::Message { channel, .. } = event {
                let subscription = notified
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get(&channel[..])
                    .cloned();
                if let Some(subscription) = subscription {
                    subscription.notify();
                }
            }
        }
    });
    Ok(Arc::new(R1 {
        client,
        subscriptions,
        next_owner: Arc::new(AtomicU64::new(0)),
    }))
}

/// Wakes every waiter of one lock in this process.
#[derive(Debug, Default)]
struct Subscription {
    waiters: Notify,
    messages: AtomicU64,
    subscribed: tokio::sync::OnceCell<()>,
}

impl Subscription {
    fn notify(&self) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.waiters.notify_waiters();
    }
}

struct R1 {
    client: Arc<dyn RedisClient>,
    subscriptions: Arc<Mutex<HashMap<Vec<u8>, Arc<Subscription>>>>,
    next_owner: Arc<AtomicU64>,
}

impl R1 {
    async fn try_once(&self, lock: &str, owner: &str) -> Result<i64, &'static str> {
        let lease = LEASE.as_millis().to_string();
        let args: [&[u8]; 2] = [lease.as_bytes(), owner.as_bytes()];
        ACQUIRE.run(&*self.client, &[lock.as_bytes()], &args).await
    }
}

#[async_trait]
impl Subject for R1 {
    async fn acquire(&self, _kind: Kind, lock: &str) -> Result<Box<dyn Held>, &'static str> {
        let number = self.next_owner.fetch_add(1, Ordering::Relaxed);
        let owner = format!("{}:{number}", std::process::id());
        let held = || {
            let (client, lock, owner) = (Arc::clone(&self.client), lock.to_owned(), owner.clone());
            Ok(Box::new(HeldLock {
                client,
                lock,
                owner,
            }) as Box<dyn Held>)
        };
        if self.try_once(lock, &owner).await? == -1 {
            return held();
        }
        let channel = format!("r1__channel:{{{lock}}}").into_bytes();
        let subscription = {
            let mut subscriptions = self
                .subscriptions
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            Arc::clone(subscriptions.entry(channel.clone()).or_default())
        };
        let subscribe = || async {
            let channel = Channel {
                name: channel.clone().into(),
                flavour: ChannelFlavour::Plain,
            };
            self.client
                .subscribe(&[channel])
                .await
                .map_err(|_| "subscribe")
        };
        subscription.subscribed.get_or_try_init(subscribe).await?;
        loop {
            let heard = subscription.messages.load(Ordering::Relaxed);
            let message = subscription.waiters.notified();
            let remaining = self.try_once(lock, &owner).await?;
            if remaining == -1 {
                return held();
            }
            // A message between the attempt and this line is not lost: the counter shows it.
            if subscription.messages.load(Ordering::Relaxed) == heard {
                let most = Duration::from_millis(u64::try_from(remaining).unwrap_or(1));
                let _ = tokio::time::timeout(most, message).await;
            }
        }
    }
}

struct HeldLock {
    client: Arc<dyn RedisClient>,
    lock: String,
    owner: String,
}

#[async_trait]
impl Held for HeldLock {
    async fn release(self: Box<Self>) -> Result<(), &'static str> {
        let channel = format!("r1__channel:{{{}}}", self.lock);
        let args: [&[u8]; 2] = [self.owner.as_bytes(), channel.as_bytes()];
        RELEASE
            .run(&*self.client, &[self.lock.as_bytes()], &args)
            .await
            .map(drop)
    }
}
