//! A worker process, seen from the runner.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::RunError;
use crate::failover::worker::{Answer, Job, STOP};

/// How long a process may take to connect, on a busy machine, to a quorum whose nodes are young.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// How long it may take to give everything back.
const DONE_WITHIN: Duration = Duration::from_secs(60);

/// A worker process. Ended when dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
    pub(super) job: Job,
}

/// What a process said at its end.
#[derive(Debug, Default)]
pub(super) struct Finished {
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) abandoned: u64,
}

impl Process {
    /// Starts a process and waits until it works.
    pub(super) async fn start(job: Job) -> Result<Self, RunError> {
        let program = std::env::current_exe().map_err(RunError::io("find this program"))?;
        let mut child = Command::new(program)
            .arg("failover-worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(RunError::io("start a worker process"))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(RunError::Worker("it has no pipes".to_owned()));
        };
        let mut process = Self {
            child,
            to,
            from: BufReader::new(from).lines(),
            job,
        };
        let job = serde_json::to_string(&process.job)
            .map_err(|error| RunError::Worker(error.to_string()))?;
        process.tell(&job).await?;
        match process.hear(READY_WITHIN).await? {
            Answer::Ready => Ok(process),
            Answer::Failed { reason } => Err(RunError::Worker(reason)),
            Answer::Done { .. } => Err(RunError::Worker("it was done at once".to_owned())),
        }
    }

    /// Numbers of its workers.
    pub(super) fn numbers(&self) -> BTreeSet<u32> {
        self.job
            .workers
            .iter()
            .map(|worker| worker.number)
            .collect()
    }

    /// Tells it to give everything back and end.
    pub(super) async fn stop(&mut self) -> Result<(), RunError> {
        self.tell(STOP).await
    }

    /// Waits for its end after [`stop`](Self::stop).
    pub(super) async fn finished(mut self) -> Result<Finished, RunError> {
        match self.hear(DONE_WITHIN).await? {
            Answer::Done { errors, abandoned } => {
                drop(self.to);
                let _ = timeout(DONE_WITHIN, self.child.wait()).await;
                Ok(Finished { errors, abandoned })
            }
            Answer::Failed { reason } => Err(RunError::Worker(reason)),
            Answer::Ready => Err(RunError::Worker("it began again".to_owned())),
        }
    }

    /// Ends it at once and waits until it is gone.
    pub(super) async fn kill(&mut self) -> Result<(), RunError> {
        self.child
            .kill()
            .await
            .map_err(RunError::io("kill a worker process"))
    }

    pub(super) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(super) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// One that is gone already needs no signal; that it is gone is told when it is heard next.
    fn signal(&self, signal: Signal) {
        let pid = self
            .child
            .id()
            .and_then(|pid| Pid::from_raw(pid.cast_signed()));
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
    }

    async fn tell(&mut self, line: &str) -> Result<(), RunError> {
        let sent = async {
            self.to.write_all(line.as_bytes()).await?;
            self.to.write_all(b"\n").await?;
            self.to.flush().await
        };
        match sent.await {
            Ok(()) => Ok(()),
            // What it said before it went away tells more than the broken pipe.
            Err(error) => match self.hear(Duration::from_secs(1)).await {
                Ok(Answer::Failed { reason }) => Err(RunError::Worker(reason)),
                _ => Err(RunError::Worker(error.to_string())),
            },
        }
    }

    async fn hear(&mut self, within: Duration) -> Result<Answer, RunError> {
        let problem = match timeout(within, self.from.next_line()).await {
            Ok(Ok(Some(line))) => match serde_json::from_str(&line) {
                Ok(answer) => return Ok(answer),
                Err(error) => format!("it said nonsense: {error}"),
            },
            Ok(Ok(None)) => "it ended without a word; see its message above".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it said nothing for {within:?}"),
        };
        Err(RunError::Worker(problem))
    }
}
