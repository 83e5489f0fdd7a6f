//! A worker process, seen from the runner.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::RunError;
use crate::failover::worker::{Answer, Job, STOP};

/// How long a process may take to connect, on a busy machine, to a quorum that does not vote yet.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// How long it may take to release everything.
const DONE_WITHIN: Duration = Duration::from_secs(60);
/// How long it may take to receive everything that a dead process wrote.
const HEARD_WITHIN: Duration = Duration::from_secs(20);

/// A worker process. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    to: ChildStdin,
    said: UnboundedReceiver<Result<Answer, String>>,
    pub(super) job: Job,
    /// Failed attempts, by reason, as far as they were received.
    pub(super) errors: BTreeMap<String, u64>,
    /// Whether the plan killed it, or found it gone and reported that. No more messages follow.
    pub(super) is_over: bool,
}

impl Process {
    /// Starts a process and waits until it works.
    pub(super) async fn start(job: Job) -> Result<Self, RunError> {
        let program = std::env::current_exe().map_err(RunError::io("find this program"))?;
        let mut command = Command::new(program);
        command.arg("failover-worker");
        Self::run(command, job).await
    }

    async fn run(mut command: Command, job: Job) -> Result<Self, RunError> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(RunError::io("start a worker process"))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(RunError::Worker("it has no pipes".to_owned()));
        };
        let (hears, said) = unbounded_channel();
        // The task ends with the stream that it reads.
        tokio::spawn(listen(from, hears));
        let mut process = Self {
            child,
            to,
            said,
            job,
            errors: BTreeMap::new(),
            is_over: false,
        };
        let job = serde_json::to_string(&process.job)
            .map_err(|error| RunError::Worker(error.to_string()))?;
        process.tell(&job).await?;
        match process.hear(READY_WITHIN).await? {
            Answer::Ready => Ok(process),
            Answer::Failed { reason } => Err(RunError::Worker(reason)),
            Answer::Done { .. } | Answer::Erred { .. } => {
                Err(RunError::Worker("it was done at once".to_owned()))
            }
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

    /// Tells it to release everything and exit.
    pub(super) async fn stop(&mut self) -> Result<(), RunError> {
        self.tell(STOP).await
    }

    /// Waits for it to exit after [`stop`](Self::stop); returns how many releases and tasks it
    /// abandoned.
    pub(super) async fn finished(&mut self) -> Result<u64, RunError> {
        let abandoned = match self.hear(DONE_WITHIN).await? {
            Answer::Done { abandoned } => abandoned,
            Answer::Failed { reason } => return Err(RunError::Worker(reason)),
            Answer::Ready | Answer::Erred { .. } => {
                return Err(RunError::Worker("it began again".to_owned()));
            }
        };
        let problem = match timeout(DONE_WITHIN, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => return Ok(abandoned),
            Ok(Ok(status)) => format!("it was done, and then ended with {status}"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it was done, and did not end for {DONE_WITHIN:?}"),
        };
        Err(RunError::Worker(problem))
    }

    /// Kills it, waits until it is gone, and receives everything that it wrote before.
    ///
    /// It is an error if the process was gone already, or had failed and was about to exit: the
    /// plan did not do that.
    pub(super) async fn kill(&mut self) -> Result<(), RunError> {
        self.is_over = true;
        let doing = "kill a worker process";
        let gone = self.child.try_wait().map_err(RunError::io(doing))?;
        if gone.is_none() {
            self.child.start_kill().map_err(RunError::io(doing))?;
        }
        let status = self.child.wait().await.map_err(RunError::io(doing))?;
        let last = match timeout(HEARD_WITHIN, self.next()).await {
            Ok(None) => None,
            Ok(Some(Ok(Answer::Failed { reason }))) => Some(reason),
            Ok(Some(Ok(answer))) => Some(format!("{answer:?}")),
            Ok(Some(Err(problem))) => Some(problem),
            Err(_) => Some("its output has no end".to_owned()),
        };
        if last.is_none() && gone.is_none() && is_killed(status) {
            return Ok(());
        }
        let last = last.unwrap_or_else(|| "nothing".to_owned());
        Err(RunError::Worker(format!(
            "it was gone before it was killed, with {status}; its last words: {last}"
        )))
    }

    /// Stops the process. If it is gone already, that is an error.
    pub(super) fn freeze(&mut self) -> Result<(), RunError> {
        let gone = self.child.try_wait();
        if let Some(status) = gone.map_err(RunError::io("stop a worker process"))? {
            let problem = format!("it was gone before it was stopped, with {status}");
            return Err(RunError::Worker(problem));
        }
        self.signal(Signal::STOP);
        Ok(())
    }

    pub(super) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// A process that is gone needs no signal; the next read reports that it is gone.
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
            // The last message of the process tells more than the broken pipe.
            Err(error) => match self.hear(Duration::from_secs(1)).await {
                Ok(Answer::Failed { reason }) => Err(RunError::Worker(reason)),
                _ => Err(RunError::Worker(error.to_string())),
            },
        }
    }

    async fn hear(&mut self, within: Duration) -> Result<Answer, RunError> {
        let problem = match timeout(within, self.next()).await {
            Ok(Some(Ok(answer))) => return Ok(answer),
            Ok(Some(Err(problem))) => problem,
            Ok(None) => "it ended without a message; see its output above".to_owned(),
            Err(_) => format!("it said nothing for {within:?}"),
        };
        Err(RunError::Worker(problem))
    }

    /// The next message, except failed attempts: these are counted.
    async fn next(&mut self) -> Option<Result<Answer, String>> {
        loop {
            match self.said.recv().await? {
                Ok(Answer::Erred { kind }) => *self.errors.entry(kind).or_default() += 1,
                other => return Some(other),
            }
        }
    }
}

fn is_killed(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::KILL.as_raw())
}

/// Receives every message at once, so that no worker blocks on a full pipe.
async fn listen(from: ChildStdout, hears: UnboundedSender<Result<Answer, String>>) {
    let mut lines = BufReader::new(from).lines();
    loop {
        let answer = match lines.next_line().await {
            Ok(Some(line)) => serde_json::from_str(&line)
                .map_err(|error| format!("it sent an invalid message ({line:?}): {error}")),
            Ok(None) => return,
            Err(error) => {
                let _ = hears.send(Err(error.to_string()));
                return;
            }
        };
        if hears.send(answer).is_err() {
            return;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::failover::plan::{Mode, Subject};

    /// A process that runs this shell code once it has its job.
    pub(in super::super) async fn process(does: &str) -> Process {
        let job = Job {
            subject: Subject::Locktopus,
            urls: Vec::new(),
            mode_name: "plain".to_owned(),
            mode: Mode::default(),
            prefix: "p".to_owned(),
            groups: Vec::new(),
            workers: Vec::new(),
            resource: ([127, 0, 0, 1], 1).into(),
            history: "unused".into(),
            seed: 1,
            patience: Duration::ZERO,
        };
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!(
            "read -r job; say() {{ printf '%s\\n' \"$1\"; }}; say '\"ready\"'; {does}"
        ));
        Process::run(shell, job).await.unwrap()
    }

    /// The shell code for a worker's message that an attempt failed.
    pub(in super::super) const ERRED: &str = r#"say '{"erred":{"kind":"no answer"}}'"#;

    /// Waits until this many messages are in the runner's queue.
    pub(in super::super) async fn heard(process: &Process, much: usize) {
        while process.said.len() < much {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn what_was_said_before_it_was_killed_is_heard() {
        let mut process = process(&format!("{ERRED}; {ERRED}; exec sleep 600")).await;
        heard(&process, 2).await;
        process.kill().await.unwrap();
        assert_eq!(process.errors, [("no answer".to_owned(), 2)].into());
        assert!(process.is_over);
    }

    #[tokio::test]
    async fn one_that_is_gone_cannot_be_killed() {
        let failed = r#"say '{"failed":{"reason":"no memory"}}'"#;
        for (does, words) in [
            (format!("{ERRED}; exit 3"), "nothing"),
            (format!("{ERRED}; {failed}; exit 1"), "no memory"),
            (format!("{ERRED}; kill -9 $$"), "nothing"),
        ] {
            let mut process = process(&does).await;
            process.child.wait().await.unwrap();
            let error = process.freeze().unwrap_err().to_string();
            assert!(error.contains("was gone before"), "{does}: {error}");
            let error = process.kill().await.unwrap_err().to_string();
            assert!(error.contains("was gone before"), "{does}: {error}");
            assert!(error.contains(words), "{does}: {error}");
            assert_eq!(process.errors, [("no answer".to_owned(), 1)].into());
        }
    }

    /// It reported its failure, and exits slowly.
    #[tokio::test]
    async fn one_that_has_failed_was_not_killed() {
        let does = r#"say '{"failed":{"reason":"no memory"}}'; exec sleep 600"#;
        let mut process = process(does).await;
        heard(&process, 1).await;
        let error = process.kill().await.unwrap_err().to_string();
        assert!(error.contains("no memory"), "{error}");
    }

    #[tokio::test]
    async fn the_end_must_be_a_good_one() {
        let done = r#"read -r stop; say '{"done":{"abandoned":4}}'"#;
        let mut good = process(&format!("{ERRED}; {done}")).await;
        good.stop().await.unwrap();
        assert_eq!(good.finished().await.unwrap(), 4);
        assert_eq!(good.errors, [("no answer".to_owned(), 1)].into());
        let mut bad = process(&format!("{done}; exit 3")).await;
        bad.stop().await.unwrap();
        let error = bad.finished().await.unwrap_err().to_string();
        assert!(error.contains("it was done, and then ended"), "{error}");
    }
}
