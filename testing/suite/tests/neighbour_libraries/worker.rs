//! A program in another language that executes commands.
//!
//! The first line it reads is the URL of a server, or several, separated by spaces, for a library
//! with locks on several servers. It answers `ok VERSION`. Then each line is a command, and the
//! answer is `ok` with the result, or `no` with the reason. It holds one lock at most: the one
//! acquired last. The programs are in `neighbours`; times are milliseconds. They all know
//!
//! ```text
//! acquire NAME LEASE    tries every few milliseconds without a limit; answers with the value
//! try NAME LEASE        once
//! extend LEASE          redsync, Spring, sherlock and pottery extend by the original lease
//! release
//! ```
//!
//! and some commands that only their library has. They end when their input does.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::common::PATIENT;
use crate::install::Program;

#[derive(Debug)]
pub(crate) struct Worker {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// Killed when dropped.
    process: Child,
}

impl Worker {
    pub(crate) async fn start(program: &Program, urls: &str) -> Self {
        let mut process = Command::new(&program.command[0])
            .args(&program.command[1..])
            .current_dir(&program.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{:?}: {error}", program.command));
        let mut worker = Self {
            input: process.stdin.take().unwrap(),
            output: BufReader::new(process.stdout.take().unwrap()).lines(),
            process,
        };
        // Not as an argument, which every user of the machine could read.
        let hello = worker.ask(urls).await;
        assert!(hello.is_ok(), "{}: {hello:?}", program.library);
        worker
    }

    /// Sends a command without waiting for the answer.
    pub(crate) async fn tell(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
        self.input.flush().await.unwrap();
    }

    /// The next answer: the result, or the reason for a refusal.
    pub(crate) async fn answer(&mut self) -> Result<String, String> {
        let line = timeout(PATIENT, self.output.next_line()).await;
        let line = line.expect("an answer").unwrap().expect("it lives");
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match word {
            "ok" => Ok(rest.to_owned()),
            "no" => Err(rest.to_owned()),
            _ => panic!("not an answer: {line}"),
        }
    }

    pub(crate) async fn ask(&mut self, line: &str) -> Result<String, String> {
        self.tell(line).await;
        self.answer().await
    }

    /// When its input ends it exits, even while it waits.
    pub(crate) async fn ends_with_its_input(self) {
        let Self {
            input, mut process, ..
        } = self;
        drop(input);
        let ended = timeout(PATIENT, process.wait()).await;
        assert!(ended.expect("it ends").unwrap().success());
    }

    /// Sends a command that must succeed.
    pub(crate) async fn does(&mut self, line: &str) -> String {
        let answer = self.ask(line).await;
        answer.unwrap_or_else(|why| panic!("{line}: {why}"))
    }

    /// Sends a command that must be refused, and returns the reason.
    pub(crate) async fn cannot(&mut self, line: &str) -> String {
        match self.ask(line).await {
            Ok(value) => panic!("{line}: ok {value}"),
            Err(why) => why,
        }
    }
}
