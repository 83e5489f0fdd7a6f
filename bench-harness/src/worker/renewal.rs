//! Many held locks and the watchdog that renews them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use locktopus::{
    AcquireAttempt, AttemptOutcome, BackendError, DynBackend, ExtendOutcome, ExtendRequest,
    LockBackend, LockGuard, Locktopus, OwnerId, forward_backend,
};
use tokio::time::Instant;

use super::clock::{monotonic_ns, since};
use super::job::Job;
use super::subject::{chain, kind_of};
use crate::model::op;
use crate::plan::Kind;
use crate::record::Recorder;

/// Locks that are held, and the probe that watches their renewals.
pub(super) struct HeldLocks {
    guards: Vec<LockGuard>,
    renewals: Arc<Renewals>,
}

/// When each lock was last confirmed, and the renewals seen since the start.
#[derive(Debug, Default)]
struct Renewals {
    last: Mutex<HashMap<OwnerId, u64>>,
    seen: Mutex<Vec<(u64, u64)>>,
}

pub(super) async fn prepare(job: &Job) -> Result<HeldLocks, String> {
    let backend = locktopus::connect_backend(&job.url)
        .await
        .map_err(|error| chain(&error))?;
    let renewals = Arc::new(Renewals::default());
    let probe = Probe {
        inner: backend,
        renewals: Arc::clone(&renewals),
    };
    let lease = Duration::from_millis(job.lease_ms);
    let locks = Locktopus::builder(probe)
        .watchdog_lease(lease)
        .build()
        .map_err(|error| error.to_string())?;
    let mut guards = Vec::new();
    for batch in (0..job.locks).collect::<Vec<_>>().chunks(64) {
        let mut taking: FuturesUnordered<_> = batch
            .iter()
            .map(|number| {
                let name = format!("{}-{number}", job.prefix);
                let request = if job.kind == Kind::Lock {
                    locks.lock(name)
                } else {
                    locks.mutex(name)
                };
                request.acquire()
            })
            .collect();
        while let Some(guard) = taking.next().await {
            guards.push(guard.map_err(|error| chain(&error))?);
        }
    }
    Ok(HeldLocks { guards, renewals })
}

impl HeldLocks {
    pub(super) async fn run(self, job: &Job, start_ns: u64) -> Result<Recorder, String> {
        tokio::time::sleep(Duration::from_nanos(job.duration_ns)).await;
        let mut recorder = Recorder::new(
            job.first_worker,
            op::RENEWAL_LATENESS,
            Duration::from_nanos(job.interval_ns),
        );
        let lateness = recorder.operation(op::RENEWAL_LATENESS);
        let period = job.lease_ms * 1_000_000 / 3;
        let seen = std::mem::take(&mut *lock(&self.renewals.seen));
        for (before, now) in seen.into_iter().filter(|(_, now)| *now >= start_ns) {
            recorder.granted();
            // Measured against the schedule, so a renewal that was held up counts with all its delay.
            let due = (before + period).min(now);
            recorder.record(lateness, due.saturating_sub(start_ns), now - start_ns);
        }
        let now = since(start_ns);
        debug_assert!(now >= job.duration_ns);
        let mut releasing: FuturesUnordered<_> =
            self.guards.into_iter().map(LockGuard::release).collect();
        while let Some(released) = releasing.next().await {
            if let Err(error) = released {
                recorder.error(kind_of(&error));
            }
        }
        Ok(recorder)
    }
}

/// Passes everything on and notes when extensions were confirmed.
#[derive(Debug)]
struct Probe {
    inner: DynBackend,
    renewals: Arc<Renewals>,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl LockBackend for Probe {
    forward_backend!(inner: info check shard group attempt_all release inspect counter evict scan listen subscribe diagnose close);

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let outcome = self.inner.attempt(attempt).await;
        if let Ok(AttemptOutcome::Granted { .. }) = outcome {
            lock(&self.renewals.last).insert(attempt.owner.clone(), monotonic_ns());
        }
        outcome
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let answers = self.inner.extend(batch, deadline).await;
        let now = monotonic_ns();
        let mut last = lock(&self.renewals.last);
        let mut seen = lock(&self.renewals.seen);
        for (request, answer) in batch.iter().zip(&answers) {
            if let (Ok(ExtendOutcome::Extended), Some(before)) =
                (answer, last.get_mut(&request.owner))
            {
                seen.push((std::mem::replace(before, now), now));
            }
        }
        answers
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
