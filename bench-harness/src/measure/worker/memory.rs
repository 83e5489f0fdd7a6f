//! Measures what held locks and waiters occupy in the memory of a process.

use std::time::Duration;

use locktopus::{LockGuard, Locktopus};
use tokio::task::JoinSet;

use super::job::Job;
use super::ours::{lock_name, take};
use super::usage::{cpu_ns, resident_bytes};
use crate::measure::model::{ClientCost, Occupied};
use crate::measure::plan::{Kind, Scenario};
use crate::measure::record::Recorder;
use crate::shared::error_chain::chain;

/// Locks to take and release before anything counts, so that buffers, tables and the allocator have
/// grown once.
const WARM_UP: u32 = 256;

/// A connected process, before its memory is measured.
pub(super) struct Occupant {
    locks: Locktopus,
    /// The locks that the waiters wait for, held through another connection.
    held_by_others: Vec<LockGuard>,
}

pub(super) async fn prepare(job: &Job) -> Result<Occupant, String> {
    let locks = connect(job).await?;
    let warm_up = Job {
        prefix: format!("{}-warm-up", job.prefix),
        ..job.clone()
    };
    let taken = take(&locks, &warm_up, WARM_UP).await?;
    super::ours::release_all(taken).await;
    let held_by_others = if job.scenario == Scenario::WaitingMemory {
        take(&connect(job).await?, job, job.locks).await?
    } else {
        Vec::new()
    };
    Ok(Occupant {
        locks,
        held_by_others,
    })
}

async fn connect(job: &Job) -> Result<Locktopus, String> {
    let lease = Duration::from_millis(job.lease_ms);
    locktopus::connect_with(&job.url, |builder| builder.renewed_lease(lease))
        .await
        .map_err(|error| chain(&error))
}

impl Occupant {
    /// Takes the locks or starts the waiters, and measures how much the process grows. Returns the
    /// guards to release.
    pub(super) async fn run(
        self,
        job: &Job,
    ) -> Result<(Recorder, ClientCost, Vec<LockGuard>), String> {
        let recorder = Recorder::new(job.first_worker);
        let resident = || resident_bytes().ok_or("the kernel does not report the resident set");
        let (cpu, before) = (cpu_ns(), resident()?);
        let (came, guards, waiters) = if job.scenario == Scenario::HeldMemory {
            let guards = take(&self.locks, job, job.locks).await?;
            (job.locks, guards, JoinSet::new())
        } else {
            (
                job.workers,
                self.held_by_others,
                wait(&self.locks, job).await,
            )
        };
        let bytes = resident()?.saturating_sub(before);
        let memory = Some(Occupied {
            bytes,
            by: u64::from(came),
        });
        let cost = ClientCost {
            cpu_ns: cpu_ns() - cpu,
            memory,
        };
        // Dropped before the locks they wait for are released, or all of them would acquire one.
        drop(waiters);
        Ok((recorder, cost, guards))
    }
}

/// Starts as many waiting tasks as the job has workers, and gives them the measured time to settle.
async fn wait(locks: &Locktopus, job: &Job) -> JoinSet<()> {
    let mut waiters = JoinSet::new();
    for number in 0..job.workers {
        let name = lock_name(&job.prefix, number % job.locks.max(1));
        let request = if job.kind == Kind::Mutex {
            locks.mutex(name)
        } else {
            locks.lock(name)
        };
        waiters.spawn(async move { drop(request.acquire().await) });
    }
    tokio::time::sleep(Duration::from_nanos(job.duration_ns)).await;
    waiters
}
