//! Ends the program if `run` is killed.
//!
//! The guardian is a process that reads from a pipe. Only `run` has the other end, so the guardian
//! notices when `run` ends for any reason. It has its own process group, so signals from a terminal
//! do not reach it.

use std::io::{self, BufRead as _};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};

use super::grace::Grace;
use super::group::{Group, Program};
use crate::exit::Exit;
use crate::output::complain;

/// Tells the guardian that it is no longer needed.
const DONE: &str = "done";

/// How often to check whether the program is gone.
const LOOK: Duration = Duration::from_millis(20);

/// The guardian of a program.
#[derive(Debug)]
pub(super) struct Guardian {
    child: Child,
    pipe: ChildStdin,
}

impl Guardian {
    pub(super) fn start() -> io::Result<Self> {
        let mut command = std::process::Command::new(std::env::current_exe()?);
        // It needs nothing from the environment, which may hold passwords.
        command.arg("run-guardian").env_clear().process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = Command::from(command).spawn()?;
        let pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, pipe })
    }

    /// Tells the guardian which program to end.
    pub(super) async fn watch(&mut self, program: &Program, grace: Grace) -> io::Result<()> {
        let Group { pid, whole } = program.group();
        let whom = if whole { "group" } else { "process" };
        let pid = pid.as_raw_nonzero();
        let line = format!("{whom} {pid} {}\n", grace.polite.as_millis());
        self.pipe.write_all(line.as_bytes()).await?;
        self.pipe.flush().await
    }

    /// Stops the guardian. The program has ended.
    pub(super) async fn dismiss(mut self) {
        // Fails only if the guardian was killed.
        let _ = self.pipe.write_all(DONE.as_bytes()).await;
        drop(self.pipe);
        let _ = self.child.wait().await;
    }
}

/// The program to end, and how.
#[derive(Debug, PartialEq, Eq)]
struct Charge {
    group: Group,
    polite: Duration,
}

/// Runs the guardian. Returns when `run` has ended, and the program too.
pub(crate) fn serve() -> u8 {
    let mut charge = None;
    for line in io::stdin().lock().lines() {
        match line {
            Ok(line) if line == DONE => return Exit::Ok.code(),
            Ok(line) => charge = parse(&line).or(charge),
            Err(_) => break,
        }
    }
    if let Some(charge) = charge {
        complain("locktopus: run was killed and cannot renew the lock; ending its program");
        end(&charge);
    }
    Exit::Lost.code()
}

fn parse(line: &str) -> Option<Charge> {
    let mut words = line.split(' ');
    let whole = match words.next()? {
        "group" => true,
        "process" => false,
        _ => return None,
    };
    let pid = Pid::from_raw(words.next()?.parse().ok().filter(|pid| *pid > 1)?)?;
    let polite = Duration::from_millis(words.next()?.parse().ok()?);
    let group = Group { pid, whole };
    Some(Charge { group, polite })
}

fn end(Charge { group, polite }: &Charge) {
    let deadline = Instant::now() + *polite;
    group.send(Signal::TERM);
    group.send(Signal::CONT);
    while group.exists() && Instant::now() < deadline {
        #[expect(clippy::disallowed_methods, reason = "a process without a runtime")]
        thread::sleep(LOOK);
    }
    if group.exists() {
        group.send(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_a_group_or_a_process() {
        let charge = parse("group 4711 500").unwrap();
        assert_eq!(charge.group.pid.as_raw_nonzero().get(), 4711);
        assert!(charge.group.whole);
        assert_eq!(charge.polite, Duration::from_millis(500));
        assert!(!parse("process 4711 0").unwrap().group.whole);
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
