//! Many held locks and the watchdog that renews them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use locktopus::{
    AcquireAttempt, AttemptOutcome, BackendError, DynBackend, ExtendOutcome, ExtendRequest,
    LockBackend, LockGuard, Locktopus, OwnerId,
};
use tokio::time::Instant;

use super::clock::monotonic_ns;
use super::job::Job;
use super::ours::{kind_of, take};
use super::usage::cpu_ns;
use crate::measure::model::{ClientCost, op};
use crate::measure::record::Recorder;
use crate::shared::error_chain::chain;

/// Held locks, and the probe that watches their renewals.
pub(super) struct HeldLocks {
    guards: Vec<LockGuard>,
    renewals: Arc<Mutex<Renewals>>,
}

/// Confirmations with their times. They are evaluated only after the measured part, so that this
/// costs no CPU time there.
#[derive(Debug, Default)]
struct Renewals {
    grants: Vec<(u64, OwnerId)>,
    batches: Vec<(u64, Vec<OwnerId>)>,
}

pub(super) async fn prepare(job: &Job) -> Result<HeldLocks, String> {
    let backend = locktopus::connect_backend(&job.url)
        .await
        .map_err(|error| chain(&error))?;
    let renewals = Arc::new(Mutex::new(Renewals::default()));
    let probe = Probe {
        inner: backend,
        renewals: Arc::clone(&renewals),
    };
    let lease = Duration::from_millis(job.lease_ms);
    let locks = Locktopus::builder(probe)
        .renewed_lease(lease)
        .build()
        .map_err(|error| error.to_string())?;
    let guards = take(&locks, job, job.locks).await?;
    Ok(HeldLocks { guards, renewals })
}

impl HeldLocks {
    /// Watches for the measured part, and returns the guards and the records.
    pub(super) async fn run(
        self,
        job: &Job,
        start_ns: u64,
    ) -> Result<(Recorder, ClientCost, Vec<LockGuard>), String> {
        let before = cpu_ns();
        tokio::time::sleep(Duration::from_nanos(job.duration_ns)).await;
        let cost = ClientCost {
            cpu_ns: cpu_ns() - before,
            memory: None,
        };
        let renewals = std::mem::take(&mut *lock(&self.renewals));
        let mut recorder = Recorder::new(job.first_worker);
        renewals.record(&mut recorder, start_ns, job.lease_ms * 1_000_000 / 3);
        for guard in &self.guards {
            if let Err(error) = guard.ensure_valid() {
                recorder.error(kind_of(&error));
            }
        }
        Ok((recorder, cost, self.guards))
    }
}

impl Renewals {
    /// Compares each renewal since `start_ns` with its schedule, so that a held-up renewal counts
    /// with all its delay.
    fn record(self, recorder: &mut Recorder, start_ns: u64, period_ns: u64) {
        let lateness = recorder.operation(op::RENEWAL_LATENESS);
        let grants = self.grants.into_iter();
        let mut last: HashMap<OwnerId, u64> = grants.map(|(at, owner)| (owner, at)).collect();
        for (now, owners) in self.batches {
            for owner in owners {
                let Some(before) = last.insert(owner, now) else {
                    continue;
                };
                if now >= start_ns {
                    recorder.granted();
                    let due = (before + period_ns).min(now);
                    recorder.record(lateness, due.saturating_sub(start_ns), now - start_ns);
                }
            }
        }
    }
}

/// A backend that passes everything on, and notes when grants and extensions were confirmed.
#[derive(Debug)]
struct Probe {
    inner: DynBackend,
    renewals: Arc<Mutex<Renewals>>,
}

#[async_trait]
impl locktopus::Layer for Probe {
    fn inner(&self) -> &dyn LockBackend {
        &*self.inner
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let outcome = self.inner.attempt(attempt).await;
        if let Ok(AttemptOutcome::Granted { .. }) = outcome {
            lock(&self.renewals)
                .grants
                .push((monotonic_ns(), attempt.owner.clone()));
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
        let mut extended = Vec::with_capacity(batch.len());
        extended.extend(
            batch
                .iter()
                .zip(&answers)
                .filter(|(_, answer)| matches!(answer, Ok(ExtendOutcome::Extended)))
                .map(|(request, _)| request.owner.clone()),
        );
        lock(&self.renewals).batches.push((now, extended));
        answers
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
