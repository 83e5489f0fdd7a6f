//! `job`: a program at fixed times, on one of several machines.

use std::collections::BTreeSet;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{ChildStderr, Command};
use tokio::time::timeout;

use crate::usual::{SOON, TestBed, ended, eventually, finished, runs, signal, words};

/// Notes when it was due, under which token.
const NOTE: &str = "echo $LOCKTOPUS_SCHEDULED_AT $LOCKTOPUS_TOKEN >>runs";

/// The line of standard error that has this text.
async fn said(errors: &mut Lines<BufReader<ChildStderr>>, text: &str) -> String {
    let line = async {
        loop {
            let line = errors.next_line().await.unwrap().expect(text);
            if line.contains(text) {
                return line;
            }
        }
    };
    timeout(SOON, line).await.expect(text)
}

fn noted(bed: &TestBed) -> Vec<(String, u64)> {
    let text = std::fs::read_to_string(bed.room().join("runs")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let lines = lines.map(|(at, token)| (at.to_owned(), token.parse().unwrap()));
    lines.collect()
}

#[tokio::test]
async fn each_run_is_begun_by_one_machine() {
    let bed = TestBed::new().await;
    let schedules: [&[&str]; 3] = [
        &["--every", "1s"],
        &["--every", "1s"],
        &["--cron", "* * * * *", "--zone", "Asia/Kathmandu"],
    ];
    let machines = schedules.map(|schedule| {
        let arguments = [&["-q", "job", "a"], schedule, &["--", "sh", "-c", NOTE]].concat();
        bed.command(&arguments).spawn().unwrap()
    });
    let runs = eventually("four runs", async || {
        Some(noted(&bed)).filter(|runs| runs.len() >= 4)
    })
    .await;
    let times: BTreeSet<_> = runs.iter().map(|(at, _)| at).collect();
    assert_eq!(times.len(), runs.len(), "begun twice: {runs:?}");
    assert!(runs.is_sorted_by_key(|(_, token)| *token), "{runs:?}");
    for machine in machines {
        signal("TERM", machine.id().unwrap()).await;
        assert_eq!(finished(machine).await.code, 143);
    }
    bed.free("a").await;
}

/// A run that loses its lock is stopped, and the next one comes.
#[tokio::test]
async fn a_job_goes_on_after_a_run_that_lost_its_lock() {
    let bed = TestBed::new().await;
    let script = "if [ -e pid ]; then echo $LOCKTOPUS_SCHEDULED_AT $LOCKTOPUS_TOKEN >>runs; exit; \
                  fi; echo $$ >pid.new; mv pid.new pid; while :; do sleep 0.05; done";
    let arguments = [
        "job", "a", "--every", "1s", "--lease", "3s", "--", "sh", "-c", script,
    ];
    let machine = bed.command(&arguments).spawn().unwrap();
    let first = bed.pid("pid").await;
    bed.does("-q break a --reason stuck").await;
    eventually("the run to be stopped", async || {
        (!runs(first)).then_some(())
    })
    .await;
    eventually("the next run", async || {
        (!noted(&bed).is_empty()).then_some(())
    })
    .await;
    signal("TERM", machine.id().unwrap()).await;
    let ran = finished(machine).await;
    assert_eq!(ran.code, 143, "{ran:?}");
    assert!(
        ran.err.contains("the program was stopped with TERM"),
        "{ran:?}"
    );
}

/// A signal reaches the program of a run, and the command ends after it.
#[tokio::test]
async fn a_signal_ends_the_run_and_the_job() {
    let bed = TestBed::new().await;
    let script = "trap 'echo asked >asked; exit 3' TERM; echo $$ >pid.new; mv pid.new pid; \
                  while :; do sleep 0.05; done";
    let arguments = ["job", "a", "--every", "1s", "--", "sh", "-c", script];
    let machine = bed.command(&arguments).spawn().unwrap();
    bed.pid("pid").await;
    signal("TERM", machine.id().unwrap()).await;
    let ran = finished(machine).await;
    assert_eq!(ran.code, 143, "{ran:?}");
    assert!(ran.err.contains("ended with 3"), "{ran:?}");
    assert!(bed.room().join("asked").exists());
    bed.free("a").await;
}

#[tokio::test]
async fn what_is_due_and_what_was_missed_is_told() {
    let bed = TestBed::new().await;
    let script = "[ -e ran ] || { touch ran; sleep 3; }";
    let arguments = ["job", "a", "--every", "1s", "--", "sh", "-c", script];
    let mut machine = bed.command(&arguments).spawn().unwrap();
    let mut errors = BufReader::new(machine.stderr.take().unwrap()).lines();
    let first = said(&mut errors, "is due next at ").await;
    let next = first.strip_prefix("locktopus: \"a\" is due next at 2");
    assert!(next.unwrap().ends_with(" UTC"), "{first}");
    let missed = said(&mut errors, "\"a\" missed ").await;
    assert!(missed.contains(" since 2"), "{missed}");
    signal("TERM", machine.id().unwrap()).await;
    assert_eq!(finished(machine).await.code, 143);
    bed.does("semaphore init s 1").await;
    let ended = bed.ran(&words("job s --every 100ms -- true")).await;
    let why = "job \"s\" has ended: its name is in use as a number (";
    assert!(ended.err.contains(why), "{ended:?}");
    // The next machine tells what was missed after a kill.
    let arguments = "job a --every 1s --lease 3s -- sh -c";
    let arguments = [&words(arguments)[..], &["echo $$ >pid; exec sleep 9"]].concat();
    let killed = bed.command(&arguments).spawn().unwrap();
    bed.pid("pid").await;
    signal("KILL", killed.id().unwrap()).await;
    let mut machine = bed.command(&arguments).spawn().unwrap();
    let mut errors = BufReader::new(machine.stderr.take().unwrap()).lines();
    said(&mut errors, " since 2").await;
    signal("TERM", machine.id().unwrap()).await;
    finished(machine).await;
    let zone = words("--zone Asia/Kathmandu -- true");
    let arguments = [&["job", "a", "--cron", "0 0 1 1 *"], &zone[..]].concat();
    let mut machine = bed.command(&arguments).spawn().unwrap();
    let mut errors = BufReader::new(machine.stderr.take().unwrap()).lines();
    let first = said(&mut errors, "is due next at ").await;
    let there = "-01-01 00:00:00 Asia/Kathmandu";
    assert!(first.ends_with(there), "{first}");
    signal("TERM", machine.id().unwrap()).await;
    assert_eq!(finished(machine).await.code, 143);
}

/// They may be replaced at this moment.
#[tokio::test]
async fn a_job_goes_on_when_its_program_and_its_own_file_are_gone() {
    let bed = TestBed::new().await;
    let write = "ln $0 own 2>/dev/null || cp $0 own; printf '#!/bin/sh\nrm -f own; mv \"$0\" gone; echo $LOCKTOPUS_SCHEDULED_AT 1 >>runs\n' >work; chmod +x work";
    let mut shell = Command::new("sh");
    let own = env!("CARGO_BIN_EXE_locktopus");
    shell.args(["-c", write, own]).current_dir(bed.room());
    assert!(shell.status().await.unwrap().success());
    let mut machine = Command::new(bed.room().join("own"));
    machine.args(["job", "a", "--every", "1s", "--", "./work"]);
    machine
        .env("LOCKTOPUS_URL", bed.url())
        .current_dir(bed.room());
    machine.stderr(Stdio::piped()).kill_on_drop(true);
    let mut machine = machine.spawn().unwrap();
    let mut errors = BufReader::new(machine.stderr.take().unwrap()).lines();
    let told = said(&mut errors, "cannot start").await;
    let why = "cannot start ./work: No such file or directory (os error 2)";
    assert!(
        told.starts_with("locktopus: the run of 2") && told.ends_with(why),
        "{told}"
    );
    std::fs::rename(bed.room().join("gone"), bed.room().join("work")).unwrap();
    eventually("a run of the program that came back", async || {
        (noted(&bed).len() == 2).then_some(())
    })
    .await;
    signal("TERM", machine.id().unwrap()).await;
    assert_eq!(finished(machine).await.code, 143);
}

/// Nothing is connected: no server is there.
#[tokio::test]
async fn times_are_read_before_anything_is_sent() {
    let bed = TestBed::without_servers();
    let nobody = "redis://127.0.0.1:1?connect_timeout=1s";
    let cases: [(&[&str], &str); 8] = [
        (&[], "<--cron <EXPRESSION>|--every <TIME>>"),
        (&["--every", "0s"], "--every = 0s: a period must"),
        (&["--cron", "0 25 * * *"], "the hour \"25\""),
        (&["--cron", "0 3 * *"], "--cron = \"0 3 * *\""),
        (
            &["--cron", "0 3 * * *", "--zone", "Berlin"],
            "--zone = \"Berlin\"",
        ),
        (
            &["--cron", "0 3 * * *", "--every", "1h"],
            "cannot be used with",
        ),
        (&["--every", "1h", "--zone", "UTC"], "cannot be used with"),
        (&["--every", "1h", "--lease", "2s"], "--lease"),
    ];
    for (options, said) in cases {
        let job = [&["--url", nobody, "job", "a"], options, &["--", "true"]].concat();
        let ran = ended(bed.bare(&job)).await;
        assert_eq!(ran.code, 2, "{options:?}: {ran:?}");
        assert!(ran.err.contains(said), "{options:?}: {ran:?}");
    }
}
