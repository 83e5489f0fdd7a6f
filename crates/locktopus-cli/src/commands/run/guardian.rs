//! What is left if `run` is killed: a process that ends the program.
//!
//! It reads from a pipe whose other end only `run` has, so it learns of the end of `run`, however
//! that came. It has a process group of its own, so that signals from a terminal do not reach it.

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

/// What it is told when it is not needed any more.
const DONE: &str = "done";

/// How often to look whether the program is gone.
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
        // It needs nothing of what may be in the environment, passwords least of all.
        command.arg("run-guardian").env_clear().process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = Command::from(command).spawn()?;
        let pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, pipe })
    }

    /// Tells it whom to end.
    pub(super) async fn watch(&mut self, program: &Program, grace: Grace) -> io::Result<()> {
        let Group { pid, whole } = program.group();
        let whom = if whole { "group" } else { "process" };
        let pid = pid.as_raw_nonzero();
        let line = format!("{whom} {pid} {}\n", grace.polite.as_millis());
        self.pipe.write_all(line.as_bytes()).await?;
        self.pipe.flush().await
    }

    /// Lets it go. The program has ended.
    pub(super) async fn dismiss(mut self) {
        // It may have been killed; then there is nobody to tell.
        let _ = self.pipe.write_all(DONE.as_bytes()).await;
        drop(self.pipe);
        let _ = self.child.wait().await;
    }
}

/// What it is told to do.
#[derive(Debug, PartialEq, Eq)]
struct Charge {
    group: Group,
    polite: Duration,
}

/// Is the guardian: returns when `run` has ended, and the program too.
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
        complain("locktopus: run was killed; its program is ended, for nobody renews the lock");
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
