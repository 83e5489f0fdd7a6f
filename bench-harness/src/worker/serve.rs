//! The child's side of the conversation.

use std::io::{BufRead as _, Write as _};

use super::job::{Answer, Job, Start};
use super::{closed, ping, renewal, subject};
use crate::model::StoredHistogram;
use crate::plan::{Client, Scenario};

/// Does one job that comes in on standard input. Returns whether it was done.
///
/// The process ends when its standard input does: a harness that was killed leaves no workers behind.
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
    // One thread for each process: more would compete with the server for the few cores there are.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| format!("cannot start a runtime: {error}"))?;
    runtime.block_on(work(job))
}

async fn work(job: Job) -> Result<(), String> {
    let ping = if job.client == Client::Memory {
        None
    } else {
        ping::measure(&job).await?
    };
    let recorder = if job.scenario == Scenario::Renewal {
        let held = renewal::prepare(&job).await?;
        let start = ready().await?;
        held.run(&job, start).await?
    } else {
        let subject = subject::connect(&job).await?;
        let start = ready().await?;
        closed::run(&job, subject, start).await?
    };
    let wire = recorder.to_wire().map_err(|error| error.to_string())?;
    let ping = ping
        .as_ref()
        .map(StoredHistogram::from_histogram)
        .transpose()
        .map_err(|error| error.to_string())?;
    say(&Answer::Done {
        recorder: Box::new(wire),
        ping,
    });
    Ok(())
}

/// Says that everything is ready and waits for the start, then until it has come.
async fn ready() -> Result<u64, String> {
    say(&Answer::Ready);
    let start = tokio::task::spawn_blocking(hear::<Start>)
        .await
        .map_err(|error| error.to_string())??;
    // From now on the parent says nothing more; if it goes away, so does this process.
    std::thread::spawn(|| {
        let mut rest = String::new();
        while std::io::stdin()
            .lock()
            .read_line(&mut rest)
            .is_ok_and(|read| read > 0)
        {
            rest.clear();
        }
        std::process::exit(1);
    });
    let now = super::clock::monotonic_ns();
    tokio::time::sleep(std::time::Duration::from_nanos(
        start.at_ns.saturating_sub(now),
    ))
    .await;
    Ok(start.at_ns)
}

fn hear<T: serde::de::DeserializeOwned>() -> Result<T, String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    match read {
        Ok(0) => Err("the harness went away".to_owned()),
        Ok(_) => serde_json::from_str(&line)
            .map_err(|error| format!("bad message from the harness: {error}")),
        Err(error) => Err(format!("cannot hear the harness: {error}")),
    }
}

fn say(answer: &Answer) {
    // Nobody left to tell if this fails.
    if let Ok(line) = serde_json::to_string(answer) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// Keeps this process on one core.
pub(crate) fn pin(core: u32) -> Result<(), String> {
    use rustix::thread::{CpuSet, sched_setaffinity};

    let mut set = CpuSet::new();
    set.set(usize::try_from(core).unwrap_or(0));
    sched_setaffinity(None, &set)
        .map_err(|error| format!("cannot run on core {core} only: {error}"))
}
