//! The child's side of the conversation.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use super::conversation::{hear, ready, say};
use super::job::{Answer, Job};
use super::ours::release_all;
use super::usage::cpu_ns;
use super::{connect, memory, ping, renewal, workload};
use crate::measure::model::{ClientCost, StoredHistogram};
use crate::measure::plan::{Client, Scenario};
use crate::measure::record::Recorder;

/// Does one job that comes in on standard input. Returns whether it succeeded.
///
/// The process exits when its standard input ends, so a killed harness leaves no workers behind.
#[must_use]
pub fn serve() -> bool {
    match converse() {
        Ok(()) => true,
        Err(reason) => {
            say(&Answer::Failed { reason });
            false
        }
    }
}

fn converse() -> Result<(), String> {
    let job: Job = hear()?;
    if let Some(core) = job.core {
        pin(core)?;
    }
    runtime(job.threads)
        .map_err(|error| format!("cannot start a runtime: {error}"))?
        .block_on(work(job))
}

/// One thread unless the job asks for more: threads would compete with the server for the few cores
/// there are.
fn runtime(threads: u32) -> std::io::Result<Runtime> {
    if threads <= 1 {
        return Builder::new_current_thread().enable_all().build();
    }
    Builder::new_multi_thread()
        .worker_threads(usize::try_from(threads).unwrap_or(1))
        .enable_all()
        .build()
}

async fn work(job: Job) -> Result<(), String> {
    let ping = if job.client == Client::Memory {
        None
    } else {
        ping::measure(&job).await?
    };
    let ping = ping
        .as_ref()
        .map(StoredHistogram::from_histogram)
        .transpose()
        .map_err(|error| error.to_string())?;
    match job.scenario {
        Scenario::Renewal => {
            let held = renewal::prepare(&job).await?;
            let rest = ready().await?;
            let (recorder, cost, guards) = held.run(&job, rest.start_ns).await?;
            rest.done(&answer(&recorder, ping, cost)?);
            rest.closed().await;
            release_all(guards).await;
        }
        Scenario::HeldMemory | Scenario::WaitingMemory => {
            let occupied = memory::prepare(&job).await?;
            let rest = ready().await?;
            let (recorder, cost, guards) = occupied.run(&job).await?;
            rest.done(&answer(&recorder, ping, cost)?);
            rest.closed().await;
            release_all(guards).await;
        }
        Scenario::Uncontended
        | Scenario::ManyLocks
        | Scenario::HotLock
        | Scenario::RemoteWaiter
        | Scenario::ReadersWriters => {
            let subject = connect::connect(&job).await?;
            let rest = ready().await?;
            let before = cpu_ns();
            let recorder = workload::run(&job, Arc::clone(&subject), rest.start_ns).await?;
            let cost = ClientCost {
                cpu_ns: cpu_ns() - before,
                memory: None,
            };
            // Other processes may wait for the leases that this process keeps.
            subject.close().await;
            rest.done(&answer(&recorder, ping, cost)?);
        }
    }
    Ok(())
}

fn answer(
    recorder: &Recorder,
    ping: Option<StoredHistogram>,
    cost: ClientCost,
) -> Result<Answer, String> {
    let wire = recorder.to_wire().map_err(|error| error.to_string())?;
    Ok(Answer::Done {
        recorder: Box::new(wire),
        ping,
        cost: Some(cost),
    })
}

/// Keeps this process on one core.
pub(crate) fn pin(core: u32) -> Result<(), String> {
    use rustix::thread::{CpuSet, sched_setaffinity};

    let mut set = CpuSet::new();
    set.set(usize::try_from(core).unwrap_or(0));
    sched_setaffinity(None, &set)
        .map_err(|error| format!("cannot run on core {core} only: {error}"))
}
