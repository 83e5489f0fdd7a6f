//! The worker process's side of the conversation with the runner.

use std::io::BufRead as _;

use locktopus::CancellationToken;
use locktopus_history::Recorder;
use tokio::task::JoinSet;

use super::connect;
use super::job::{Answer, Job};
use super::worker_loop::Worker;
use crate::shared::stall::StallWatch;

/// The runner's message that the work is over.
pub(in super::super) const STOP: &str = "stop";

/// Does one job that comes in on standard input, until told to stop. Returns whether it succeeded.
///
/// The process exits when its standard input ends, so a killed runner leaves no workers behind.
#[must_use]
pub fn serve() -> bool {
    match converse() {
        Ok(answer) => {
            answer.say();
            true
        }
        Err(reason) => {
            Answer::Failed { reason }.say();
            false
        }
    }
}

fn converse() -> Result<Answer, String> {
    let job: Job = hear()?;
    // One thread for each process: more would compete with the servers for the few cores there are.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| format!("cannot start a runtime: {error}"))?;
    runtime.block_on(work(job))
}

async fn work(job: Job) -> Result<Answer, String> {
    let recorder = Recorder::create(&job.history).map_err(|error| error.to_string())?;
    let subject = connect::connect(&job, recorder.clock()).await?;
    let stop = CancellationToken::new();
    let mut workers = JoinSet::new();
    for assignment in &job.workers {
        let subject = std::sync::Arc::clone(&subject);
        let worker = Worker::new(&job, assignment, &recorder, subject, stop.clone()).await?;
        workers.spawn(worker.run());
    }
    let logs: Vec<_> = job
        .workers
        .iter()
        .map(|assignment| recorder.worker(assignment.number))
        .collect();
    let watch = StallWatch::start(recorder.clock(), move |since, _| {
        for log in &logs {
            // If this fails, the history is incomplete; the next record reports that.
            let _ = log.stalled(since, false);
        }
    });
    Answer::Ready.say();
    stop_when_told(stop.clone());
    while let Some(finished) = workers.join_next().await {
        finished.map_err(|error| format!("a worker panicked: {error}"))??;
    }
    let abandoned = subject.close().await;
    // From here on, stalls of the machine excuse nothing.
    let _ = watch.finish();
    recorder.close().map_err(|error| error.to_string())?;
    Ok(Answer::Done { abandoned })
}

fn stop_when_told(stop: CancellationToken) {
    std::thread::spawn(move || {
        let mut line = String::new();
        loop {
            line.clear();
            match std::io::stdin().lock().read_line(&mut line) {
                Ok(1..) if line.trim_end() == STOP => stop.cancel(),
                Ok(1..) => {}
                // The runner is gone.
                Ok(0) | Err(_) => std::process::exit(1),
            }
        }
    });
}

fn hear<T: serde::de::DeserializeOwned>() -> Result<T, String> {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) => Err("the runner went away".to_owned()),
        Ok(_) => serde_json::from_str(&line)
            .map_err(|error| format!("bad message from the runner: {error}")),
        Err(error) => Err(format!("cannot hear the runner: {error}")),
    }
}
