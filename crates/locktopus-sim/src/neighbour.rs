//! Processes of other libraries on the same locks: objects of Redisson's and redis-py's `Lock`, by the scripts that they run.
//! They ask again until a lock is free, and do not renew it.

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::clock;
use locktopus_protocol::{Channel, ChannelFlavour, ClientError, RedisClient as _, Reply, Route};
use locktopus_testbed::peers::redisson_scripts as redisson;
use tokio::time::sleep;

use crate::client::SimClient;
use crate::log::{Hold, Log};
use crate::pace::{Pace, millis};
use crate::plan::{Act, Kind, Plan};

const LEASE: u64 = 500;
/// How long a waiter in Redisson's fair queue is waited for, once it is first.
const FAIR_WAIT: &str = "1500";
const FOR_EVER: &str = "922337203685477";
/// redis-py: `Lock.LUA_RELEASE_SCRIPT`, in words of our own.
const DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
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
        self.listen().await;
        let acts = self.plan.processes[self.process].tasks[self.number].iter();
        for (place, act) in acts.enumerate() {
            sleep(millis(act.pause)).await;
            if self.can(act) {
                self.act(act, place).await;
            }
        }
    }

    /// Its waiters hear what is announced, and are counted for that; these ask again anyway.
    async fn listen(&self) {
        let locks = self
            .plan
            .locks
            .iter()
            .filter(|lock| lock.kind == Kind::Lock);
        let channels: Vec<_> = locks
            .map(|lock| Channel {
                name: side(&lock.name, "redisson_lock__channel").into(),
                flavour: ChannelFlavour::Plain,
            })
            .collect();
        // Whoever is not heard asks all the same.
        let _ = tokio::time::timeout(millis(LEASE), self.client.subscribe(&channels)).await;
    }

    /// Whether its library has such an object, and whatever happens to it leaves the others what they need.
    fn can(&self, act: &Act) -> bool {
        let lock = &self.plan.locks[act.lock];
        let others = self.plan.locks.iter();
        let mixed = others.filter(|other| other.name == lock.name).count() > 1;
        match lock.kind {
            Kind::Lock | Kind::RedisPy => true,
            // They write over what they do not know.
            _ if mixed => false,
            Kind::Fair | Kind::ReadWrite | Kind::Permits(_) => true,
            // What somebody had who is gone comes back to nobody.
            Kind::Semaphore(_) => self.plan.faults.is_empty(),
            Kind::Latch => act.exclusive,
            Kind::Mutex | Kind::SingleKey => false,
        }
    }

    async fn act(&self, act: &Act, place: usize) {
        // A thread for each: what one of them sent late is not taken for another one's.
        let owner = format!(
            "3f2a91c4-0b0b-4c70-9705-{:012}:{}{place}",
            self.process, self.number
        );
        let one = One {
            kind: self.plan.locks[act.lock].kind,
            name: self.plan.locks[act.lock].name.clone(),
            owner,
            alone: act.exclusive,
            permit: format!("n{:05}{:04}{place:04}00", self.process, self.number),
        };
        if one.kind == Kind::Latch {
            self.latch(&one, act.hold).await;
            return;
        }
        let asked = self.pace.now();
        for _ in 0..TRIES {
            let sent = clock::now();
            match self.take(&one).await {
                Ok(true) => {
                    self.hold(act, asked, sent + millis(LEASE - MARGIN)).await;
                    self.release(&one).await;
                    return;
                }
                Ok(false) | Err(ClientError::NotSent(_) | ClientError::Rejected { .. }) => {
                    sleep(AGAIN).await;
                }
                // Perhaps it holds the lock; it does not believe so, and is not let in twice.
                Err(ClientError::MaybeExecuted(_)) => {
                    sleep(millis(LEASE * 2)).await;
                    return;
                }
            }
        }
    }

    async fn take(&self, one: &One) -> Result<bool, ClientError> {
        let (name, owner, lease) = (&*one.name, &*one.owner, &*LEASE.to_string());
        let now = self.server_millis();
        let taken = match one.kind {
            Kind::RedisPy => {
                let words = ["SET", name, owner, "NX", "PX", lease];
                return Ok(self.send(&words).await? != Reply::Nil);
            }
            Kind::Fair => {
                let script = format!(
                    "local now = tonumber(ARGV[4]){}{}",
                    redisson::PROLOGUE,
                    redisson::FAIR_LOCK
                );
                let keys = [
                    name,
                    &one.side("redisson_lock_queue"),
                    &one.side("redisson_lock_timeout"),
                ];
                let now = now.to_string();
                self.eval(&script, &keys, &[lease, owner, FAIR_WAIT, &now])
                    .await?
                    == Reply::Nil
            }
            Kind::ReadWrite if one.alone => {
                let keys = [name];
                let reply = self
                    .eval(redisson::WRITE_LOCK, &keys, &[lease, &one.writer()])
                    .await?;
                reply == Reply::Nil
            }
            Kind::ReadWrite => {
                let keys = [name, &one.timeouts()];
                let args = [lease, owner, &one.writer()];
                self.eval(redisson::READ_LOCK, &keys, &args).await? == Reply::Nil
            }
            Kind::Semaphore(total) => {
                let keys = [name, &one.side("redisson_sc")];
                let args = [&*total.to_string(), "PUBLISH"];
                self.eval(redisson::SEMAPHORE_SET, &keys, &args).await?;
                let reply = self
                    .eval(redisson::SEMAPHORE_ACQUIRE, &[name], &["1"])
                    .await?;
                reply == Reply::Int(1)
            }
            Kind::Permits(_) => {
                let keys = [name, &one.held_permits(), &one.side("redisson_sc")];
                let (ends, now) = ((now + LEASE).to_string(), now.to_string());
                let args = ["1", &ends, &now, FOR_EVER, "PUBLISH", &one.permit];
                let reply = self.eval(redisson::PERMITS_ACQUIRE, &keys, &args).await?;
                matches!(&reply, Reply::Bytes(answer) if &answer[..] == b"OK")
            }
            _ => self.eval(redisson::LOCK, &[name], &[lease, owner]).await? == Reply::Nil,
        };
        Ok(taken)
    }

    async fn release(&self, one: &One) {
        let (name, owner, lease) = (&*one.name, &*one.owner, &*LEASE.to_string());
        let now = self.server_millis().to_string();
        // What does not arrive ends with its lease.
        let _ = match one.kind {
            Kind::RedisPy => self.eval(DELETE, &[name], &[owner]).await,
            Kind::Fair => {
                let script = format!(
                    "local now = tonumber(ARGV[5]){}{}",
                    redisson::PROLOGUE,
                    redisson::FAIR_UNLOCK
                );
                let keys = [
                    name,
                    &one.side("redisson_lock_queue"),
                    &one.side("redisson_lock_timeout"),
                    &one.side("redisson_lock__channel"),
                ];
                let args = ["0", lease, owner, "PUBLISH", &now];
                self.eval(&script, &keys, &args).await
            }
            Kind::ReadWrite if one.alone => {
                let keys = [name, &one.side("redisson_rwlock")];
                let args = ["1", lease, &one.writer(), "PUBLISH"];
                self.eval(redisson::WRITE_UNLOCK, &keys, &args).await
            }
            Kind::ReadWrite => {
                let keys = [
                    name,
                    &one.side("redisson_rwlock"),
                    &one.timeouts(),
                    &one.tag(),
                ];
                let args = ["0", owner, "PUBLISH"];
                self.eval(redisson::READ_UNLOCK, &keys, &args).await
            }
            Kind::Semaphore(_) => {
                let keys = [name, &one.side("redisson_sc")];
                self.eval(redisson::SEMAPHORE_RELEASE, &keys, &["1", "PUBLISH"])
                    .await
            }
            Kind::Permits(_) => {
                let keys = [name, &one.side("redisson_sc"), &one.held_permits()];
                let args = [&*one.permit, "1", &now, "PUBLISH"];
                self.eval(redisson::PERMITS_RELEASE, &keys, &args).await
            }
            _ => {
                let keys = [name, &one.side("redisson_lock__channel")];
                self.eval(redisson::UNLOCK, &keys, &["0", lease, owner, "PUBLISH"])
                    .await
            }
        };
    }

    async fn latch(&self, one: &One, hold: u64) {
        let channel = format!("redisson_countdownlatch__channel__{{{}}}", one.name);
        let keys = [&*one.name, &channel];
        let set = self
            .eval(redisson::LATCH_SET, &keys, &["1", "PUBLISH"])
            .await;
        if set == Ok(Reply::Int(1)) {
            self.log.count("latch of Redisson");
            sleep(millis(hold)).await;
            // Whoever waits for it gives up by itself.
            let _ = self.eval(redisson::LATCH_DOWN, &keys, &["PUBLISH"]).await;
        }
    }

    /// What its own clock shows.
    fn server_millis(&self) -> u64 {
        (crate::node::EPOCH.unsigned_abs() + self.pace.now()) / 1_000
    }

    async fn hold(&self, act: &Act, asked: u64, until: clock::BootInstant) {
        if clock::now() >= until {
            return;
        }
        let kind = self.plan.locks[act.lock].kind;
        self.log.count(match kind {
            Kind::RedisPy => "held: redis-py",
            Kind::Fair => "held: Redisson, fair",
            Kind::ReadWrite => "held: Redisson, read-write",
            Kind::Semaphore(_) | Kind::Permits(_) => "held: Redisson, permits",
            _ => "held: Redisson",
        });
        let shared = matches!(kind, Kind::Semaphore(_) | Kind::Permits(_))
            || kind == Kind::ReadWrite && !act.exclusive;
        let from = self.pace.now();
        let hold = Hold {
            process: self.process,
            task: self.number,
            lock: act.lock,
            exclusive: !shared,
            permits: 1,
            token: None,
            owner: None,
            asked,
            from,
            valid: from,
            ended: None,
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

    async fn eval(&self, script: &str, keys: &[&str], args: &[&str]) -> Result<Reply, ClientError> {
        let count = keys.len().to_string();
        self.send(&[&["EVAL", script, &count][..], keys, args].concat())
            .await
    }

    async fn send(&self, words: &[&str]) -> Result<Reply, ClientError> {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        let answer = tokio::time::timeout(millis(LEASE), self.client.command(Route::Any, &words));
        answer
            .await
            .unwrap_or_else(|_| Err(ClientError::MaybeExecuted("no answer".to_owned())))
    }
}

/// As Redisson names what is beside a lock.
fn tag(name: &str) -> String {
    if name.contains('{') {
        name.to_owned()
    } else {
        format!("{{{name}}}")
    }
}

fn side(name: &str, prefix: &str) -> String {
    format!("{prefix}:{}", tag(name))
}

/// One use of one lock.
struct One {
    kind: Kind,
    name: String,
    owner: String,
    alone: bool,
    /// Sixteen bytes, of which the last two would number further ones.
    permit: String,
}

impl One {
    fn tag(&self) -> String {
        tag(&self.name)
    }

    fn side(&self, prefix: &str) -> String {
        side(&self.name, prefix)
    }

    fn writer(&self) -> String {
        format!("{}:write", self.owner)
    }

    fn timeouts(&self) -> String {
        format!("{}:{}:rwlock_timeout", self.tag(), self.owner)
    }

    fn held_permits(&self) -> String {
        format!("{}:timeout", self.tag())
    }
}
