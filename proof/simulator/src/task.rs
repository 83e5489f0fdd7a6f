//! A task of a process: it takes locks through the public API, works under them, and logs what it
//! saw.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{LockError, LockRequest, Locktopus, MutexProfile};
use locktopus_protocol::GuardedWriter;
use tokio::time::{sleep, timeout};

use crate::asking::{asked, looks};
use crate::held::Held;
use crate::log::{Evicted, Failed, Hold, Log, Wanted};
use crate::pace::{Pace, millis};
use crate::plan::{Act, End, Kind, Plan, Strategy, Wait};
use crate::world::MS;

/// How often work checks whether the lock is still held, in ms.
const LOOK: u64 = 7;

/// One task.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) process: usize,
    pub(crate) number: usize,
    pub(crate) plan: Arc<Plan>,
    pub(crate) locks: Locktopus,
    /// Writes under the protection of fences. `None` with a quorum.
    pub(crate) writer: Option<GuardedWriter>,
    pub(crate) log: Log,
    pub(crate) pace: Pace,
}

impl Task {
    pub(crate) async fn run(self) {
        let acts = self.plan.processes[self.process].tasks[self.number].clone();
        for (number, act) in acts.into_iter().enumerate() {
            sleep(millis(act.pause)).await;
            self.doing(format!("act {number}: {act:?}"));
            let begun = self.pace.now();
            if let Err(error) = self.act(&act).await {
                if error.other_kind().is_some() {
                    self.log.count("in use as another kind");
                    continue;
                }
                // An act took permits away, or the server lost their number: the witness checks
                // whether that is true.
                if error.too_few_permits().is_some() {
                    self.log.count("too few permits");
                    continue;
                }
                let now = self.pace.now();
                self.log.count("failed acts");
                let failed = Failed {
                    process: self.process,
                    task: self.number,
                    lock: act.lock,
                    begun,
                    at: now,
                    wait: act.wait,
                    fixed_lease: act.fixed_lease,
                    error: match &error {
                        LockError::Backend { phase, source, .. } => Some((*phase, source.kind())),
                        _ => None,
                    },
                    lost: matches!(error, LockError::Lost { .. }),
                    told: told(&error),
                };
                self.log.with(|notes| notes.failed.push(failed));
            }
        }
        self.log
            .with(|notes| notes.doing.remove(&(self.process, self.number)));
    }

    pub(crate) fn doing(&self, what: String) {
        self.log
            .with(|notes| notes.doing.insert((self.process, self.number), what));
    }

    async fn act(&self, act: &Act) -> Result<(), LockError> {
        let asked = self.pace.now();
        if self.plan.locks[act.lock].kind == Kind::Latch {
            return self.latch(act).await;
        }
        match act.end {
            End::Evict => {
                sleep(millis(act.hold)).await;
                self.evict(act).await;
                return Ok(());
            }
            End::Inspect => return self.inspect(act).await,
            End::Count(count) if self.is_counted(act) => return self.count(act, count).await,
            _ => {}
        }
        let taken = self.take(act).await;
        self.note_group(act, asked);
        let taken = taken?;
        self.note_wait(act, asked);
        let Some(held) = taken else {
            self.log.count("not granted");
            return Ok(());
        };
        self.log.count(kind_name(&self.plan, act));
        let mut used = vec![act.lock];
        used.extend(self.together(act));
        let holds: Vec<_> = used
            .iter()
            .map(|lock| self.note(act, *lock, &held, asked))
            .collect();
        let half = act.hold / 2;
        self.work(half, &held, &holds).await;
        let (held, holds) = self.half_way(act, held, holds).await?;
        self.work(act.hold - half, &held, &holds).await;
        self.is_valid(&held, &holds);
        self.doing(format!("ends {act:?}"));
        if act.end == End::Drop {
            drop(held);
        } else if held.release().await.is_ok() {
            self.log.count("released");
        }
        self.ended(&holds);
        Ok(())
    }

    /// Works under a lock for so many ms, and checks now and then whether it is still held.
    async fn work(&self, time: u64, held: &Held, holds: &[usize]) {
        let mut worked = 0;
        while worked < time && self.is_valid(held, holds) {
            let step = LOOK.min(time - worked);
            let from = self.pace.now();
            sleep(millis(step)).await;
            self.log.worked(from, self.pace.now());
            worked += step;
        }
    }

    pub(crate) fn ended(&self, holds: &[usize]) {
        let now = self.pace.now();
        self.log.with(|notes| {
            for hold in holds {
                notes.holds[*hold].ended = Some(now);
            }
        });
    }

    /// Notes that it waited until now, whether it got the lock or gave up. A group never queues,
    /// and a latch has no holder.
    fn note_wait(&self, act: &Act, from: u64) {
        if self.together(act).is_some() || act.wait == Wait::Try {
            return;
        }
        let wanted = self.wanted(act.lock, from, act.strategy);
        self.log.with(|notes| notes.wanted.push(wanted));
    }

    /// Notes that it waited for a group until now, whether it got the group or not.
    fn note_group(&self, act: &Act, from: u64) {
        if let Some(also) = self.together(act) {
            // Members of a group wait the default way.
            let group = [act.lock, also].map(|lock| self.wanted(lock, from, Strategy::HandOff));
            self.log.with(|notes| notes.groups.push(group));
        }
    }

    fn wanted(&self, lock: usize, from: u64, strategy: Strategy) -> Wanted {
        let looks = looks(millis(self.plan.lease), strategy).as_micros();
        Wanted {
            process: self.process,
            task: self.number,
            lock,
            from,
            until: self.pace.now(),
            looks: u64::try_from(looks).unwrap_or(u64::MAX),
        }
    }

    pub(crate) fn note(&self, act: &Act, lock: usize, held: &Held, asked: u64) -> usize {
        let now = self.pace.now();
        let exclusive = match self.plan.locks[lock].kind {
            Kind::Semaphore(_) | Kind::Permits(_) => false,
            Kind::ReadWrite => act.exclusive,
            _ => true,
        };
        let hold = Hold {
            process: self.process,
            task: self.number,
            lock,
            exclusive,
            permits: permits(&self.plan, act),
            token: held.token(&self.plan.locks[lock].name),
            owner: held.owner(&self.plan.locks[lock].name),
            asked,
            from: now,
            valid: now,
            ended: None,
            fixed_lease: act.fixed_lease.map(|lease| lease * MS),
        };
        self.log.with(|notes| {
            notes.holds.push(hold);
            notes.holds.len() - 1
        })
    }

    /// Checks the guard, as work does before each side effect.
    pub(crate) fn is_valid(&self, held: &Held, holds: &[usize]) -> bool {
        let valid = held.is_valid();
        if valid {
            let now = self.pace.now();
            self.log
                .with(|notes| holds.iter().for_each(|hold| notes.holds[*hold].valid = now));
        } else {
            self.log.count("told that it is lost");
        }
        valid
    }

    /// Forces the release of the lock, as an administrator.
    async fn evict(&self, act: &Act) {
        let lock = &self.plan.locks[act.lock];
        let (name, reason) = (lock.name.as_str(), "it was planned");
        let begun = self.pace.now();
        let eviction = match lock.kind {
            Kind::Fair => self.locks.fair_lock(name).force_release(reason).await,
            Kind::ReadWrite => self.locks.rw_lock(name).force_release(reason).await,
            Kind::Lock | Kind::Mutex | Kind::SingleKey | Kind::RedisPy => {
                self.request(act.lock).force_release(reason).await
            }
            Kind::Semaphore(_) | Kind::Permits(_) | Kind::Latch => return,
        };
        // It may do nothing during a fault, or if the name is in use as another kind.
        if eviction.is_ok_and(|eviction| !eviction.evicted.is_empty()) {
            self.note_eviction(act.lock, begun);
            self.log.count("evict");
        }
    }

    /// Notes that the administrator now knows that a holder has lost the lock.
    pub(crate) fn note_eviction(&self, lock: usize, begun: u64) {
        let done = self.pace.now();
        self.log
            .with(|notes| notes.evicted.push(Evicted { lock, begun, done }));
    }

    /// The other lock of an act, if both can be taken together.
    fn together(&self, act: &Act) -> Option<usize> {
        let alone = |lock: usize| {
            matches!(
                self.plan.locks[lock].kind,
                Kind::Lock | Kind::Mutex | Kind::Fair
            )
        };
        let also = act.also.filter(|also| *also != act.lock)?;
        let names = [act.lock, also].map(|lock| &self.plan.locks[lock].name);
        (alone(act.lock) && alone(also) && names[0] != names[1]).then_some(also)
    }

    async fn take(&self, act: &Act) -> Result<Option<Held>, LockError> {
        if let Some(also) = self.together(act) {
            return self.take_both(act, also).await;
        }
        let lock = &self.plan.locks[act.lock];
        let name = lock.name.as_str();
        let permits = permits(&self.plan, act);
        match lock.kind {
            Kind::ReadWrite if act.exclusive => asked(self.locks.rw_lock(name).write(), act).await,
            Kind::ReadWrite => asked(self.locks.rw_lock(name).read(), act).await,
            Kind::Semaphore(total) => {
                let semaphore = self.locks.semaphore(name);
                semaphore.initialise(total).await?;
                asked(semaphore.permits(permits), act).await
            }
            Kind::Permits(total) => {
                let semaphore = self.locks.permit_semaphore(name);
                semaphore.initialise(total).await?;
                asked(semaphore.permits(permits), act).await
            }
            kind => {
                let request = self.request(act.lock);
                let lasts = matches!(kind, Kind::Lock | Kind::Fair | Kind::Mutex);
                let at_least = act.at_least.filter(|_| lasts && self.plan.quorum.is_none());
                let request = match at_least {
                    Some(time) => {
                        self.log.count("at least for a time");
                        request.hold_at_least(millis(time))
                    }
                    None => request,
                };
                asked(request, act).await
            }
        }
    }

    pub(crate) fn request(&self, lock: usize) -> LockRequest {
        let lock = &self.plan.locks[lock];
        let name = lock.name.as_str();
        match lock.kind {
            Kind::Fair => self.locks.fair_lock(name),
            Kind::Mutex => self.locks.mutex(name),
            Kind::SingleKey => self.locks.mutex_as(name, MutexProfile::single_key()),
            Kind::RedisPy => self.locks.mutex_as(name, MutexProfile::redis_py()),
            _ => self.locks.lock(name),
        }
    }

    async fn latch(&self, act: &Act) -> Result<(), LockError> {
        let latch = self.locks.latch(self.plan.locks[act.lock].name.as_str());
        self.log.count("latch");
        if matches!(act.end, End::Count(_)) {
            latch.delete().await?;
        } else if act.exclusive {
            latch.initialise(1).await?;
            sleep(millis(act.hold)).await;
            latch.count_down().await?;
        } else {
            let most: Duration = millis(act.hold * 10);
            // Perhaps no task counts it down.
            let until = self.pace.now() + act.hold * 10 * MS;
            self.log
                .with(|notes| notes.latch_until = notes.latch_until.max(until));
            if let Ok(waited) = timeout(most, latch.wait()).await {
                waited?;
            }
        }
        Ok(())
    }
}

/// An error with its causes.
fn told(error: &LockError) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told = format!("{told}: {error}");
        cause = error.source();
    }
    told
}

fn permits(plan: &Plan, act: &Act) -> u32 {
    match plan.locks[act.lock].kind {
        Kind::Semaphore(total) | Kind::Permits(total) if act.exclusive => total.min(2),
        _ => 1,
    }
}

fn kind_name(plan: &Plan, act: &Act) -> &'static str {
    match plan.locks[act.lock].kind {
        Kind::Lock => "held: lock",
        Kind::Fair => "held: fair lock",
        Kind::Mutex => "held: mutex",
        Kind::SingleKey => "held: single key",
        Kind::RedisPy => "held: as redis-py",
        Kind::ReadWrite if act.exclusive => "held: write lock",
        Kind::ReadWrite => "held: read lock",
        Kind::Semaphore(_) => "held: semaphore",
        Kind::Permits(_) => "held: permits",
        Kind::Latch => "latch",
    }
}
