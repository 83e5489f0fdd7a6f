//! `run` itself is killed. Nothing renews its lock, so its program must end.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::usual::{STUBBORN, TestBed, ended, runs, signal, words};

const LEASE: Duration = Duration::from_secs(6);
const OPTIONS: [&str; 4] = ["--name", "a", "--lease", "6s"];

#[tokio::test]
async fn the_guardian_ends_the_program_and_the_lease_ends_by_itself() {
    let bed = TestBed::new().await;
    let mut child = bed.script(&OPTIONS, STUBBORN);
    let pid = bed.pid("pid").await;
    signal("KILL", child.id().unwrap()).await;
    child.wait().await.unwrap();
    ends_in_time(&bed, pid).await;
}

#[tokio::test]
async fn the_guardian_does_so_when_nobody_reads_what_it_says() {
    let bed = TestBed::new().await;
    let mut child = bed.script(&OPTIONS, STUBBORN);
    let pid = bed.pid("pid").await;
    drop(child.stderr.take());
    signal("KILL", child.id().unwrap()).await;
    child.wait().await.unwrap();
    ends_in_time(&bed, pid).await;
}

/// `run` is gone before it can do anything about a program that it started.
#[tokio::test]
async fn the_guardian_knows_the_program_before_it_runs() {
    let bed = TestBed::new().await;
    let mut child = bed.script(&OPTIONS, "echo $$ >pid; kill -KILL $PPID; exec sleep 60");
    ends_in_time(&bed, bed.pid("pid").await).await;
    child.wait().await.unwrap();
}

/// A launcher whose `run` was killed: it must not become the program.
#[tokio::test]
async fn nothing_starts_after_run_was_killed() {
    let bed = TestBed::without_servers();
    let (reader, guardian) = std::io::pipe().unwrap();
    let line = "run-launcher --pipe=0 --parent=1 --polite=9 -- touch ran";
    let mut launcher = bed.bare(&words(line));
    launcher.stdin(guardian);
    let ran = ended(launcher).await;
    assert_eq!(ran.code, 76, "{ran:?}");
    assert!(!bed.room().join("ran").exists());
    drop(reader);
}

async fn ends_in_time(bed: &TestBed, pid: u32) {
    let killed = Instant::now();
    while runs(pid) {
        assert!(killed.elapsed() < LEASE, "it outlives the lease");
        sleep(Duration::from_millis(5)).await;
    }
    bed.free("a").await;
}
