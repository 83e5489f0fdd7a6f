//! The parent of one server process.
//!
//! Servers must end with the harness even if it is killed with SIGKILL. Asking the kernel for that
//! needs code between fork and exec, which is unsafe. A small shell script that waits for the end
//! of its input gives the same guarantee on every Unix. See `supervise.sh`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::topology::error::TopologyError;

const SCRIPT: &str = include_str!("supervise.sh");

/// Long enough for a busy machine to start a shell.
const START_WITHIN: Duration = Duration::from_secs(20);

/// The state of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Starting,
    Running(Pid),
    /// Exit code; 128 + signal for a signal.
    Exited(i32),
    /// The supervisor itself is gone.
    Lost,
}

/// A running supervisor. Dropping it ends the server and removes the run directory.
#[derive(Debug)]
pub(crate) struct Supervisor {
    child: Child,
    input: Option<ChildStdin>,
    life: watch::Receiver<Life>,
    /// Still starting: giving up must not remove the run directory, because on a restart other
    /// servers use it.
    starting: bool,
}

impl Supervisor {
    /// Starts `program` and waits until its process id is known.
    pub(crate) async fn spawn(
        run: &Path,
        dir: &Path,
        program: &Path,
        args: &[String],
    ) -> Result<Self, TopologyError> {
        let mut child = Command::new("sh")
            .args(["-c", SCRIPT, "locktopus-supervisor"])
            .args([run, dir, program])
            .args(args)
            // Keeps Ctrl-C in a terminal away from it: the harness must handle that.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(TopologyError::io("start a shell for", program))?;
        let (tell, life) = watch::channel(Life::Starting);
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || report(output, &tell));
        }
        let input = child.stdin.take();
        let mut this = Self {
            child,
            input,
            life,
            starting: true,
        };
        let started = this.life.wait_for(|life| *life != Life::Starting);
        let life = timeout(START_WITHIN, started)
            .await
            .map(|seen| seen.map_or(Life::Lost, |life| *life));
        match life {
            Ok(Life::Running(_) | Life::Exited(_)) => {
                this.starting = false;
                Ok(this)
            }
            Ok(Life::Starting | Life::Lost) | Err(_) => {
                Err(TopologyError::io("get a process id for", program)(
                    std::io::ErrorKind::TimedOut.into(),
                ))
            }
        }
    }

    pub(crate) fn life(&self) -> Life {
        *self.life.borrow()
    }

    /// Sends `signal` to the server; `false` if it is not running.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        match self.life() {
            Life::Running(pid) => kill_process(pid, signal).is_ok(),
            Life::Starting | Life::Exited(_) | Life::Lost => false,
        }
    }

    /// Waits until the server has ended; `false` if it has not within the limit.
    pub(crate) async fn ended(&self, within: Duration) -> bool {
        let mut life = self.life.clone();
        let ended = life.wait_for(|life| matches!(life, Life::Exited(_) | Life::Lost));
        timeout(within, ended).await.is_ok()
    }

    /// Leaves the run directory to a successor. Call it only after the server has ended.
    pub(crate) fn hand_over(mut self) {
        self.say_keep();
    }

    /// Tells the script to keep the run directory, and ends its input.
    fn say_keep(&mut self) {
        if let Some(mut input) = self.input.take() {
            // Twice: while the server runs, the first one ends it. A failure means that the script
            // is gone already, and then it removes nothing.
            let _ = input.write_all(b"keep\nkeep\n");
        }
    }

    /// Starts the teardown without waiting for it; dropping waits.
    pub(crate) fn begin_end(&mut self) {
        self.input = None;
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if self.starting {
            self.say_keep();
        }
        self.begin_end();
        // A few milliseconds: the script ends the server with SIGKILL and removes a directory.
        let _ = self.child.wait();
    }
}

/// Follows the script's output until it ends.
fn report(output: ChildStdout, tell: &watch::Sender<Life>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let life = match line.split_once(' ') {
            Some(("pid", number)) => number
                .parse()
                .ok()
                .and_then(Pid::from_raw)
                .map(Life::Running),
            Some(("exited", code)) => code.parse().ok().map(Life::Exited),
            _ => None,
        };
        if let Some(life) = life {
            tell.send_replace(life);
        }
    }
    tell.send_if_modified(|life| {
        let lost = !matches!(life, Life::Exited(_));
        if lost {
            *life = Life::Lost;
        }
        lost
    });
}
