//! Locks that are broken on purpose, each in one way that is common in the field. The checker must catch them all;
//! one that does not would find nothing in a real lock either.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use locktopus::{Fence, FencingToken, LockKind, LockName, LockTarget, OwnerId};
use locktopus_history::{Clock, FailReason, ReleaseOutcome};
use locktopus_protocol::{RedisClient, Reply, Route, slot};

use super::job::Job;
use super::subject::{Failure, Held, Subject, Wish};
use crate::failover::plan::Subject as Whose;

const RETRY: Duration = Duration::from_millis(3);
/// How late every other reply is looked at, as by a process that was busy.
const BUSY: Duration = Duration::from_millis(80);
/// What a sound holder leaves off the end of a lease.
const MARGIN: Duration = Duration::from_millis(8);

const RELEASE: &[u8] = b"\
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0";

struct Broken {
    client: Arc<dyn RedisClient>,
    how: Whose,
    clock: Clock,
    patience: Duration,
    grants: AtomicU64,
}

pub(super) async fn connect(job: &Job, clock: Clock) -> Result<Arc<dyn Subject>, String> {
    let [url] = job.urls.as_slice() else {
        return Err("broken locks are connected to one place".to_owned());
    };
    let client = locktopus::connect_client(url)
        .await
        .map_err(|error| crate::shared::error_chain::chain(&error))?;
    Ok(Arc::new(Broken {
        client,
        how: job.subject,
        clock,
        patience: job.patience,
        grants: AtomicU64::new(0),
    }))
}

#[async_trait]
impl Subject for Broken {
    async fn acquire(&self, wish: Wish<'_>) -> Result<Box<dyn Held>, Failure> {
        let failed = |reason, kind: &str| Failure {
            reason,
            kind: kind.to_owned(),
        };
        let give_up = self.clock.after(self.patience);
        let owner = OwnerId::generate();
        let lease = wish.group.lease.as_millis().to_string();
        let args: [&[u8]; 6] = [
            b"SET",
            wish.lock.as_bytes(),
            owner.expose(),
            b"NX",
            b"PX",
            lease.as_bytes(),
        ];
        let sent = loop {
            let sent = self.clock.now_ns();
            match self.client.command(route(wish.lock), &args).await {
                Ok(Reply::Nil) if self.clock.now_ns() < give_up => {
                    tokio::time::sleep(RETRY).await;
                }
                Ok(Reply::Nil) => return Err(failed(FailReason::Timeout, "wait timeout")),
                Ok(_) => break sent,
                Err(_) => return Err(failed(FailReason::Maybe, "no answer")),
            }
        };
        let mut valid_until = sent + nanos(wish.group.lease.saturating_sub(MARGIN));
        if self.how == Whose::BrokenValidity {
            if self
                .grants
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(2)
            {
                tokio::time::sleep(BUSY).await;
            }
            valid_until = self.clock.after(wish.group.lease);
        }
        let token = if self.how == Whose::BrokenTokens {
            self.count(wish.lock)
                .await
                .map_err(|()| failed(FailReason::Maybe, "no answer"))?
        } else {
            None
        };
        Ok(Box::new(HeldLock {
            client: Arc::clone(&self.client),
            how: self.how,
            clock: self.clock,
            lock: wish.lock.to_owned(),
            owner,
            token,
            valid_until,
        }))
    }

    async fn close(&self) -> u64 {
        self.client.close().await;
        0
    }
}

impl Broken {
    /// A token that is as mortal as the server's memory.
    async fn count(&self, lock: &str) -> Result<Option<FencingToken>, ()> {
        let key = format!("{{{lock}}}:count");
        let command: [&[u8]; 2] = [b"INCR", key.as_bytes()];
        match self.client.command(route(lock), &command).await {
            Ok(Reply::Int(count)) => Ok(u64::try_from(count).ok().and_then(FencingToken::new)),
            _ => Err(()),
        }
    }
}

fn route(lock: &str) -> Route {
    Route::Slot(slot::key_slot(lock.as_bytes()))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

struct HeldLock {
    client: Arc<dyn RedisClient>,
    how: Whose,
    clock: Clock,
    lock: String,
    owner: OwnerId,
    token: Option<FencingToken>,
    valid_until: u64,
}

#[async_trait]
impl Held for HeldLock {
    fn fence(&self) -> Option<Fence> {
        // Without the holder's mark, as a bare number is.
        let name = LockName::new(&*self.lock).ok()?;
        let target = LockTarget::new(name, LockKind::Reentrant);
        Some(Fence::new(&target, self.token?))
    }

    fn valid_until(&self) -> u64 {
        self.valid_until
    }

    fn ended(&self) -> Option<String> {
        (self.clock.now_ns() >= self.valid_until).then(|| "expired".to_owned())
    }

    async fn lost(&self) -> String {
        if self.how == Whose::BrokenRelease {
            // Nothing tells its holders, who find out when they are done.
            return std::future::pending().await;
        }
        super::sleep_until(self.clock, self.valid_until).await;
        "expired".to_owned()
    }

    async fn release(self: Box<Self>) -> ReleaseOutcome {
        let (key, route) = (self.lock.as_bytes(), route(&self.lock));
        let reply = if self.how == Whose::BrokenRelease {
            self.client.command(route, &[b"DEL", key]).await
        } else {
            let args: [&[u8]; 5] = [b"EVAL", RELEASE, b"1", key, self.owner.expose()];
            self.client.command(route, &args).await
        };
        match reply {
            Ok(Reply::Int(1..)) => ReleaseOutcome::Ok,
            Ok(_) => ReleaseOutcome::Lost,
            Err(_) => ReleaseOutcome::Error,
        }
    }
}
