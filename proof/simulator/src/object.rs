//! One use of an object of another library: the commands that Redisson's objects and redis-py's
//! `Lock` send to take it and to give it back.

use std::sync::Arc;
use std::time::Duration;

use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{ChannelFlavour, ClientError, Deployment, RedisClient, Reply, Route};
use locktopus_servers::peers::redisson_scripts as redisson;

use crate::client::SimClient;
use crate::pace::{Pace, millis};
use crate::plan::Kind;

/// The lease in ms. It is not renewed.
pub(crate) const LEASE: u64 = 500;
/// How long the first waiter in Redisson's fair queue may stay silent.
const FAIR_WAIT: &str = "1500";
const FOR_EVER: &str = "922337203685477";
/// Longer than any waiter waits.
const UNKNOWN: Duration = Duration::from_secs(3_600);
/// How often redis-py polls.
const AGAIN: Duration = Duration::from_millis(40);
/// redis-py's `Lock.LUA_RELEASE_SCRIPT`, rewritten.
const DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// How it publishes and subscribes: by slot in a cluster, as Redisson does.
pub(crate) fn flavour(client: &SimClient) -> ChannelFlavour {
    match client.deployment() {
        Deployment::Cluster => ChannelFlavour::Sharded,
        _ => ChannelFlavour::Plain,
    }
}

/// One use of one object.
pub(crate) struct Object {
    pub(crate) client: Arc<SimClient>,
    pub(crate) pace: Pace,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) owner: String,
    pub(crate) alone: bool,
    /// Sixteen bytes. The last two would number further permits.
    pub(crate) permit: String,
}

impl Object {
    /// Tries to take it. Returns `None` if it succeeded, and otherwise how long to wait before the
    /// next try, unless a message comes first.
    pub(crate) async fn take(&self) -> Result<Option<Duration>, ClientError> {
        let (name, owner, lease) = (&*self.name, &*self.owner, &*LEASE.to_string());
        let now = self.server_millis();
        let reply = match self.kind {
            Kind::RedisPy => {
                let words = ["SET", name, owner, "NX", "PX", lease];
                let taken = self.send(&words).await? != Reply::Nil;
                return Ok((!taken).then_some(AGAIN));
            }
            Kind::Fair => {
                let keys = [
                    name,
                    &self.side("redisson_lock_queue"),
                    &self.side("redisson_lock_timeout"),
                ];
                let args = [lease, owner, FAIR_WAIT, &now.to_string()];
                self.eval(&redisson::fair_lock(), &keys, &args).await?
            }
            Kind::ReadWrite if self.alone => {
                let args = [lease, &*self.writer()];
                self.eval(redisson::WRITE_LOCK, &[name], &args).await?
            }
            Kind::ReadWrite => {
                let keys = [name, &*self.timeouts()];
                let args = [lease, owner, &*self.writer()];
                self.eval(redisson::READ_LOCK, &keys, &args).await?
            }
            Kind::Semaphore(total) => {
                self.set_permits(total).await?;
                let acquire = redisson::SEMAPHORE_ACQUIRE;
                let reply = self.eval(acquire, &[name], &["1"]).await?;
                return Ok((reply != Reply::Int(1)).then_some(UNKNOWN));
            }
            Kind::Permits(total) => {
                self.set_permits(total).await?;
                let keys = [name, &*self.held_permits(), &*self.side("redisson_sc")];
                let (ends, at) = ((now + LEASE).to_string(), now.to_string());
                let args = ["1", &ends, &at, FOR_EVER, self.publish(), &self.permit];
                let reply = self.eval(redisson::PERMITS_ACQUIRE, &keys, &args).await?;
                return Ok(permits(&reply, now));
            }
            _ => self.eval(redisson::LOCK, &[name], &[lease, owner]).await?,
        };
        Ok(match reply {
            Reply::Nil => None,
            Reply::Int(left) => Some(u64::try_from(left).map_or(UNKNOWN, millis)),
            _ => Some(UNKNOWN),
        })
    }

    /// Gives it back. If the release is lost, the lease ends the hold.
    pub(crate) async fn release(&self) -> Result<Reply, ClientError> {
        let (name, owner, lease) = (&*self.name, &*self.owner, &*LEASE.to_string());
        let (now, publish) = (self.server_millis().to_string(), self.publish());
        match self.kind {
            Kind::RedisPy => self.eval(DELETE, &[name], &[owner]).await,
            Kind::Fair => {
                let keys = [
                    name,
                    &self.side("redisson_lock_queue"),
                    &self.side("redisson_lock_timeout"),
                    &self.side("redisson_lock__channel"),
                ];
                let args = ["0", lease, owner, publish, &now];
                self.eval(&redisson::fair_unlock(), &keys, &args).await
            }
            Kind::ReadWrite if self.alone => {
                let keys = [name, &self.side("redisson_rwlock")];
                let args = ["1", lease, &self.writer(), publish];
                self.eval(redisson::WRITE_UNLOCK, &keys, &args).await
            }
            Kind::ReadWrite => {
                let keys = [
                    name,
                    &self.side("redisson_rwlock"),
                    &self.timeouts(),
                    &tag(name),
                ];
                let args = ["0", owner, publish];
                self.eval(redisson::READ_UNLOCK, &keys, &args).await
            }
            Kind::Semaphore(_) => {
                let keys = [name, &self.side("redisson_sc")];
                let args = ["1", publish];
                self.eval(redisson::SEMAPHORE_RELEASE, &keys, &args).await
            }
            Kind::Permits(_) => {
                let keys = [name, &self.side("redisson_sc"), &self.held_permits()];
                let args = [&*self.permit, "1", &now, publish];
                self.eval(redisson::PERMITS_RELEASE, &keys, &args).await
            }
            _ => {
                let keys = [name, &self.side("redisson_lock__channel")];
                let args = ["0", lease, owner, publish];
                self.eval(redisson::UNLOCK, &keys, &args).await
            }
        }
    }

    /// Sets the number of permits. Before that there is nothing to take or to wait for.
    async fn set_permits(&self, total: u32) -> Result<(), ClientError> {
        let keys = [&*self.name, &*self.side("redisson_sc")];
        let args = [&*total.to_string(), self.publish()];
        let set = self.eval(redisson::SEMAPHORE_SET, &keys, &args);
        set.await.map(drop)
    }

    /// Sets a latch to one. Returns whether it did, so the caller has to count it down.
    pub(crate) async fn set_latch(&self) -> bool {
        let keys = [&*self.name, &*self.latch_channel()];
        let args = ["1", self.publish()];
        self.eval(redisson::LATCH_SET, &keys, &args).await == Ok(Reply::Int(1))
    }

    pub(crate) async fn count_latch_down(&self) {
        let keys = [&*self.name, &*self.latch_channel()];
        // Its waiters give up on their own.
        let _ = self
            .eval(redisson::LATCH_DOWN, &keys, &[self.publish()])
            .await;
    }

    /// The channel on which its waiters hear that they should ask again. A waiter of the fair lock
    /// has its own.
    pub(crate) fn channel(&self) -> Option<String> {
        match self.kind {
            Kind::Lock => Some(self.side("redisson_lock__channel")),
            Kind::Fair => {
                let channel = self.side("redisson_lock__channel");
                Some(format!("{channel}:{}", self.owner))
            }
            Kind::ReadWrite => Some(self.side("redisson_rwlock")),
            Kind::Semaphore(_) | Kind::Permits(_) => Some(self.side("redisson_sc")),
            Kind::RedisPy | Kind::Mutex | Kind::SingleKey | Kind::Latch => None,
        }
    }

    fn publish(&self) -> &'static str {
        match flavour(&self.client) {
            ChannelFlavour::Sharded => "SPUBLISH",
            ChannelFlavour::Plain => "PUBLISH",
        }
    }

    /// The time of its own clock.
    fn server_millis(&self) -> u64 {
        (crate::node::EPOCH.unsigned_abs() + self.pace.now()) / 1_000
    }

    fn side(&self, prefix: &str) -> String {
        format!("{prefix}:{}", tag(&self.name))
    }

    fn writer(&self) -> String {
        format!("{}:write", self.owner)
    }

    fn timeouts(&self) -> String {
        format!("{}:{}:rwlock_timeout", tag(&self.name), self.owner)
    }

    fn held_permits(&self) -> String {
        format!("{}:timeout", tag(&self.name))
    }

    fn latch_channel(&self) -> String {
        format!("redisson_countdownlatch__channel__{{{}}}", self.name)
    }

    async fn eval(&self, script: &str, keys: &[&str], args: &[&str]) -> Result<Reply, ClientError> {
        let count = keys.len().to_string();
        self.send(&[&["EVAL", script, &count][..], keys, args].concat())
            .await
    }

    async fn send(&self, words: &[&str]) -> Result<Reply, ClientError> {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        let route = Route::Slot(key_slot(self.name.as_bytes()));
        let answer = tokio::time::timeout(millis(LEASE), self.client.command(route, &words));
        answer
            .await
            .unwrap_or_else(|_| Err(ClientError::MaybeExecuted("no answer".to_owned())))
    }
}

/// Parses `OK`, `:<when the first permit expires>`, or nil.
fn permits(reply: &Reply, now: u64) -> Option<Duration> {
    let Reply::Bytes(answer) = reply else {
        return Some(UNKNOWN);
    };
    if &answer[..] == b"OK" {
        return None;
    }
    let ends = std::str::from_utf8(answer).ok();
    let ends = ends.and_then(|answer| answer.strip_prefix(':')?.parse::<u64>().ok());
    Some(ends.map_or(UNKNOWN, |ends| millis(ends.saturating_sub(now))))
}

/// The hash tag that Redisson puts into the names of keys beside a lock.
fn tag(name: &str) -> String {
    if name.contains('{') {
        name.to_owned()
    } else {
        format!("{{{name}}}")
    }
}
