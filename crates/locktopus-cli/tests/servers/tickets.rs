//! Locks for scripts, passed on as tickets.

use std::os::unix::fs::PermissionsExt as _;

use crate::usual::{Place, ended, eventually, finished, signal, words};

#[tokio::test]
async fn a_ticket_is_all_that_is_needed() {
    let place = Place::new().await;
    let lock = ["-q", "lock", "a", "--lease", "30s", "--wait", "0s"];
    let ticket = place.ran(&lock).await.ok().out;
    let busy = place.ran(&lock).await;
    assert_eq!(busy.code, 75, "{busy:?}");
    let with = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("LOCKTOPUS_TICKET", ticket.trim());
        command
    };
    ended(with(&["-q", "extend", "a", "--lease", "60s"]))
        .await
        .ok();
    let status = place.does("-q status a").await.out;
    assert!(
        status.contains("is held") && status.contains("lease 5"),
        "{status}"
    );
    assert_eq!(
        ended(with(&["-q", "unlock", "b"])).await.code,
        2,
        "of another lock"
    );
    ended(with(&["-q", "unlock", "a"])).await.ok();
    place.free("a").await;
    assert_eq!(
        ended(with(&["-q", "unlock", "a"])).await.code,
        76,
        "used up"
    );
}

#[tokio::test]
async fn a_ticket_in_a_file_is_its_owners() {
    let place = Place::new().await;
    let file = place.room().join("ticket");
    let path = file.to_str().unwrap();
    let lock = format!("-q lock a --lease 30s --kind mutex --ticket-file {path}");
    let said = place.does(&lock).await.out;
    said.trim().parse::<u64>().expect("the fencing token");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let again = place.ran(&words(&lock)).await;
    assert_eq!(again.code, 1, "no lock was waited for: {again:?}");
    assert!(
        again.err.contains("of a lock that is still held"),
        "{again:?}"
    );
    let other = place
        .ran(&["-q", "lock", "b", "--lease", "30s", "--ticket-file", path])
        .await;
    assert_eq!(other.code, 1, "{other:?}");
    assert!(other.err.contains("of another lock"), "{other:?}");
    let unlock = format!("-q unlock a --kind mutex --ticket-file {path}");
    place.does(&unlock).await;
    assert!(!file.exists());
    place.free("a").await;
}

#[tokio::test]
async fn a_busy_lock_leaves_no_file() {
    let place = Place::new().await;
    place.does("-q lock a --lease 30s").await;
    let arguments = words("-q lock a --lease 30s --wait 0s --ticket-file t");
    assert_eq!(place.ran(&arguments).await.code, 75);
    assert!(!place.room().join("t").exists());
}

/// The files in the directory, without the configuration.
fn files(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.room()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "locktopus").collect()
}

const LOCK: [&str; 7] = ["-q", "lock", "a", "--lease", "30s", "--ticket-file", "t"];
const UNLOCK: [&str; 5] = ["-q", "unlock", "a", "--ticket-file", "t"];

/// A ticket of a lost lock and an empty file are both replaced.
#[tokio::test]
async fn a_ticket_that_is_over_is_replaced() {
    let place = Place::new().await;
    place.ran(&LOCK).await.ok();
    let first = std::fs::read_to_string(place.room().join("t")).unwrap();
    place.node().command(&["DEL", "a"]).await.unwrap();
    place.ran(&LOCK).await.ok();
    let second = std::fs::read_to_string(place.room().join("t")).unwrap();
    assert_ne!(first, second);
    place.ran(&UNLOCK).await.ok();
    std::fs::write(place.room().join("t"), "").unwrap();
    place.ran(&LOCK).await.ok();
    place.ran(&UNLOCK).await.ok();
    place.free("a").await;
}

#[tokio::test]
async fn what_is_no_ticket_is_not_replaced() {
    let place = Place::new().await;
    let file = place.room().join("t");
    std::fs::write(&file, "of somebody\n").unwrap();
    assert_eq!(place.ran(&LOCK).await.code, 1);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "of somebody\n");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/null", &file).unwrap();
    assert_eq!(place.ran(&LOCK).await.code, 1);
    assert!(file.is_symlink());
    place.free("a").await;
}

#[tokio::test]
async fn unlock_removes_the_ticket_of_a_lock_that_was_lost() {
    let place = Place::new().await;
    place.ran(&LOCK).await.ok();
    place.node().command(&["DEL", "a"]).await.unwrap();
    assert_eq!(place.ran(&UNLOCK).await.code, 76);
    assert_eq!(files(&place), [""; 0]);
}

/// A signal during the wait leaves no file and no waiter.
#[tokio::test]
async fn an_interrupted_wait_leaves_nothing() {
    let place = Place::new().await;
    let ticket = place.does("-q lock a --lease 60s").await.out;
    let waiters = async |some: bool| {
        eventually("the waiters", async || {
            let status = ["-q", "--format", "json", "status", "a"];
            let out = place.ran(&status).await.ok().out;
            (out.contains("\"waiters\":[{") == some).then_some(())
        })
        .await;
    };
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129), ("QUIT", 131)] {
        let waiting = place.command(&LOCK).spawn().unwrap();
        waiters(true).await;
        signal(name, waiting.id().unwrap()).await;
        assert_eq!(finished(waiting).await.code, code, "{name}");
        assert_eq!(files(&place), [""; 0], "{name}");
        waiters(false).await;
    }
    let mut unlock = place.command(&["-q", "unlock", "a"]);
    unlock.env("LOCKTOPUS_TICKET", ticket.trim());
    ended(unlock).await.ok();
}

/// If the ticket cannot be written, the lock is free at once.
#[tokio::test]
async fn a_ticket_that_cannot_be_written_is_given_back() {
    let place = Place::new().await;
    let own = env!("CARGO_BIN_EXE_locktopus");
    let shell = async |script: &str| {
        let mut shell = tokio::process::Command::new("sh");
        let script = format!("lock='{own} -q lock a --lease 60s'; {script}");
        shell.args(["-c", &script]).current_dir(place.room());
        shell.env("LOCKTOPUS_URL", place.url()).kill_on_drop(true);
        shell.stdout(std::process::Stdio::piped());
        let status = shell.status().await.unwrap();
        (
            status.code(),
            place.ran(&["-q", "status", "a", "--check"]).await.code,
        )
    };
    for (what, script, code) in [
        ("a full disk", "$lock >/dev/full", 1),
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
        assert_eq!(shell(script).await, (Some(code), 0), "{what}");
        let left: Vec<_> = files(&place)
            .into_iter()
            .filter(|name| name != "code")
            .collect();
        assert_eq!(left, [""; 0], "{what}");
    }
}
