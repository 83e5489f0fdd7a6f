//! Processes of other libraries on the same locks: objects of Redisson's and redis-py's `Lock`.
//! They do not renew what they hold. Redisson's wait until they are woken, or until the lease that
//! they saw would end; redis-py's ask again and again.

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

/// What it stops believing before the lease ends, for clocks that go wrong.
const MARGIN: u64 = 15;
/// After what time it asks again if it was refused otherwise than for a holder.
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

    /// Whether its library has such an object, and whatever happens to it leaves the others what
    /// they need.
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
        let object = Object {
            client: Arc::clone(&self.client),
            pace: self.pace.clone(),
            kind: self.plan.locks[act.lock].kind,
            name: self.plan.locks[act.lock].name.clone(),
            // A thread for each: what one of them sent late is not taken for another one's.
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

    /// Asks until it has it, or has waited for long enough. When the attempt was sent that was
    /// granted, truly and by its clock. `wanted`: since when there was only a lock to be waited
    /// for.
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
            // The name is in use as something that nobody need hold.
            if matches!(&answer, Err(ClientError::Rejected { code, .. }) if code == "WRONGTYPE") {
                *wanted = self.pace.now();
            }
            match answer {
                Ok(None) => return Some((asked, sent)),
                // Perhaps it holds the lock; it does not believe so, and is not let in twice.
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
                    // It asks once more: what came before it listened was missed.
                    (None, Some(channel)) => *waiter = Some(self.ears.join(channel).await),
                    (None, None) => sleep(time.min(left)).await,
                },
            }
        }
    }

    /// It had to wait until now, or gave up.
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

    /// Works under it while it believes in it, and gives it back.
    async fn hold(&self, object: &Object, act: &Act, asked: u64, until: clock::BootInstant) {
        let place = self.believe(object.kind, act, asked, until).await;
        // What does not arrive ends with its lease.
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
