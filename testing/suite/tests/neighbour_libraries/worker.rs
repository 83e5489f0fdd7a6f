//! A program of another language that does what it is told.
//!
//! The first line it reads is the URL of a server, or several with spaces between for a library
//! that means its locks for several; it answers `ok VERSION`. Then each line is a command, and what
//! it answers is `ok`, with what came out, or `no`, with why not. It holds one lock at most: the
//! one taken last. Its programs are in `neighbours`; times are milliseconds. All of them know
//!
//! ```text
//! acquire NAME LEASE    asking every few milliseconds, for as long as it takes; answers with the value
//! try NAME LEASE        once
//! extend LEASE          redsync, Spring, sherlock and pottery do it by the lease that the lock was taken for
//! release
//! ```
//!
//! and some that only their library has. They end when their input does.

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
        // Not as an argument, which everybody on the machine could read.
        let hello = worker.ask(urls).await;
        assert!(hello.is_ok(), "{}: {hello:?}", program.library);
        worker
    }

    /// Tells it something without waiting for the answer.
    pub(crate) async fn tell(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
        self.input.flush().await.unwrap();
    }

    /// The next answer: what came out, or why not.
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

    /// It ends although it waits for something, once there will be no more lines.
    pub(crate) async fn ends_with_its_input(self) {
        let Self {
            input, mut process, ..
        } = self;
        drop(input);
        let ended = timeout(PATIENT, process.wait()).await;
        assert!(ended.expect("it ends").unwrap().success());
    }

    /// Asks for what must succeed.
    pub(crate) async fn does(&mut self, line: &str) -> String {
        let answer = self.ask(line).await;
        answer.unwrap_or_else(|why| panic!("{line}: {why}"))
    }

    /// Asks for what must be refused, and says why it was.
    pub(crate) async fn cannot(&mut self, line: &str) -> String {
        match self.ask(line).await {
            Ok(value) => panic!("{line}: ok {value}"),
            Err(why) => why,
        }
    }
}
