//! Locks for scripts, passed on as tickets.

use std::os::unix::fs::PermissionsExt as _;

use crate::usual::{TestBed, ended, eventually, finished, signal, words};

#[tokio::test]
async fn a_ticket_is_all_that_is_needed() {
    let bed = TestBed::new().await;
    let lock = ["-q", "lock", "a", "--lease", "30s", "--wait", "0s"];
    let ticket = bed.ran(&lock).await.ok().out;
    let busy = bed.ran(&lock).await;
    assert_eq!(busy.code, 75, "{busy:?}");
    let with = |arguments: &[&str]| {
        let mut command = bed.command(arguments);
        command.env("LOCKTOPUS_TICKET", ticket.trim());
        command
    };
    ended(with(&["-q", "extend", "a", "--lease", "60s"]))
        .await
        .ok();
    let status = bed.does("-q status a").await.out;
    assert!(
        status.contains("is held") && status.contains("lease ends in 5"),
        "{status}"
    );
    assert_eq!(
        ended(with(&["-q", "unlock", "b"])).await.code,
        2,
        "of another lock"
    );
    ended(with(&["-q", "unlock", "a"])).await.ok();
    bed.free("a").await;
    let used_up = ended(with(&["-q", "unlock", "a"])).await;
    assert_eq!(used_up.code, 76, "{used_up:?}");
    assert!(used_up.err.contains("unlock it already"), "{used_up:?}");
}

#[tokio::test]
async fn a_ticket_in_a_file_is_its_owners() {
    let bed = TestBed::new().await;
    let file = bed.room().join("ticket");
    let path = file.to_str().unwrap();
    let lock = format!("-q lock a --lease 30s --kind mutex --ticket-file {path}");
    let said = bed.does(&lock).await.out;
    said.trim().parse::<u64>().expect("the fencing token");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let again = bed.ran(&words(&lock)).await;
    assert_eq!(again.code, 1, "no lock was waited for: {again:?}");
    assert!(
        again.err.contains("of a lock that is still held"),
        "{again:?}"
    );
    let other = bed
        .ran(&["-q", "lock", "b", "--lease", "30s", "--ticket-file", path])
        .await;
    assert_eq!(other.code, 1, "{other:?}");
    assert!(other.err.contains("of another lock"), "{other:?}");
    let unlock = format!("-q unlock a --kind mutex --ticket-file {path}");
    bed.does(&unlock).await;
    assert!(!file.exists());
    bed.free("a").await;
}

#[tokio::test]
async fn a_busy_lock_leaves_no_file() {
    let bed = TestBed::new().await;
    bed.does("-q lock a --lease 30s").await;
    let arguments = words("-q lock a --lease 30s --wait 0s --ticket-file t");
    assert_eq!(bed.ran(&arguments).await.code, 75);
    assert!(!bed.room().join("t").exists());
}

/// The files in the directory, without the configuration.
fn files(bed: &TestBed) -> Vec<String> {
    let entries = std::fs::read_dir(bed.room()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "locktopus").collect()
}

const LOCK: [&str; 7] = ["-q", "lock", "a", "--lease", "30s", "--ticket-file", "t"];
const UNLOCK: [&str; 5] = ["-q", "unlock", "a", "--ticket-file", "t"];

/// A ticket of a lost lock and an empty file are both replaced.
#[tokio::test]
async fn a_ticket_that_is_over_is_replaced() {
    let bed = TestBed::new().await;
    bed.ran(&LOCK).await.ok();
    let first = std::fs::read_to_string(bed.room().join("t")).unwrap();
    bed.node().command(&["DEL", "a"]).await.unwrap();
    bed.ran(&LOCK).await.ok();
    let second = std::fs::read_to_string(bed.room().join("t")).unwrap();
    assert_ne!(first, second);
    bed.ran(&UNLOCK).await.ok();
    std::fs::write(bed.room().join("t"), "").unwrap();
    bed.ran(&LOCK).await.ok();
    bed.ran(&UNLOCK).await.ok();
    bed.free("a").await;
}

#[tokio::test]
async fn what_is_no_ticket_is_not_replaced() {
    let bed = TestBed::new().await;
    let file = bed.room().join("t");
    std::fs::write(&file, "of somebody\n").unwrap();
    assert_eq!(bed.ran(&LOCK).await.code, 1);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "of somebody\n");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/null", &file).unwrap();
    assert_eq!(bed.ran(&LOCK).await.code, 1);
    assert!(file.is_symlink());
    bed.free("a").await;
}

#[tokio::test]
async fn unlock_removes_the_ticket_of_a_lock_that_was_lost() {
    let bed = TestBed::new().await;
    bed.ran(&LOCK).await.ok();
    bed.node().command(&["DEL", "a"]).await.unwrap();
    assert_eq!(bed.ran(&UNLOCK).await.code, 76);
    assert_eq!(files(&bed), [""; 0]);
}

/// A signal during the wait leaves no file and no waiter.
#[tokio::test]
async fn an_interrupted_wait_leaves_nothing() {
    let bed = TestBed::new().await;
    let ticket = bed.does("-q lock a --lease 60s").await.out;
    let waiters = async |some: bool| {
        eventually("the waiters", async || {
            let status = ["-q", "--format", "json", "status", "a"];
            let out = bed.ran(&status).await.ok().out;
            (out.contains("\"waiters\":[{") == some).then_some(())
        })
        .await;
    };
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129), ("QUIT", 131)] {
        let waiting = bed.command(&LOCK).spawn().unwrap();
        waiters(true).await;
        signal(name, waiting.id().unwrap()).await;
        assert_eq!(finished(waiting).await.code, code, "{name}");
        assert_eq!(files(&bed), [""; 0], "{name}");
        waiters(false).await;
    }
    let mut unlock = bed.command(&["-q", "unlock", "a"]);
    unlock.env("LOCKTOPUS_TICKET", ticket.trim());
    ended(unlock).await.ok();
    let nothing = bed.ran(&["-q", "unlock", "a"]).await;
    assert_eq!(nothing.code, 2, "{nothing:?}");
    let said = "there is no ticket: standard input is empty; give the ticket";
    assert!(nothing.err.contains(said), "{nothing:?}");
}

/// If the ticket cannot be written, the lock is free at once.
#[tokio::test]
async fn a_ticket_that_cannot_be_written_is_given_back() {
    let bed = TestBed::new().await;
    let own = env!("CARGO_BIN_EXE_locktopus");
    let shell = async |script: &str| {
        let mut shell = tokio::process::Command::new("sh");
        let script = format!("lock='{own} -q lock a --lease 60s'; {script}");
        shell.args(["-c", &script]).current_dir(bed.room());
        shell.env("LOCKTOPUS_URL", bed.url()).kill_on_drop(true);
        shell.stdout(std::process::Stdio::piped());
        shell.stderr(std::process::Stdio::piped());
        let ran = finished(shell.spawn().unwrap()).await;
        assert!(ran.err.contains(" error: "), "{ran:?}");
        (
            ran.code,
            bed.ran(&["-q", "status", "a", "--check"]).await.code,
        )
    };
    for (what, script, code) in [
        ("a full disk", "$lock >/dev/full", 1),
        ("a closed output", "$lock >&-", 2),
        (
            "a closed pipe",
            "{ $lock; echo $? >code; } | true; while [ ! -s code ]; do sleep 0.01; done; exit $(cat code)",
            141,
        ),
        (
            "a file that cannot grow",
            "trap '' XFSZ; ulimit -f 0; $lock --ticket-file t",
            1,
        ),
        (
            "no reader of the token",
            "rm code; { sleep 0.2; $lock --ticket-file t; echo $? >code; } | true; while [ ! -s code ]; do sleep 0.01; done; exit $(cat code)",
            141,
        ),
        (
            "a directory that is not there",
            "$lock --ticket-file no/t",
            1,
        ),
    ] {
        assert_eq!(shell(script).await, (code, 0), "{what}");
        let left: Vec<_> = files(&bed)
            .into_iter()
            .filter(|name| name != "code")
            .collect();
        assert_eq!(left, [""; 0], "{what}");
    }
}
