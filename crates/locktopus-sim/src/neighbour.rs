//! Processes of other libraries on the same locks: Redisson's `RLock` and redis-py's `Lock`, by the commands that they send.
//! They ask again until a lock is free, and do not renew it.

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::clock;
use locktopus_protocol::{ClientError, RedisClient as _, Reply, Route};
use tokio::time::sleep;

use crate::client::SimClient;
use crate::log::{Hold, Log};
use crate::pace::{Pace, millis};
use crate::plan::{Act, Kind, Plan};

/// Redisson 3: `RedissonLock.tryLockInnerAsync` and `unlockInnerAsync`.
const LOCK: &str = "if (redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then \
    redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; \
    return redis.call('pttl', KEYS[1]);";
const UNLOCK: &str = "if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then return nil; end; \
    local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); \
    if (counter > 0) then redis.call('pexpire', KEYS[1], ARGV[2]); return 0; \
    else redis.call('del', KEYS[1]); redis.call(ARGV[4], KEYS[2], ARGV[1]); return 1; end; return nil;";
/// redis-py: `Lock.LUA_RELEASE_SCRIPT`.
const DELETE: &str = "local token = redis.call('get', KEYS[1]) \
    if not token or token ~= ARGV[1] then return 0 end redis.call('del', KEYS[1]) return 1";

const LEASE: u64 = 500;
/// What it stops believing before the lease ends, for clocks that go wrong.
const MARGIN: u64 = 15;
const AGAIN: Duration = Duration::from_millis(40);
/// How often it asks before it gives up.
const TRIES: u32 = 60;

/// One task of another library.
pub(crate) struct Neighbour {
    pub(crate) process: usize,
    pub(crate) number: usize,
    pub(crate) plan: Arc<Plan>,
    pub(crate) client: Arc<SimClient>,
    pub(crate) log: Log,
    pub(crate) pace: Pace,
}

impl Neighbour {
    pub(crate) async fn run(self) {
        let acts = self.plan.processes[self.process].tasks[self.number].iter();
        for (place, act) in acts.enumerate() {
            sleep(millis(act.pause)).await;
            let kind = self.plan.locks[act.lock].kind;
            if matches!(kind, Kind::Lock | Kind::RedisPy) {
                self.act(act, place, kind == Kind::Lock).await;
            }
        }
    }

    async fn act(&self, act: &Act, place: usize, redisson: bool) {
        let name = self.plan.locks[act.lock].name.as_str();
        // A thread for each: what one of them sent late is not taken for another one's.
        let owner = format!(
            "3f2a91c4-0b0b-4c70-9705-{:012}:{}{place}",
            self.process, self.number
        );
        let asked = self.pace.now();
        for _ in 0..TRIES {
            let sent = clock::now();
            match self.take(name, &owner, redisson).await {
                Ok(true) => {
                    self.hold(act, asked, sent + millis(LEASE - MARGIN)).await;
                    self.release(name, &owner, redisson).await;
                    return;
                }
                Ok(false) | Err(ClientError::NotSent(_) | ClientError::Rejected { .. }) => {
                    sleep(AGAIN).await
                }
                // Perhaps it holds the lock; it does not believe so, and is not let in twice.
                Err(ClientError::MaybeExecuted(_)) => {
                    sleep(millis(LEASE * 2)).await;
                    return;
                }
            }
        }
    }

    async fn take(&self, name: &str, owner: &str, redisson: bool) -> Result<bool, ClientError> {
        let lease = LEASE.to_string();
        if redisson {
            let words = ["EVAL", LOCK, "1", name, &lease, owner];
            return Ok(self.send(&words).await? == Reply::Nil);
        }
        let words = ["SET", name, owner, "NX", "PX", &lease];
        Ok(self.send(&words).await? != Reply::Nil)
    }

    async fn hold(&self, act: &Act, asked: u64, until: clock::BootInstant) {
        if clock::now() >= until {
            return;
        }
        self.log
            .count(if self.plan.locks[act.lock].kind == Kind::Lock {
                "held: Redisson"
            } else {
                "held: redis-py"
            });
        let from = self.pace.now();
        let hold = Hold {
            process: self.process,
            task: self.number,
            lock: act.lock,
            exclusive: true,
            permits: 1,
            token: None,
            asked,
            from,
            valid: from,
        };
        let place = self.log.with(|notes| {
            notes.holds.push(hold);
            notes.holds.len() - 1
        });
        for _ in 0..act.hold / 7 {
            sleep(millis(7)).await;
            if clock::now() >= until {
                return;
            }
            let now = self.pace.now();
            self.log.with(|notes| notes.holds[place].valid = now);
        }
    }

    async fn release(&self, name: &str, owner: &str, redisson: bool) {
        let channel = format!(
            "redisson_lock__channel:{}",
            if name.contains('{') {
                name.to_owned()
            } else {
                format!("{{{name}}}")
            }
        );
        let lease = LEASE.to_string();
        // What does not arrive ends with its lease.
        let _ = if redisson {
            self.send(&[
                "EVAL", UNLOCK, "2", name, &channel, "0", &lease, owner, "publish",
            ])
            .await
        } else {
            self.send(&["EVAL", DELETE, "1", name, owner]).await
        };
    }

    async fn send(&self, words: &[&str]) -> Result<Reply, ClientError> {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        let answer = tokio::time::timeout(millis(LEASE), self.client.command(Route::Any, &words));
        answer
            .await
            .unwrap_or_else(|_| Err(ClientError::MaybeExecuted("no answer".to_owned())))
    }
}
