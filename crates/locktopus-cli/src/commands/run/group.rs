//! The processes of the program.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{
    self, Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group,
    test_kill_process, test_kill_process_group,
};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};

use super::launch::Launch;
use super::terminal;

/// How often to check whether the last process of a group is gone.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The target of signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) pid: Pid,
    /// The whole process group, or (`--foreground`) only the program itself.
    pub(super) whole: bool,
}

impl Group {
    /// Sends a signal. Succeeds if the processes are gone.
    pub(super) fn send(self, signal: Signal) {
        let sent = if self.whole {
            kill_process_group(self.pid, signal)
        } else {
            kill_process(self.pid, signal)
        };
        match sent {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => tracing::warn!("cannot send {signal:?} to the program: {error}"),
        }
    }

    /// Whether any of its processes exists, including those that may not be signalled.
    pub(super) fn exists(self) -> bool {
        let test = if self.whole {
            test_kill_process_group(self.pid)
        } else {
            test_kill_process(self.pid)
        };
        test != Err(rustix::io::Errno::SRCH)
    }
}

/// A running program.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    group: Group,
    status: Option<ExitStatus>,
}

impl Program {
    /// Starts the program, in its own process group unless `foreground`.
    pub(super) fn start(
        launch: Launch,
        name: &str,
        token: Option<u64>,
        variables: &[(&str, String)],
        foreground: bool,
    ) -> io::Result<Self> {
        adopt_orphans();
        let mut command = Command::from(launch.command);
        command.env("LOCKTOPUS_NAME", name);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        match token {
            Some(token) => command.env("LOCKTOPUS_TOKEN", token.to_string()),
            None => command.env_remove("LOCKTOPUS_TOKEN"),
        };
        if !foreground {
            command.process_group(0);
            command.env(terminal::ASK, std::process::id().to_string());
        }
        let child = terminal::unprepared(|| command.spawn())?;
        drop(launch.pipe);
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        Ok(Self {
            child,
            group: Group {
                pid: pid.ok_or(io::ErrorKind::NotFound)?,
                whole: !foreground,
            },
            status: None,
        })
    }

    pub(super) fn group(&self) -> Group {
        self.group
    }

    /// Waits until the program itself ends.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.status = Some(status);
        Ok(status)
    }

    /// The signal that stopped the program since the last call, if any.
    pub(super) fn stopped_by(&self) -> Option<Signal> {
        if self.status.is_some() {
            return None;
        }
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let status = process::waitid(WaitId::Pid(self.group.pid), stopped).ok()??;
        Signal::from_named_raw(status.stopping_signal()?)
    }

    /// Sends a signal to the processes that are left.
    pub(super) fn send(&self, signal: Signal) {
        // The id of a single process may be reused once it was waited for. That of a group is not
        // reused while the group exists.
        if self.group.whole || self.status.is_none() {
            self.group.send(signal);
        }
    }

    /// Whether all its processes are gone.
    pub(super) fn is_gone(&self) -> bool {
        if self.status.is_none() {
            return false;
        }
        if !self.group.whole {
            return true;
        }
        // The program's orphans are now children of this process, and stay in the group until
        // waited for.
        while matches!(
            process::waitpgid(self.group.pid, WaitOptions::NOHANG),
            Ok(Some(_))
        ) {}
        !self.group.exists()
    }

    /// Waits until all its processes are gone. False if some are left at `deadline`.
    pub(super) async fn gone_by(&mut self, deadline: Instant) -> io::Result<bool> {
        if self.status.is_none() {
            match timeout_at(deadline, self.wait()).await {
                Ok(waited) => waited?,
                Err(_) => return Ok(false),
            };
        }
        loop {
            if self.is_gone() {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

/// Makes this process the parent of the program's orphans, so that it can wait for them. Where that
/// is not possible, they go to the system's first process.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    if let Err(error) = process::set_child_subreaper(Some(process::getpid())) {
        tracing::debug!("not a subreaper: {error}");
    }
}
