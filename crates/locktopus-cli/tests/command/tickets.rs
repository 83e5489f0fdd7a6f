//! Locks of scripts: a ticket from one command to the next.

use std::os::unix::fs::PermissionsExt as _;

use crate::usual::{Place, ended};

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
    let status = place.ran(&["-q", "status", "a"]).await.ok().out;
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
    let lock = [
        "-q",
        "lock",
        "a",
        "--lease",
        "30s",
        "--kind",
        "mutex",
        "--ticket-file",
        path,
    ];
    let said = place.ran(&lock).await.ok().out;
    said.trim().parse::<u64>().expect("the fencing token");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let again = place.ran(&lock).await;
    assert_eq!(
        again.code, 1,
        "the file is there, and no lock was waited for: {again:?}"
    );
    let unlock = [
        "-q",
        "unlock",
        "a",
        "--kind",
        "mutex",
        "--ticket-file",
        path,
    ];
    place.ran(&unlock).await.ok();
    assert!(!file.exists());
    place.free("a").await;
}

#[tokio::test]
async fn a_busy_lock_leaves_no_file() {
    let place = Place::new().await;
    place.ran(&["-q", "lock", "a", "--lease", "30s"]).await.ok();
    let arguments = [
        "-q",
        "lock",
        "a",
        "--lease",
        "30s",
        "--wait",
        "0s",
        "--ticket-file",
        "t",
    ];
    assert_eq!(place.ran(&arguments).await.code, 75);
    assert!(!place.room().join("t").exists());
}
