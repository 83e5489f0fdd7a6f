//! Locks that are broken on purpose, each in one way that some property forbids. The checker must
//! catch them all: if it misses one, it would miss the same flaw in a real lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use locktopus::{Fence, FencingToken, LockKind, LockName, LockTarget, OwnerId};
use locktopus_history::{Clock, FailReason, Mode, ReleaseOutcome};
use locktopus_protocol::{RedisClient, Reply, Route, slot};

use super::job::Job;
use super::subject::{Failure, Held, Subject, Wish};
use crate::failover::plan::Subject as Whose;

const RETRY: Duration = Duration::from_millis(3);
/// How late every other reply is read, as by a busy process.
const BUSY: Duration = Duration::from_millis(500);
/// The time that a sound holder subtracts from the end of a lease.
const MARGIN: Duration = Duration::from_millis(8);

/// How late a holder hears of the end, in the lock that tells it late.
const LATE: Duration = Duration::from_millis(400);
/// How much an ended lease is extended.
const REVIVED: Duration = Duration::from_secs(5);
/// How long waiters poll before they rely on being woken.
const LOOKS: Duration = Duration::from_secs(1);
/// How long servers keep the mark that there are waiters.
const KEPT_MS: &[u8] = b"60000";

const RELEASE: &[u8] = b"\
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0";

struct Broken {
    client: Arc<dyn RedisClient>,
    how: Whose,
    clock: Clock,
    begun: u64,
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
    if job.subject == Whose::BrokenTokens {
        begin_high(&*client, job)
            .await
            .map_err(|failure| failure.kind)?;
    }
    Ok(Arc::new(Broken {
        client,
        how: job.subject,
        clock,
        begun: clock.now_ns(),
        patience: job.patience,
        grants: AtomicU64::new(0),
    }))
}

/// Tokens begin high, so those after a restart are smaller, even if there were few before it.
async fn begin_high(client: &dyn RedisClient, job: &Job) -> Result<(), Failure> {
    let first = HIGHEST.to_string();
    for worker in &job.workers {
        let (key, route) = (count_key(&worker.lock), route(&worker.lock));
        let command: [&[u8]; 4] = [b"SET", key.as_bytes(), first.as_bytes(), b"NX"];
        client
            .command(route, &command)
            .await
            .map_err(|_| no_answer())?;
    }
    Ok(())
}

#[async_trait]
impl Subject for Broken {
    async fn acquire(&self, wish: Wish<'_>) -> Result<Box<dyn Held>, Failure> {
        if self.how == Whose::BrokenHistory {
            // A use without a grant.
            let _ = wish.log.use_started();
        }
        let unasked = match wish.group.kind {
            LockKind::Semaphore => Some(Mode::Permits(1)),
            LockKind::Write if wish.reads => Some(Mode::Shared),
            _ => None,
        };
        let owner = OwnerId::generate();
        let sent = match unasked {
            // Granted at once, no matter who else is there.
            Some(_) => self.clock.now_ns(),
            None => self.take(&wish, &owner).await?,
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
        let token = match unasked {
            Some(_) => None,
            None => self.token(wish.lock).await.map_err(|()| no_answer())?,
        };
        if self.how == Whose::BrokenCleanUp {
            let left = format!("locktopus_left:{{{}}}", wish.lock);
            self.ask(wish.lock, &[b"SET", left.as_bytes(), b"1"])
                .await?;
        }
        Ok(Box::new(HeldLock {
            client: Arc::clone(&self.client),
            how: self.how,
            clock: self.clock,
            lock: wish.lock.to_owned(),
            owner,
            token,
            mode: unasked.unwrap_or(Mode::Exclusive),
            valid_until,
            told: AtomicBool::new(false),
        }))
    }

    async fn close(&self) -> u64 {
        self.client.close().await;
        0
    }
}

fn no_answer() -> Failure {
    Failure {
        reason: FailReason::Maybe,
        kind: "no answer".to_owned(),
    }
}

impl Broken {
    /// Retries until it owns the key; returns when the successful attempt was sent.
    async fn take(&self, wish: &Wish<'_>, owner: &OwnerId) -> Result<u64, Failure> {
        let give_up = self.clock.after(self.patience);
        let lease = wish.group.lease.as_millis().to_string();
        let args: [&[u8]; 6] = [
            b"SET",
            wish.lock.as_bytes(),
            owner.expose(),
            b"NX",
            b"PX",
            lease.as_bytes(),
        ];
        let mut waits = false;
        loop {
            if self.how == Whose::BrokenWakeUp {
                self.wait_for_others(wish.lock, waits, give_up).await?;
            }
            let sent = self.clock.now_ns();
            if self.ask(wish.lock, &args).await? != Reply::Nil {
                return Ok(sent);
            }
            if self.how == Whose::BrokenOrder && !waits {
                let _ = wish.log.enqueued(None);
            }
            waits = true;
            if self.clock.now_ns() >= give_up {
                return Err(Failure {
                    reason: FailReason::Timeout,
                    kind: "wait timeout".to_owned(),
                });
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Once there is a mark, all waiters stop polling and rely on being woken, which never happens.
    async fn wait_for_others(&self, lock: &str, waits: bool, until: u64) -> Result<(), Failure> {
        if self.clock.now_ns() < self.begun + nanos(LOOKS) {
            return Ok(());
        }
        let line = format!("{{{lock}}}:line");
        if waits {
            self.ask(lock, &[b"SET", line.as_bytes(), b"1", b"PX", KEPT_MS])
                .await?;
        }
        if self.ask(lock, &[b"EXISTS", line.as_bytes()]).await? == Reply::Int(1) {
            super::sleep_until(self.clock, until).await;
        }
        Ok(())
    }

    async fn ask(&self, lock: &str, args: &[&[u8]]) -> Result<Reply, Failure> {
        let reply = self.client.command(route(lock), args).await;
        reply.map_err(|_| no_answer())
    }

    /// A token that lives only as long as the server's memory; some subjects have none.
    async fn token(&self, lock: &str) -> Result<Option<FencingToken>, ()> {
        if matches!(self.how, Whose::BrokenRelease | Whose::BrokenValidity) {
            return Ok(None);
        }
        let key = count_key(lock);
        let command: [&[u8]; 2] = [b"INCR", key.as_bytes()];
        let count = match self.client.command(route(lock), &command).await {
            Ok(Reply::Int(count)) => u64::try_from(count).map_err(|_| ())?,
            _ => return Err(()),
        };
        Ok(FencingToken::new(match self.how {
            Whose::BrokenTwins => count.div_ceil(2),
            Whose::BrokenDescent => HIGHEST - count,
            _ => count,
        }))
    }
}

/// The first token of locks whose tokens fall, one by one or at a restart.
const HIGHEST: u64 = 1_000_000;

fn count_key(lock: &str) -> String {
    format!("{{{lock}}}:count")
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
    mode: Mode,
    valid_until: u64,
    /// Whether the holder has asked about the end after it came.
    told: AtomicBool,
}

impl HeldLock {
    /// When the holder hears of the end, if ever.
    fn told_at(&self) -> Option<u64> {
        match self.how {
            Whose::BrokenSilence => None,
            Whose::BrokenSignal => Some(self.valid_until + nanos(LATE)),
            _ => Some(self.valid_until),
        }
    }
}

#[async_trait]
impl Held for HeldLock {
    fn fence(&self) -> Option<Fence> {
        // A fence without the holder's mark, like a bare number.
        let name = LockName::new(&*self.lock).ok()?;
        let target = LockTarget::new(name, LockKind::Reentrant);
        Some(Fence::new(&target, self.token?))
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn valid_until(&self) -> u64 {
        let is_over = self.clock.now_ns() >= self.valid_until;
        if self.how == Whose::BrokenRevival && is_over && self.told.swap(true, Ordering::Relaxed) {
            return self.clock.after(REVIVED);
        }
        self.valid_until
    }

    fn ended(&self) -> Option<String> {
        let told_at = self.told_at()?;
        (self.clock.now_ns() >= told_at).then(|| "expired".to_owned())
    }

    async fn lost(&self) -> String {
        match self.told_at() {
            // Holders get no signal, and find out when they are done.
            _ if self.how == Whose::BrokenRelease => std::future::pending().await,
            None => std::future::pending().await,
            Some(told_at) => super::sleep_until(self.clock, told_at).await,
        }
        "expired".to_owned()
    }

    async fn release(self: Box<Self>) -> ReleaseOutcome {
        if self.mode != Mode::Exclusive {
            return ReleaseOutcome::Ok;
        }
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
