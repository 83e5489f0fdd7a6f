//! A signal for a script ends everything that the script started, and leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Waits until this holds.
fn until(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came about: {what}");
        std::thread::yield_now();
    }
}

/// Whether this process runs. A process that ended and was not waited for is a zombie.
fn runs(pid: &str) -> bool {
    let about = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    about.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// Runs a command whose `cargo` waits forever beside a child of its own, and sends this signal.
fn sent(signal: &str, code: i32) {
    let room = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("signal-{signal}"));
    let _ = fs::remove_dir_all(&room);
    fs::create_dir_all(&room).unwrap();
    // Not `sleep &`: a shell starts background commands with interrupts ignored.
    let child = "echo $PPID $$ >$ROOM/new && mv $ROOM/new $ROOM/pids && exec sleep 600";
    let script = format!("#!/bin/sh\nexport ROOM={}\nsh -c '{child}'\ntrue\n", room.display());
    // Another process writes it: a file that is open for writing cannot be started.
    let write = ["-c", r#"printf %s "$1" >"$2/cargo" && chmod 755 "$2/cargo""#, "write"];
    assert!(Command::new("sh").args(write).arg(script).arg(&room).status().unwrap().success());
    let path = format!("{}:{}", room.display(), std::env::var("PATH").unwrap());
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["features"])
        .env("PATH", path)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .process_group(0)
        .spawn()
        .unwrap();
    until("cargo was started", || room.join("pids").exists());
    let pids = fs::read_to_string(room.join("pids")).unwrap();
    assert!(pids.split_whitespace().all(runs));
    // Only to the script: cargo and its child get it from there.
    let kill = format!("kill -{signal} {}", xtask.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    assert_eq!(xtask.wait().unwrap().code(), Some(code), "{signal}");
    for pid in pids.split_whitespace() {
        until("what was started has ended", || !runs(pid));
    }
}

#[test]
fn an_interrupt_ends_what_was_started() {
    sent("INT", 130);
}

#[test]
fn a_termination_ends_what_was_started() {
    sent("TERM", 143);
}

#[test]
fn a_hangup_ends_what_was_started() {
    sent("HUP", 129);
}
