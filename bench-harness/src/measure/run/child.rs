//! Worker processes, seen from the harness.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::measure::plan::Strategy;
use crate::measure::worker::{Answer, Job, Start};

/// A worker process. Dropping it kills the process.
pub(super) struct Worker {
    process: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts a process and gives it its job. `redisson` is the command of a Redisson worker.
    pub(super) async fn spawn(job: &Job, redisson: Option<&[OsString]>) -> Result<Self, String> {
        let mut process = program(job, redisson)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start a worker: {error}"))?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("a worker has no pipes".to_owned());
        };
        let mut worker = Self {
            process,
            to,
            from: BufReader::new(from).lines(),
        };
        worker.tell(job).await?;
        Ok(worker)
    }

    /// Waits until the worker is connected.
    pub(super) async fn ready(&mut self, within: Duration) -> Result<(), String> {
        match self.hear(within).await? {
            Answer::Ready => Ok(()),
            Answer::Failed { reason } => Err(reason),
            Answer::Done { .. } => Err("a worker was done before it began".to_owned()),
        }
    }

    /// Gives the starting signal.
    pub(super) async fn start(&mut self, start: Start) -> Result<(), String> {
        self.tell(&start).await
    }

    /// Waits for the worker's records. Locks that its workload does not release stay held.
    pub(super) async fn done(&mut self, within: Duration) -> Result<Answer, String> {
        let answer = self.hear(within).await?;
        match answer {
            Answer::Failed { reason } => Err(reason),
            answer => Ok(answer),
        }
    }

    /// Lets the worker release what it holds, and exit. Kills it if that takes too long.
    pub(super) async fn end(self, within: Duration) {
        let Self {
            mut process, to, ..
        } = self;
        drop(to);
        let _ = timeout(within, process.wait()).await;
    }

    async fn tell(&mut self, message: &(impl serde::Serialize + Sync)) -> Result<(), String> {
        let mut line = serde_json::to_string(message).map_err(|error| error.to_string())?;
        line.push('\n');
        let sent = async {
            self.to.write_all(line.as_bytes()).await?;
            self.to.flush().await
        };
        sent.await
            .map_err(|error| format!("cannot talk to a worker: {error}"))
    }

    async fn hear(&mut self, within: Duration) -> Result<Answer, String> {
        match timeout(within, self.from.next_line()).await {
            Ok(Ok(Some(line))) => serde_json::from_str(&line)
                .map_err(|error| format!("a worker sent an invalid message: {error}")),
            Ok(Ok(None)) => {
                Err("a worker ended without a message; see its output above".to_owned())
            }
            Ok(Err(error)) => Err(format!("cannot hear a worker: {error}")),
            Err(_) => Err(format!("a worker said nothing for {within:?}")),
        }
    }
}

fn program(job: &Job, redisson: Option<&[OsString]>) -> Result<Command, String> {
    if job.strategy != Strategy::Redisson {
        let program = std::env::current_exe()
            .map_err(|error| format!("cannot find this program: {error}"))?;
        let mut command = Command::new(program);
        command.arg("worker");
        return Ok(command);
    }
    let Some([java, arguments @ ..]) = redisson else {
        return Err("there is no worker of Redisson".to_owned());
    };
    let mut command = match job.core {
        None => Command::new(java),
        Some(core) => {
            // A JVM has started threads before it could pin itself.
            let mut command = Command::new("taskset");
            command.args(["--cpu-list", &core.to_string()]).arg(java);
            command
        }
    };
    command.args(arguments);
    Ok(command)
}
