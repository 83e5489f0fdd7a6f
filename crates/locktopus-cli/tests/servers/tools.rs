//! Inspecting, counting and breaking locks, and `doctor`.

use std::time::Duration;

use locktopus_servers::topology::Resp;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::usual::{TestBed, ended, finished, signal, words};

#[tokio::test]
async fn ls_shows_what_is_held() {
    let bed = TestBed::new().await;
    let kinds = [
        ("job:1", "lock"),
        ("job:2", "fair_lock"),
        ("job:3", "mutex"),
    ];
    for (name, kind) in kinds.into_iter().chain([("other", "write_lock")]) {
        bed.does(&format!("-q lock {name} --lease 60s --kind {kind}"))
            .await;
    }
    let ran = bed.does("ls job:*").await;
    for (name, kind) in kinds {
        let line = ran.out.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.contains(kind) && line.contains("owner#"), "{line}");
        // The kind is detected.
        let status = bed.ran(&["-q", "status", name]).await.ok().out;
        assert!(
            status.starts_with(&format!("{kind} \"{name}\" is held")),
            "{status}"
        );
    }
    assert!(!ran.out.contains("other"), "{}", ran.out);
    assert_eq!(ran.err, "");
    let none = bed.does("ls none:*").await.err;
    assert!(none.contains("not listed: mutexes that other"), "{none}");
    let json = bed.does("-q --format json ls").await.out;
    assert_eq!(json.matches("\"held\":true").count(), 4, "{json}");
    assert!(json.contains("\"unseen\":"), "{json}");
}

#[tokio::test]
async fn names_are_without_the_namespace() {
    let bed = TestBed::new().await;
    let url = format!("{}&namespace=app:", bed.url());
    let of_app = |arguments: &[&str]| {
        let arguments = [&["-q", "--url", &url], arguments].concat();
        let command = bed.bare(&arguments);
        async { crate::usual::ended(command).await.ok().out }
    };
    of_app(&["lock", "job", "--lease", "60s"]).await;
    let listed = of_app(&["ls", "j*"]).await;
    assert!(
        listed.lines().any(|line| line.starts_with("job ")),
        "{listed}"
    );
    assert!(of_app(&["status", "job"]).await.contains("is held"));
}

#[tokio::test]
async fn another_librarys_mutex_is_seen_with_its_profile() {
    let bed = TestBed::new().await;
    let sent = words("SET nightly 0123456789abcdef0123456789abcdef PX 60000");
    bed.node().command(&sent).await.unwrap();
    let blind = bed.ran(&["-q", "status", "nightly"]).await;
    assert_eq!(blind.code, 1);
    assert!(blind.err.contains("--profile"), "{blind:?}");
    let seen = bed.does("-q status nightly --profile redis-py").await;
    assert!(seen.out.contains("is held"), "{seen:?}");
    let arguments = words("-q run --name nightly --profile redis-py --wait 0s -- true");
    assert_eq!(bed.ran(&arguments).await.code, 75);
}

#[tokio::test]
async fn latches_are_counted_and_waited_for() {
    let bed = TestBed::new().await;
    let count = async |arguments: &[&str]| {
        let arguments = [&["-q", "latch"], arguments].concat();
        bed.ran(&arguments).await.ok().out
    };
    assert_eq!(count(&["set", "shards", "2"]).await, "2\n");
    let late = bed
        .ran(&["-q", "latch", "wait", "shards", "--wait", "50ms"])
        .await;
    assert_eq!(late.code, 75, "{late:?}");
    assert!(bed.does("-q status shards").await.out.contains("2 left"));
    let waiting = bed
        .command(&["-q", "latch", "wait", "shards"])
        .spawn()
        .unwrap();
    assert_eq!(count(&["down", "shards"]).await, "1\n");
    assert_eq!(count(&["down", "shards"]).await, "0\n");
    finished(waiting).await.ok();
}

#[tokio::test]
async fn permits_are_shared_out() {
    let bed = TestBed::new().await;
    bed.does("-q semaphore init workers 2").await;
    let again = bed.does("semaphore init workers 9").await;
    assert_eq!(again.out, "2\n");
    assert!(again.err.contains("nothing was changed"), "{again:?}");
    for (name, permits, said) in [
        ("workers", "3", "2 permits in all, and 3"),
        ("nobody", "1", "never set, or was lost"),
    ] {
        let asked = ["--name", name, "--kind", "semaphore", "--permits", permits];
        let refused = [&["run"][..], &asked, &["--", "true"]].concat();
        let refused = bed.ran(&refused).await;
        assert!(refused.code != 0 && refused.code != 75, "{refused:?}");
        assert!(
            refused.err.contains(said) && refused.err.contains("locktopus semaphore"),
            "{refused:?}"
        );
    }
    let two = ["--name", "workers", "--kind", "semaphore", "--permits", "2"];
    let holder = bed.script(&two, "echo $$ >pid; exec sleep 60");
    bed.pid("pid").await;
    let free = bed.does("-q semaphore show workers").await.out;
    assert_eq!(free, "0\n");
    let one = words("-q run --name workers --kind semaphore --wait 0s -- true");
    assert_eq!(bed.ran(&one).await.code, 75);
    let broken = bed.does("-q break workers --reason test").await;
    assert!(broken.out.contains("no fencing tokens"), "{broken:?}");
    bed.ran(&one).await.ok();
    signal("TERM", holder.id().unwrap()).await;
    finished(holder).await;
}

#[tokio::test]
async fn what_a_rate_limiter_gave_out_is_shown_and_taken_back() {
    let bed = TestBed::new().await;
    let locks = locktopus::connect(bed.url()).await.unwrap();
    let limiter = locks.rate_limiter("mails");
    let per = Duration::from_secs(600);
    limiter.initialise(3, per).await.unwrap();
    limiter.acquire_many(2).await.unwrap();
    let broken = "-q break mails --reason test";
    for (line, said) in [
        ("-q status mails", "rate_limiter \"mails\" is held"),
        ("-q status mails --kind rate_limiter", "free permits 1"),
        ("-q ls", "rate_limiter"),
        (broken, "rate_limiter \"mails\" was taken away from "),
        (broken, "rate_limiter \"mails\" was not held"),
    ] {
        let ran = bed.does(line).await;
        assert!(ran.out.contains(said), "{line}: {ran:?}");
    }
    assert_eq!(limiter.available().await.unwrap(), Some(3));
    let run = words("-q run --name mails --kind rate_limiter -- true");
    let ran = bed.ran(&run).await;
    let said = "--kind rate_limiter \"mails\": nobody holds a rate_limiter";
    assert!(ran.code != 0 && ran.err.contains(said), "{ran:?}");
}

#[tokio::test]
async fn watch_tells_how_a_hold_ended_and_when() {
    let bed = TestBed::new().await;
    let cases = [
        ("", "the lease of owner#"),
        ("-q break a --reason stuck", "lost it by break: \"stuck\""),
        ("-q unlock a --ticket-file ticket", "released it"),
    ];
    for (ends, said) in cases {
        bed.does("-q lock a --ticket-file ticket --lease 60s").await;
        let watch = words("-q watch a --interval 20ms --until-free");
        let mut watch = bed.command(&watch).spawn().unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
        let mut next = async || lines.next_line().await.unwrap().unwrap();
        let held = next().await;
        assert!(held.contains("  held by owner#"), "{held}");
        if ends.is_empty() {
            let expire = words("PEXPIRE a 3000");
            bed.node().command(&expire).await.unwrap();
        } else {
            bed.does(ends).await;
        }
        let free = next().await;
        assert!(
            free.contains("  free, 0 waiting") && free.contains(said),
            "{free}"
        );
        let clock = |line: &str| humantime::parse_rfc3339(line.split("  ").next().unwrap());
        assert!(
            clock(&held).unwrap() <= clock(&free).unwrap(),
            "{held}\n{free}"
        );
        assert!(
            clock(&free).unwrap().elapsed().unwrap() < crate::usual::SOON,
            "{free}"
        );
        finished(watch).await.ok();
    }
}

/// A Java thread has one owner id for all its locks, and for each time that it takes one.
#[tokio::test]
async fn watch_tells_of_a_break_only_for_the_hold_that_it_ended() {
    let bed = TestBed::new().await;
    let takes = async |name: &'static str| {
        let lock = ["HSET", name, "8743c9c0-0795-4907-87fd-6c719a6b4586:47", "1"];
        bed.node().command(&lock).await.unwrap();
        name
    };
    let permit = words("ZADD {ps}:timeout 99999999999999 0123456789abcdef");
    takes("a").await;
    bed.does("-q break a --reason stuck").await;
    bed.node().command(&["SET", "ps", "1"]).await.unwrap();
    bed.node().command(&permit).await.unwrap();
    for (name, breaks, said) in [
        // Without its permits nothing tells its kind.
        ("{ps}:timeout", None, "  free, 0 waiting"),
        ("b", None, "ended"),
        ("a", None, "released it"),
        (
            "a",
            Some("-q break a --reason again"),
            "lost it by break: \"again\"",
        ),
    ] {
        let watched = match name {
            "{ps}:timeout" => "ps",
            name => takes(name).await,
        };
        let watch = ["-q", "watch", watched, "--interval", "20ms", "--until-free"];
        let mut watch = bed.command(&watch).spawn().unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
        lines.next_line().await.unwrap().expect("the first poll");
        match breaks {
            Some(line) => drop(bed.does(line).await),
            None => drop(bed.node().command(&["DEL", name]).await.unwrap()),
        }
        let free = lines.next_line().await.unwrap().unwrap();
        assert!(free.contains(said), "{name}: {free}");
        finished(watch).await.ok();
    }
}

/// A server that restarts empty forgets the lock and its last token.
#[tokio::test]
async fn watch_tells_that_the_servers_lost_a_lock() {
    let bed = TestBed::new().await;
    bed.does("-q lock a --lease 60s").await;
    let watch = words("-q watch a --interval 20ms --until-free");
    let mut watch = bed.command(&watch).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap().expect("the first poll");
    bed.node().command(&["FLUSHALL"]).await.unwrap();
    let free = lines.next_line().await.unwrap().unwrap();
    assert!(free.contains("the servers lost it"), "{free}");
    finished(watch).await.ok();
}

#[tokio::test]
async fn the_doctor_finds_what_loses_locks() {
    let bed = TestBed::new().await;
    let healthy = bed.does("doctor").await;
    assert!(healthy.out.contains("answers    within "), "{healthy:?}");
    let java = words("HSET n 8743c9c0-0795-4907-87fd-6c719a6b4586:47 1");
    bed.node().command(&java).await.unwrap();
    let sharing = bed.does("doctor").await.out;
    let advice = "such as \"n\"; keep the namespace empty";
    assert!(sharing.contains(advice), "{sharing}");
    assert!(!sharing.contains("set a namespace"), "{sharing}");
    let sent = words("CONFIG SET maxmemory-policy allkeys-lru maxmemory 100mb");
    bed.node().command(&sent).await.unwrap();
    let sick = bed.ran(&["doctor"]).await;
    assert_eq!(sick.code, 1, "{sick:?}");
    assert!(sick.out.contains("danger [eviction]"), "{sick:?}");
}

#[tokio::test]
async fn what_java_left_is_seen_and_broken() {
    let bed = TestBed::new().await;
    let waiter = "11111111-0795-4907-87fd-6c719a6b4586:9";
    let far = "99999999999999";
    for words in [
        &[
            "HSET",
            "slow",
            "8743c9c0-0795-4907-87fd-6c719a6b4586:47",
            "1",
        ][..],
        &["RPUSH", "redisson_lock_queue:{slow}", waiter],
        &["ZADD", "redisson_lock_timeout:{slow}", far, waiter],
    ] {
        bed.node().command(words).await.unwrap();
    }
    let (long, java) = ("n".repeat(5000), "8743c9c0-0795-4907-87fd-6c719a6b4586:47");
    for name in ["{n}", "redisson_x:{y}", &long] {
        let lock = ["HSET", name, java, "1"];
        bed.node().command(&lock).await.unwrap();
    }
    let listed = bed.does("ls").await;
    assert!(listed.out.contains("slow "), "{listed:?}");
    let told = listed
        .err
        .contains("left out: 3 names that Locktopus cannot use: \"nnn")
        && listed.err.contains("\"...")
        && listed.err.contains(", \"redisson_x:{y}\", \"{n}\"");
    assert!(told, "{listed:?}");
    // Permits on record tell the kind of a number. Nothing tells that of a bare one.
    for line in ["SET ps 1", "SET stock 2"] {
        bed.node().command(&words(line)).await.unwrap();
    }
    let permit = ["ZADD", "{ps}:timeout", far, "0123456789abcdef"];
    bed.node().command(&permit).await.unwrap();
    for (line, said) in [
        ("-q status ps", "permit_semaphore \"ps\" is held"),
        ("-q status stock", "or latch), value 2; kind unknown"),
        ("-q status stock --kind semaphore", "free permits 2"),
        ("-q break ps --reason test", "taken away from owner#"),
        ("-q status ps", "or latch), value 2; kind unknown"),
    ] {
        let ran = bed.does(line).await;
        assert!(ran.out.contains(said), "{line}: {ran:?}");
    }
    let unknown = bed.ran(&words("-q break stock --reason test")).await;
    assert!(
        unknown.code == 2 && unknown.err.contains("kind unknown"),
        "{unknown:?}"
    );
    // A writer that also reads has two holds, and is named once.
    let both = format!("HSET both mode write {java}:write 1 {java} 1");
    bed.node().command(&words(&both)).await.unwrap();
    let broken = bed.does("-q break both --reason test").await.out;
    // Once as the loser, and once with its lease.
    assert_eq!(broken.matches("owner#").count(), 2, "{broken}");
    // Its queue shows that it is a fair lock.
    let seen = bed.does("-q status slow").await;
    assert!(
        seen.out.starts_with("fair_lock \"slow\" is held"),
        "{seen:?}"
    );
    assert!(seen.out.contains("never expires"), "{seen:?}");
    assert!(seen.out.contains("waiting 1: owner#"), "{seen:?}");
    let broken = bed
        .ran(&["-q", "break", "slow", "--reason", "no end"])
        .await
        .ok();
    assert!(
        broken.out.contains("a lease that never expires"),
        "{broken:?}"
    );
    // Its waiter is dead and does not block others for long.
    bed.does("-q run --name slow --kind fair_lock --wait 20s -- true")
        .await;
}

/// The lock may have passed to someone else since the holder was seen.
#[tokio::test]
async fn only_the_holder_that_was_meant_loses_its_lock() {
    let bed = TestBed::new().await;
    let holders = async |name: &str| {
        let state = bed.does(&format!("-q status {name}")).await.out;
        let found = state.split("held by ").skip(1);
        let found: Vec<_> = found.map(|found| found[..14].to_owned()).collect();
        found
    };
    let breaks = async |name: &str, owner: &str| {
        let line = ["-q", "break", name, "--owner", owner, "--reason", "hangs"];
        bed.ran(&line).await
    };
    let ticket = bed.does("-q lock a --lease 60s").await.out;
    let owner = holders("a").await.remove(0);
    let other = breaks("a", "owner#00000000").await;
    assert_eq!(other.code, 75, "{other:?}");
    assert!(
        other.err.contains(&format!("is held by {owner}")),
        "{other:?}"
    );
    let broken = breaks("a", &owner).await.ok().out;
    assert!(
        broken.contains(&format!("taken away from {owner}")),
        "{broken}"
    );
    assert!(broken.contains("fencing tokens up to"), "{broken}");
    let late = breaks("a", &owner).await;
    assert_eq!(late.code, 75, "{late:?}");
    assert!(late.err.contains("it is free"), "{late:?}");
    let mut unlock = bed.command(&["-q", "unlock", "a"]);
    unlock.env("LOCKTOPUS_TICKET", ticket.trim());
    let lost = ended(unlock).await;
    assert_eq!(lost.code, 76, "{lost:?}");
    assert!(lost.err.contains("by force (hangs)"), "{lost:?}");
    for _ in 0..2 {
        bed.does("-q lock rw --lease 60s --kind read_lock").await;
    }
    let readers = holders("rw").await;
    let line = "--format json break rw --reason hangs --owner";
    let broken = bed.does(&format!("{line} {}", &readers[0][6..])).await;
    let evicted = format!("\"evicted\":[\"{}\"]", readers[0]);
    assert!(broken.out.contains(&evicted), "{broken:?}");
    let logged =
        "{\"level\":\"WARN\",\"message\":\"lock released by force lock=read_lock \\\"rw\\\"";
    assert!(broken.err.starts_with(logged), "{broken:?}");
    assert_eq!(holders("rw").await, readers[1..]);
    // The first of two holds of a Java thread has expired.
    let java = "8743c9c0-0795-4907-87fd-6c719a6b4586:47";
    let second = format!("SET {{java}}:{java}:rwlock_timeout:2 1 PX 60000");
    for line in [&*format!("HSET java mode read {java} 2"), &second] {
        bed.node().command(&words(line)).await.unwrap();
    }
    let reader = holders("java").await.remove(0);
    breaks("java", &reader).await.ok();
    let left = bed.node().command(&words("KEYS *java*")).await.unwrap();
    assert_eq!(left, Resp::Array(Vec::new()));
}

#[tokio::test]
async fn breaking_what_nobody_holds_leaves_nothing_behind() {
    let bed = TestBed::new().await;
    let ran = bed.does("break nobodys --reason test").await;
    assert_eq!(ran.out, "lock \"nobodys\" was not held\n");
    let keys = bed.node().command(&["KEYS", "*nobodys*"]).await.unwrap();
    assert_eq!(keys, Resp::Array(Vec::new()));
}
