//! The bare hand-off: the floor for every comparison, and not a lock to use.
//!
//! It is a string, taken with SET NX PX. If that fails, the caller leaves a ticket in a list and
//! waits for a message. A release makes the first ticket the holder and tells its process. An
//! acquisition that had to wait takes two scripts with eight commands in all: the cost of a lock
//! that is handed on, and nothing else. It excludes while no process dies, no waiter gives up and
//! no message is lost. Otherwise it is stuck for a lease or for ever: it has no token and no
//! renewal, a place in the list never expires, and a lost holder, waiter or message goes unnoticed.

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

/// KEYS 1 the lock, 2 the tickets; ARGV 1 the lease in ms, 2 the owner. Returns 1 if it is taken.
static ACQUIRE: Script = script!(
    "\
if redis.call('SET', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[1]) then return 1 end
redis.call('RPUSH', KEYS[2], ARGV[2])
return 0"
);

/// KEYS as above; ARGV 1 the lease of the next holder in ms, 2 the owner. An owner is
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

/// The waiters, by owner.
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
        // Before the script runs, because the grant may arrive before the script's reply.
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
