//! Helpers to run the program, and a directory for each test.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its part")]

pub mod plans;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The program with these arguments, without colours.
pub fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_locktopus-bench"));
    command.args(arguments).env("NO_COLOR", "1");
    command
}

/// Runs it to its end.
pub fn ran(command: &mut Command) -> Output {
    command.output().expect("the binary starts")
}

/// Its standard error.
pub fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// An empty directory.
pub fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a writable target directory");
    directory
}

/// The child processes of this one: the pid and command line of each.
fn children(parent: u32) -> Vec<(u32, Vec<String>)> {
    // Any thread of the runtime may have started them, so all threads are asked.
    let threads = std::fs::read_dir(format!("/proc/{parent}/task")).expect("it runs");
    let lists = threads.flatten().map(|thread| {
        let list = thread.path().join("children");
        std::fs::read_to_string(list).unwrap_or_default()
    });
    let mut found = Vec::new();
    for number in lists.collect::<String>().split_whitespace() {
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let words = line.split('\0').map(str::to_owned).collect();
        found.push((number.parse().expect("a process number"), words));
    }
    found
}

/// Waits until the harness has started `count` processes with this word, and returns their pids.
pub fn started(harness: &mut Child, word: &str, count: usize) -> Vec<u32> {
    let mut found = Vec::new();
    until(&format!("{count} processes {word}"), || {
        let ended = harness.try_wait().expect("a child");
        assert!(ended.is_none(), "it ended before {word}: {ended:?}");
        let named = children(harness.id()).into_iter();
        let named = named.filter(|(_, words)| words.iter().any(|one| one == word));
        found = named.map(|(number, _)| number).collect();
        found.len() >= count
    });
    found
}

/// Kills a process that [`started`] found. Its pid is not reused until its parent waits for it.
pub fn kill(process: u32) {
    let number = process.try_into().ok().and_then(Pid::from_raw);
    kill_process(number.expect("a process number"), Signal::KILL).expect("it can be ended");
}

/// Waits until the harness has started `count` servers, and returns the settings of each: from its
/// file, then from its command line.
pub fn settings(harness: &mut Child, count: usize) -> Vec<String> {
    let of = |(_, words): (u32, Vec<String>)| {
        let file = words
            .iter()
            .position(|word| word.ends_with("/server.conf"))?;
        let text = std::fs::read_to_string(&words[file]).ok()?;
        Some(text + &words[file + 1..].join(" "))
    };
    let mut found = Vec::new();
    until(&format!("{count} servers"), || {
        let ended = harness.try_wait().expect("a child");
        assert!(ended.is_none(), "it ended before its servers: {ended:?}");
        found = children(harness.id()).into_iter().filter_map(of).collect();
        found.len() >= count
    });
    found
}

/// The address in the settings of a server.
pub fn address(settings: &str) -> String {
    let port = settings.lines().find_map(|line| line.strip_prefix("port "));
    format!("127.0.0.1:{}", port.expect("a port").trim_matches('"'))
}

/// Waits for something that should happen within two minutes on any machine.
pub fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !happened() {
        assert!(Instant::now() < deadline, "not within two minutes: {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// A server's reply to one command.
pub fn asked(server: &str, command: &str) -> String {
    let mut connection = TcpStream::connect(server).expect("it listens");
    let timeout = Some(Duration::from_secs(30));
    connection.set_read_timeout(timeout).expect("a timeout");
    write!(connection, "{command}\r\nQUIT\r\n").expect("it reads");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("it answers");
    answer
}
