//! Ends the program if `run` is killed.
//!
//! The guardian is a process that reads from a pipe. Only `run` has the other end, and the launcher
//! until it becomes the program. So the guardian notices when `run` ends for any reason. It has its
//! own process group, so signals from a terminal do not reach it.

use std::fmt::Display;
use std::io::{self, BufRead as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};

use super::grace::Grace;
use super::group::Group;
use crate::exit::Exit;
use crate::output::complain;

/// Tells the guardian that it is no longer needed.
const DONE: &str = "done";

/// Begins the line that says why the program could not be started, as a number of the system. The
/// guardian passes it on to `run`.
const NOT_STARTED: &str = "error ";

/// How often to check whether the program is gone.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The guardian of a program.
#[derive(Debug)]
pub(super) struct Guardian {
    child: Child,
    pipe: ChildStdin,
}

impl Guardian {
    pub(super) fn start() -> io::Result<Self> {
        let mut command = this_program()?;
        // It needs nothing from the environment, which may hold passwords.
        command.arg("run-guardian").env_clear().process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Command::from(command).spawn()?;
        let pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, pipe })
    }

    /// Another end of the pipe, for the launcher.
    pub(super) fn pipe(&self) -> io::Result<OwnedFd> {
        self.pipe.as_fd().try_clone_to_owned()
    }

    /// Tells the guardian which program to end, if the program has no launcher that does so.
    pub(super) async fn watch(&mut self, group: Group, grace: Grace) -> io::Result<()> {
        let line = target(group, grace.polite.as_millis());
        self.pipe.write_all(line.as_bytes()).await?;
        self.pipe.flush().await
    }

    /// Stops the guardian. The program has ended. Returns why it could not be started, if the
    /// launcher said so.
    pub(super) async fn dismiss(mut self) -> Option<io::Error> {
        // Fails only if the guardian was killed.
        let _ = self.pipe.write_all(format!("{DONE}\n").as_bytes()).await;
        drop(self.pipe);
        let output = self.child.wait_with_output().await.ok()?;
        let said = String::from_utf8(output.stdout).ok()?;
        let errno = said.trim_end().strip_prefix(NOT_STARTED)?.parse().ok()?;
        Some(io::Error::from_raw_os_error(errno))
    }
}

/// A command that runs this program again, also after its file was replaced.
pub(super) fn this_program() -> io::Result<std::process::Command> {
    const RUNNING: &str = "/proc/self/exe";
    let file = std::env::current_exe()?;
    let replaced = !file.exists() && Path::new(RUNNING).exists();
    Ok(std::process::Command::new(match replaced {
        true => Path::new(RUNNING),
        false => &file,
    }))
}

/// The line that names a program to the guardian.
pub(super) fn target(Group { pid, whole }: Group, polite: impl Display) -> String {
    let whom = if whole { "group" } else { "process" };
    format!("{whom} {} {polite}\n", pid.as_raw_nonzero())
}

/// The line that says why a program could not be started.
pub(super) fn not_started(errno: i32) -> String {
    format!("{NOT_STARTED}{errno}\n")
}

/// The program to end, and how.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    group: Group,
    polite: Duration,
}

/// Runs the guardian. Returns when `run` has ended, and the program too.
pub(crate) fn serve() -> u8 {
    let mut target = None;
    for line in io::stdin().lock().lines() {
        match line {
            Ok(line) if line == DONE => return Exit::Ok.code(),
            // Fails only if `run` was killed.
            Ok(line) if line.starts_with(NOT_STARTED) => drop(writeln!(io::stdout(), "{line}")),
            Ok(line) => target = parse(&line).or(target),
            Err(_) => break,
        }
    }
    if let Some(target) = target {
        complain("locktopus: run was killed and cannot renew the lock; ending its program");
        end(&target);
    }
    Exit::Lost.code()
}

fn parse(line: &str) -> Option<Target> {
    let mut words = line.split(' ');
    let whole = match words.next()? {
        "group" => true,
        "process" => false,
        _ => return None,
    };
    let pid = Pid::from_raw(words.next()?.parse().ok().filter(|pid| *pid > 1)?)?;
    let polite = Duration::from_millis(words.next()?.parse().ok()?);
    let group = Group { pid, whole };
    Some(Target { group, polite })
}

fn end(Target { group, polite }: &Target) {
    let deadline = Instant::now() + *polite;
    group.send(Signal::TERM);
    group.send(Signal::CONT);
    while group.exists() && Instant::now() < deadline {
        #[expect(clippy::disallowed_methods, reason = "a process without a runtime")]
        thread::sleep(POLL_INTERVAL);
    }
    if group.exists() {
        group.send(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_group_or_a_process() {
        let pid = Pid::from_raw(4711).unwrap();
        for whole in [true, false] {
            let group = Group { pid, whole };
            let polite = Duration::from_millis(500);
            let read = parse(target(group, 500).trim_end());
            assert_eq!(read, Some(Target { group, polite }));
        }
    }

    #[test]
    fn never_everybody() {
        for line in [
            "group 0 1",
            "group 1 1",
            "group -1 1",
            "process 1 1",
            "",
            "group",
            "group 5",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
