//! The bare hand-off: the floor that everything is held against, and no lock for anybody to use.
//!
//! A string taken by SET NX PX; who fails leaves a ticket in a list and waits to be told; a release
//! makes the first ticket the holder and tells its process. Two scripts of eight commands in all
//! for an acquisition that had to wait: what a lock costs that is handed on and does nothing else.
//! While nobody dies, nobody gives up waiting and no message is lost, it excludes. Otherwise it
//! stands still for a lease or for ever: there is no token, no renewal, no place that ends, and
//! nobody finds out that a holder, a waiter or a message is gone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use locktopus_protocol::{Channel, ChannelFlavour, PushEvent, RedisClient};
use tokio::sync::oneshot;

use super::script::{Script, script};
use super::{Held, Kind, LEASE, Subject};
use crate::shared::error_chain::chain;

/// KEYS 1 the lock, 2 the tickets; ARGV 1 the lease in ms, 2 the owner. 1 if it is taken.
static ACQUIRE: Script = script!(
    "\
if redis.call('SET', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[1]) then return 1 end
redis.call('RPUSH', KEYS[2], ARGV[2])
return 0"
);

/// KEYS as above; ARGV 1 the lease of whoever is next in ms, 2 the owner. An owner is
/// `<inbox>:<number>`.
static RELEASE: Script = script!(
    "\
if redis.call('GET', KEYS[1]) ~= ARGV[2] then return 0 end
local following = redis.call('LPOP', KEYS[2])
if following then
  redis.call('SET', KEYS[1], following, 'PX', ARGV[1])
  redis.call('PUBLISH', string.match(following, '^[^:]+'), following)
else
  redis.call('DEL', KEYS[1])
end
return 1"
);

/// Who waits, by owner.
type Waiters = Arc<Mutex<HashMap<Bytes, oneshot::Sender<()>>>>;

pub(crate) async fn connect(url: &str) -> Result<Arc<dyn Subject>, String> {
    static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
    let client = locktopus::connect_client(url)
        .await
        .map_err(|error| chain(&error))?;
    let waiters = Waiters::default();
    let mut events = client.take_events().ok_or("the client gives no events")?;
    let told = Arc::clone(&waiters);
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if let PushEvent::Message { payload, .. } = event
                && let Some(waiter) = lock(&told).remove(&payload)
            {
                let _ = waiter.send(());
            }
        }
    });
    let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    let inbox = format!("bare-{}-{number}", std::process::id());
    let channel = Channel {
        name: inbox.clone().into(),
        flavour: ChannelFlavour::Plain,
    };
    client
        .subscribe(&[channel])
        .await
        .map_err(|error| chain(&error))?;
    Ok(Arc::new(Bare {
        client,
        waiters,
        inbox,
        next_owner: AtomicU64::new(0),
    }))
}

struct Bare {
    client: Arc<dyn RedisClient>,
    waiters: Waiters,
    inbox: String,
    next_owner: AtomicU64,
}

#[async_trait]
impl Subject for Bare {
    async fn acquire(&self, _kind: Kind, lock_name: &str) -> Result<Box<dyn Held>, &'static str> {
        let number = self.next_owner.fetch_add(1, Ordering::Relaxed);
        let owner = Bytes::from(format!("{}:{number}", self.inbox));
        let held = Box::new(HeldLock {
            client: Arc::clone(&self.client),
            keys: [lock_name.to_owned(), format!("bare_queue:{{{lock_name}}}")],
            owner: owner.clone(),
        });
        // Before the script runs: the grant may come before its answer.
        let (granted, turn) = oneshot::channel();
        lock(&self.waiters).insert(owner.clone(), granted);
        match held.run(&ACQUIRE).await {
            Ok(0) => turn.await.map_err(|_| "backend")?,
            answer => {
                lock(&self.waiters).remove(&owner);
                answer?;
            }
        }
        Ok(held)
    }
}

struct HeldLock {
    client: Arc<dyn RedisClient>,
    keys: [String; 2],
    owner: Bytes,
}

impl HeldLock {
    async fn run(&self, script: &Script) -> Result<i64, &'static str> {
        let lease = LEASE.as_millis().to_string();
        let keys = self.keys.each_ref().map(String::as_bytes);
        script
            .run(&*self.client, &keys, &[lease.as_bytes(), &self.owner])
            .await
    }
}

#[async_trait]
impl Held for HeldLock {
    async fn release(self: Box<Self>) -> Result<(), &'static str> {
        self.run(&RELEASE).await.map(drop)
    }
}

/// A panic while one of these short sections runs leaves the map whole, so poison is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
