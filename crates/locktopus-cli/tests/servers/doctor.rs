//! `doctor` lists all its findings, even if the server refuses some commands.

use crate::usual::{TestBed, ended, words};

/// Runs the doctor as a user with these rights.
async fn doctor(bed: &TestBed, rights: &[&str]) -> crate::usual::Ran {
    let user = [&["ACL", "SETUSER", "few", "reset", "on", ">s3cret"], rights].concat();
    bed.node().command(&user).await.unwrap();
    let url = bed.url().replacen("://", "://few:s3cret@", 1);
    let joint = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{joint}checks=refuse");
    ended(bed.bare(&["--url", &url, "doctor"])).await
}

#[tokio::test]
async fn a_refused_info_is_not_a_silent_server() {
    let bed = TestBed::new().await;
    let ran = doctor(&bed, &["~*", "&*", "+@all", "-info"]).await.ok();
    let said = format!("{ran:?}");
    assert!(ran.out.contains("note [permission]"), "{said}");
    assert!(ran.out.contains("could not be checked"), "{said}");
    assert!(!said.contains("does not answer"), "{said}");
}

#[tokio::test]
async fn all_that_is_missing_is_listed_at_once() {
    let bed = TestBed::new().await;
    let missing = ["-info", "-hset", "-zadd", "-publish", "-persist"];
    let rights = [&["~*", "&*", "+@all"], &missing[..]].concat();
    let ran = doctor(&bed, &rights).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    let lists = |what: &str| ran.out.lines().any(|line| line.contains(what));
    assert!(lists("lacks, for locks: +hset +zadd +publish"), "{ran:?}");
    assert!(lists("lacks, for guarded writes: +persist"), "{ran:?}");
    assert!(lists("INFO is refused"), "{ran:?}");
    assert!(lists("locktopus doctor --acl"), "{ran:?}");
    // Every step of the probe fails for this one right. Output and log name it once.
    let user = words("ACL SETUSER few reset on >s3cret ~* &* +@all -evalsha");
    bed.node().command(&user).await.unwrap();
    let url = bed.url().replacen("://", "://few:s3cret@", 1);
    let ran = ended(bed.bare(&["--url", &url, "ls"])).await;
    let errors: Vec<_> = ran
        .err
        .lines()
        .filter(|line| line.starts_with("ERROR"))
        .collect();
    let [error] = errors[..] else {
        panic!("{ran:?}");
    };
    for what in [
        "+evalsha",
        "taking a lock, extending a lock",
        "releasing a lock",
    ] {
        assert!(error.contains(what), "{what}: {error}");
    }
    // Inspecting a lock fails too, and the list is still complete.
    let ran = doctor(&bed, &["~*", "&*", "+@all", "-evalsha", "-info"]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    for what in ["+evalsha", "INFO is refused", "could not be measured"] {
        assert!(ran.out.contains(what), "{what}: {ran:?}");
    }
}

/// With each of these the server answers every question and grants nothing.
#[tokio::test]
async fn servers_that_grant_nothing_are_a_danger() {
    let bed = TestBed::new().await;
    for (setting, value, usual) in [("maxmemory", "1", "0"), ("min-replicas-to-write", "3", "0")] {
        let set = async |value| bed.node().command(&["CONFIG", "SET", setting, value]).await;
        set(value).await.unwrap();
        let ran = bed.ran(&["doctor"]).await;
        set(usual).await.unwrap();
        let lines: Vec<_> = ran
            .out
            .lines()
            .filter(|line| line.contains("[probe]"))
            .collect();
        let is_danger = |line: &&str| line.starts_with("danger [probe] taking a lock failed");
        assert!(
            ran.code == 1 && lines.iter().any(is_danger),
            "{setting}: {ran:?}"
        );
        bed.does("doctor").await;
    }
}

#[tokio::test]
async fn missing_persistence_is_found() {
    let bed = TestBed::new().await;
    let forgetful = bed.does("doctor").await;
    assert!(
        forgetful.out.contains("warning [persistence]"),
        "{forgetful:?}"
    );
    assert!(forgetful.out.contains("appendonly"), "{forgetful:?}");
    let with_quarantine = format!("{}&safety=quarantine", bed.url());
    let url = if bed.url().contains('?') {
        with_quarantine
    } else {
        with_quarantine.replacen('&', "?", 1)
    };
    let quarantined = ended(bed.bare(&["--url", &url, "doctor"])).await.ok();
    assert!(
        !quarantined.out.contains("[persistence]"),
        "{quarantined:?}"
    );
    let words = ["CONFIG", "SET", "appendonly", "yes"];
    bed.node().command(&words).await.unwrap();
    let lasting = bed.does("doctor").await;
    assert!(!lasting.out.contains("[persistence]"), "{lasting:?}");
}

/// The line that `doctor --acl` prints makes a user that may take every kind of lock.
#[tokio::test]
async fn the_acl_line_is_enough() {
    let bed = TestBed::new().await;
    let url = format!("{}&namespace=shop:", bed.url());
    let acl = async |more: &[&str]| {
        let arguments = [&["--url", &url, "doctor", "--acl"], more].concat();
        ended(bed.bare(&arguments)).await.ok()
    };
    let printed = acl(&[]).await;
    assert!(printed.err.contains("into redis-cli"), "{printed:?}");
    let line = printed.out.trim_end();
    assert_eq!(line.lines().count(), 1, "{printed:?}");
    bed.node().command(&words(line)).await.unwrap();
    let explained = acl(&["--explain"]).await.out;
    assert!(explained.contains("| fair locks |"), "{explained}");

    let url = url.replacen("://", "://locks:PASSWORD@", 1);
    let ran = async |line: &str| {
        let arguments = [&["--url", &url], &words(line)[..]].concat();
        ended(bed.bare(&arguments)).await.ok()
    };
    let healthy = ran("doctor").await;
    assert!(!healthy.out.contains("permission"), "{healthy:?}");
    ran("semaphore init semaphore 2").await;
    ran("semaphore init --with-ids permit_semaphore 2").await;
    ran("latch set latch 1").await;
    ran("latch down latch").await;
    for kind in [
        "lock",
        "mutex",
        "fair_lock",
        "read_lock",
        "write_lock",
        "semaphore",
        "permit_semaphore",
    ] {
        ran(&format!("run {kind} --kind {kind} --label x -- true")).await;
    }
    ran("-q ls").await;
}

/// The commands print each reason once, and identify quorum nodes by address.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_nodes_of_a_quorum_is_said_once() {
    let bed = TestBed::new().await;
    let nodes = [1, 2, 3].map(|port| format!("redis://127.0.0.1:{port}?client=fred"));
    let urls = nodes.iter().flat_map(|url| ["--url", url]);
    for command in [&["doctor"][..], &["status", "job", "--kind", "mutex"]] {
        let words: Vec<_> = urls.clone().chain(command.iter().copied()).collect();
        let ran = ended(bed.bare(&words)).await;
        let lines = ran.out.lines().chain(ran.err.lines());
        let mut said = 0;
        for line in lines.filter(|line| !line.starts_with("backend")) {
            let reasons = line.matches("Connection refused").count();
            assert!(
                reasons < 2,
                "nodes with the same reason are told together: {line}"
            );
            said += reasons;
            let twice = |port: &u16| line.matches(&format!("127.0.0.1:{port}")).count() > 2;
            assert!(![1, 2, 3].iter().any(twice), "{line}");
        }
        assert_ne!(ran.code, 0, "no node answers: {ran:?}");
        assert!(
            said >= 1 && !ran.out.contains('?') && !ran.err.contains('?'),
            "{ran:?}"
        );
    }
}
