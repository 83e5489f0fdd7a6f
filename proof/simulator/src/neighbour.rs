//! Processes of other libraries on the same locks: Redisson's objects and redis-py's `Lock`. They
//! do not renew. Redisson's wait until they are woken, or until the lease they saw would end;
//! redis-py's poll.

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::clock;
use locktopus_protocol::ClientError;
use tokio::time::sleep;

use crate::client::SimClient;
use crate::ears::{Ears, Waiter};
use crate::log::{Hold, Log, Wanted};
use crate::object::{LEASE, Object};
use crate::pace::{Pace, millis};
use crate::plan::{Act, Kind, Plan};

/// How long before the end of the lease it stops believing in it, in ms, for clock errors.
const MARGIN: u64 = 15;
/// The pause after a refusal that names no holder.
const AGAIN: Duration = Duration::from_millis(40);
/// How long it waits before it gives up.
const PATIENCE: Duration = Duration::from_millis(2_400);

/// One task of another library.
pub(crate) struct Neighbour {
    pub(crate) process: usize,
    pub(crate) number: usize,
    pub(crate) plan: Arc<Plan>,
    pub(crate) client: Arc<SimClient>,
    pub(crate) ears: Arc<Ears>,
    pub(crate) log: Log,
    pub(crate) pace: Pace,
}

impl Neighbour {
    pub(crate) async fn run(self) {
        let acts = self.plan.processes[self.process].tasks[self.number].iter();
        for (place, act) in acts.enumerate() {
            sleep(millis(act.pause)).await;
            if self.can(act) {
                self.act(act, place).await;
            }
        }
    }

    /// Whether its library has such an object, and using it cannot take from the others what they
    /// need.
    fn can(&self, act: &Act) -> bool {
        let lock = &self.plan.locks[act.lock];
        let others = self.plan.locks.iter();
        let mixed = others.filter(|other| other.name == lock.name).count() > 1;
        match lock.kind {
            Kind::Lock | Kind::RedisPy => true,
            // Other libraries overwrite values they do not know.
            _ if mixed => false,
            Kind::Fair | Kind::ReadWrite | Kind::Permits(_) => true,
            // The permits of a dead holder never come back.
            Kind::Semaphore(_) => self.plan.faults.is_empty(),
            Kind::Latch => act.exclusive,
            Kind::Mutex | Kind::SingleKey => false,
        }
    }

    async fn act(&self, act: &Act, place: usize) {
        let object = Object {
            client: Arc::clone(&self.client),
            pace: self.pace.clone(),
            kind: self.plan.locks[act.lock].kind,
            name: self.plan.locks[act.lock].name.clone(),
            // A thread id for each act, so a late call of one is not taken for another's.
            owner: format!(
                "3f2a91c4-0b0b-4c70-9705-{:012}:{}{place}",
                self.process, self.number
            ),
            alone: act.exclusive,
            permit: format!("n{:05}{:04}{place:04}00", self.process, self.number),
        };
        if object.kind == Kind::Latch {
            if object.set_latch().await {
                self.log.count("latch of Redisson");
                sleep(millis(act.hold)).await;
                object.count_latch_down().await;
            }
            return;
        }
        let (mut waiter, mut wanted) = (None, self.pace.now());
        let sent = self.wait(&object, &mut waiter, &mut wanted).await;
        self.note_wait(act, wanted);
        if let Some(waiter) = waiter {
            waiter.leave().await;
        }
        if let Some((asked, sent)) = sent {
            self.hold(&object, act, asked, sent + millis(LEASE - MARGIN))
                .await;
        }
    }

    /// Asks until it has the object or its patience ends. Returns when the granted attempt was
    /// sent, in true time and by its clock. `wanted` is since when only a lock kept it waiting.
    async fn wait(
        &self,
        object: &Object,
        waiter: &mut Option<Waiter>,
        wanted: &mut u64,
    ) -> Option<(u64, clock::BootInstant)> {
        let until = clock::now() + PATIENCE;
        loop {
            let (asked, sent) = (self.pace.now(), clock::now());
            let answer = object.take().await;
            let left = until.since(clock::now());
            // The name is in use as another kind, perhaps without a holder.
            if matches!(&answer, Err(ClientError::Rejected { code, .. }) if code == "WRONGTYPE") {
                *wanted = self.pace.now();
            }
            match answer {
                Ok(None) => return Some((asked, sent)),
                // It may hold the lock. It does not believe so, and cannot take it twice.
                Err(ClientError::MaybeExecuted(_)) => {
                    sleep(millis(LEASE * 2)).await;
                    return None;
                }
                _ if left.is_zero() => return None,
                Err(ClientError::NotSent(_) | ClientError::Rejected { .. }) => sleep(AGAIN).await,
                Ok(Some(time)) => match (&*waiter, object.channel()) {
                    (Some(waiter), _) => {
                        if waiter.woken(time.min(left)).await {
                            self.log.count("woken: Redisson");
                        }
                    }
                    // Asks again, since it may have missed messages before it subscribed.
                    (None, Some(channel)) => *waiter = Some(self.ears.join(channel).await),
                    (None, None) => sleep(time.min(left)).await,
                },
            }
        }
    }

    /// Notes that it waited until now, whether it got the lock or gave up.
    fn note_wait(&self, act: &Act, from: u64) {
        let until = self.pace.now();
        self.log.with(|notes| {
            notes.wanted.push(Wanted {
                process: self.process,
                task: self.number,
                lock: act.lock,
                from,
                until,
                looks: 0,
            });
        });
    }

    /// Works under the lock while it believes in it, then gives it back.
    async fn hold(&self, object: &Object, act: &Act, asked: u64, until: clock::BootInstant) {
        let place = self.believe(object.kind, act, asked, until).await;
        // If the release is lost, the lease ends the hold.
        let _ = object.release().await;
        let now = self.pace.now();
        if let Some(place) = place {
            self.log.with(|notes| notes.holds[place].ended = Some(now));
        }
    }

    async fn believe(
        &self,
        kind: Kind,
        act: &Act,
        asked: u64,
        until: clock::BootInstant,
    ) -> Option<usize> {
        if clock::now() >= until {
            return None;
        }
        if self.plan.shards() > 1 {
            self.log.count("held: another library, in a cluster");
        }
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
            fixed_lease: None,
        };
        let place = self.log.with(|notes| {
            notes.holds.push(hold);
            notes.holds.len() - 1
        });
        for _ in 0..act.hold / 7 {
            sleep(millis(7)).await;
            if clock::now() >= until {
                break;
            }
            let now = self.pace.now();
            self.log.with(|notes| notes.holds[place].valid = now);
        }
        Some(place)
    }
}
