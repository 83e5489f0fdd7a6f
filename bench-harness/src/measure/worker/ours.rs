//! This library as a subject.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use locktopus::{CohortSettings, LockError, LockGuard, Locktopus, MutexProfile, WriteGuard};

use super::job::Job;
use crate::measure::plan::{Kind, Scenario};
use crate::shared::error_chain::chain;
use crate::shared::locking::{Held, Subject};

/// Requests of this process that are in flight at a time while it prepares and tidies up.
pub(super) const IN_FLIGHT: usize = 64;
/// The longest lease that a quorum here accepts: freshly started nodes do not vote for this long.
const QUORUM_LEASE: Duration = Duration::from_secs(5);
/// How long releasing may take; locks that are left then expire.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);
/// How long freshly started servers may take until they grant: nodes of a quorum and those in
/// quarantine.
const READY: Duration = Duration::from_secs(40);

/// Connects, and creates what locks of this kind need.
pub(super) async fn connect(job: &Job) -> Result<Arc<dyn Subject>, String> {
    if !job.strategy.can(job.client, job.kind) {
        let kind = job.kind.name();
        return Err(format!("Locktopus is not measured as a {kind}"));
    }
    let locks = open(job).await?;
    let ours = Ours { locks };
    if job.reluctant {
        ours.await_grants(job).await?;
    }
    ours.make_permits(job).await?;
    Ok(Arc::new(ours))
}

async fn open(job: &Job) -> Result<Locktopus, String> {
    if job.more_urls.is_empty() {
        return locktopus::connect_with(&job.url, |builder| {
            let builder = builder.lease_cache(Duration::from_nanos(job.lease_cache_ns));
            match job.turns {
                Some(turns) => builder.cohort(CohortSettings {
                    turns,
                    ..CohortSettings::default()
                }),
                None => builder,
            }
        })
        .await
        .map_err(|error| chain(&error));
    }
    let urls: Vec<&String> = std::iter::once(&job.url).chain(&job.more_urls).collect();
    let quorum = locktopus::quorum_of(urls, |builder| builder.max_lease(QUORUM_LEASE))
        .map_err(|error| chain(&error))?;
    Locktopus::builder(quorum)
        .renewed_lease(QUORUM_LEASE)
        .build()
        .map_err(|error| chain(&error))
}

struct Ours {
    locks: Locktopus,
}

impl Ours {
    /// Takes and releases a lock once, so that nodes are connected and vote before anything counts.
    async fn await_grants(&self, job: &Job) -> Result<(), String> {
        let first = self.locks.mutex(lock_name(&job.prefix, first_lock(job)));
        first
            .wait_at_most(READY)
            .acquire()
            .await
            .map_err(|error| format!("the servers grant nothing: {}", chain(&error)))?
            .release()
            .await
            .map_err(|error| chain(&error))
    }

    /// A semaphore with one permit is a lock.
    async fn make_permits(&self, job: &Job) -> Result<(), String> {
        for number in first_lock(job)..first_lock(job) + lock_count(job) {
            let name = lock_name(&job.prefix, number);
            let semaphore = match job.kind {
                Kind::Semaphore => self.locks.semaphore(name),
                Kind::Permits => self.locks.permit_semaphore(name),
                _ => return Ok(()),
            };
            // If another process of the round was faster, this changes nothing.
            semaphore
                .initialise(1)
                .await
                .map_err(|error| chain(&error))?;
        }
        Ok(())
    }
}

/// The name of a lock of a round.
pub(super) fn lock_name(prefix: &str, number: u32) -> String {
    format!("{prefix}-{number}")
}

fn first_lock(job: &Job) -> u32 {
    if job.scenario == Scenario::ManyLocks {
        job.first_worker
    } else {
        0
    }
}

fn lock_count(job: &Job) -> u32 {
    if job.scenario == Scenario::ManyLocks {
        job.workers
    } else {
        1
    }
}

#[async_trait]
impl Subject for Ours {
    async fn acquire(&self, kind: Kind, lock: &str) -> Result<Box<dyn Held>, &'static str> {
        let request = match kind {
            Kind::Lock => self.locks.lock(lock),
            Kind::Mutex => self.locks.mutex(lock),
            Kind::PlainMutex => self.locks.mutex_as(lock, MutexProfile::single_key()),
            Kind::FairLock => self.locks.fair_lock(lock),
            Kind::ReadLock => self.locks.rw_lock(lock).read(),
            Kind::Semaphore => self.locks.semaphore(lock).permits(1),
            Kind::Permits => self.locks.permit_semaphore(lock).permits(1),
            Kind::WriteLock => {
                let taken = self.locks.rw_lock(lock).write().acquire().await;
                return boxed(taken);
            }
            Kind::SpinLock | Kind::RwLock => return Err("no such kind"),
        };
        boxed(request.acquire().await)
    }

    async fn close(&self) {
        let _ = self.locks.shutdown(CLOSE_WITHIN).await;
    }
}

fn boxed<G: Held + 'static>(taken: Result<G, LockError>) -> Result<Box<dyn Held>, &'static str> {
    match taken {
        Ok(guard) => Ok(Box::new(guard)),
        Err(error) => Err(kind_of(&error)),
    }
}

#[async_trait]
impl Held for LockGuard {
    fn token(&self) -> Option<u64> {
        locktopus::Lease::token(self).map(locktopus::FencingToken::get)
    }

    async fn release(self: Box<Self>) -> Result<(), &'static str> {
        Self::release(*self).await.map_err(|error| kind_of(&error))
    }
}

#[async_trait]
impl Held for WriteGuard {
    async fn release(self: Box<Self>) -> Result<(), &'static str> {
        Self::release(*self).await.map_err(|error| kind_of(&error))
    }
}

/// Takes `count` locks of the job's kind, named by their number.
pub(super) async fn take(
    locks: &Locktopus,
    job: &Job,
    count: u32,
) -> Result<Vec<LockGuard>, String> {
    let mut guards = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    let mut taking = FuturesUnordered::new();
    for number in 0..count {
        if taking.len() == IN_FLIGHT {
            guards.extend(taking.next().await);
        }
        let name = lock_name(&job.prefix, number);
        let request = if job.kind == Kind::Mutex {
            locks.mutex(name)
        } else {
            locks.lock(name)
        };
        taking.push(request.acquire());
    }
    while let Some(taken) = taking.next().await {
        guards.push(taken);
    }
    guards
        .into_iter()
        .collect::<Result<_, _>>()
        .map_err(|error| chain(&error))
}

/// Releases everything. Locks whose release fails expire with their lease.
pub(super) async fn release_all(guards: Vec<LockGuard>) {
    let mut releasing = FuturesUnordered::new();
    for guard in guards {
        if releasing.len() == IN_FLIGHT {
            releasing.next().await;
        }
        releasing.push(guard.release());
    }
    while releasing.next().await.is_some() {}
}

/// The name of an error in the counts.
pub(super) fn kind_of(error: &LockError) -> &'static str {
    match error {
        LockError::Lost { .. } => "lost",
        LockError::WaitTimeout { .. } => "wait timeout",
        LockError::Backend { .. } => "backend",
        LockError::Cancelled { .. } => "cancelled",
        LockError::ShutDown => "shut down",
        _ => "other",
    }
}
