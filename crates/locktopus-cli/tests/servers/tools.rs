//! Inspecting, counting and breaking locks, and `doctor`.

use std::time::Duration;

use crate::usual::{Place, finished, signal, words};

#[tokio::test]
async fn ls_shows_what_is_held() {
    let place = Place::new().await;
    let kinds = [
        ("job:1", "lock"),
        ("job:2", "fair_lock"),
        ("job:3", "mutex"),
    ];
    for (name, kind) in kinds.into_iter().chain([("other", "write_lock")]) {
        place
            .does(&format!("-q lock {name} --lease 60s --kind {kind}"))
            .await;
    }
    let ran = place.does("ls job:*").await;
    for (name, kind) in kinds {
        let line = ran.out.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.contains(kind) && line.contains("owner#"), "{line}");
        // The kind is detected.
        let status = place.ran(&["-q", "status", name]).await.ok().out;
        assert!(
            status.starts_with(&format!("{kind} \"{name}\" is held")),
            "{status}"
        );
    }
    assert!(!ran.out.contains("other"), "{}", ran.out);
    assert!(
        ran.err
            .contains("not listed: mutexes that other libraries keep"),
        "{}",
        ran.err
    );
    let json = place.does("-q --format json ls").await.out;
    assert_eq!(json.matches("\"held\":true").count(), 4, "{json}");
    assert!(json.contains("\"unseen\":"), "{json}");
}

#[tokio::test]
async fn names_are_without_the_namespace() {
    let place = Place::new().await;
    let url = format!("{}&namespace=app:", place.url());
    let of_app = |arguments: &[&str]| {
        let arguments = [&["-q", "--url", &url], arguments].concat();
        let command = place.bare(&arguments);
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
    let place = Place::new().await;
    let sent = words("SET nightly 0123456789abcdef0123456789abcdef PX 60000");
    place.node().command(&sent).await.unwrap();
    let blind = place.ran(&["-q", "status", "nightly"]).await;
    assert_eq!(blind.code, 1);
    assert!(blind.err.contains("--profile"), "{blind:?}");
    let seen = place.does("-q status nightly --profile redis-py").await;
    assert!(seen.out.contains("is held"), "{seen:?}");
    let arguments = words("-q run --name nightly --profile redis-py --wait 0s -- true");
    assert_eq!(place.ran(&arguments).await.code, 75);
}

#[tokio::test]
async fn latches_are_counted_and_waited_for() {
    let place = Place::new().await;
    let count = async |arguments: &[&str]| {
        let arguments = [&["-q", "latch"], arguments].concat();
        place.ran(&arguments).await.ok().out
    };
    assert_eq!(count(&["set", "shards", "2"]).await, "2\n");
    let late = place
        .ran(&["-q", "latch", "wait", "shards", "--wait", "50ms"])
        .await;
    assert_eq!(late.code, 75, "{late:?}");
    assert!(place.does("-q status shards").await.out.contains("2 left"));
    let waiting = place
        .command(&["-q", "latch", "wait", "shards"])
        .spawn()
        .unwrap();
    assert_eq!(count(&["down", "shards"]).await, "1\n");
    assert_eq!(count(&["down", "shards"]).await, "0\n");
    finished(waiting).await.ok();
}

#[tokio::test]
async fn permits_are_shared_out() {
    let place = Place::new().await;
    place.does("-q semaphore init workers 2").await;
    let again = place.does("semaphore init workers 9").await;
    assert_eq!(again.out, "2\n");
    assert!(again.err.contains("nothing was changed"), "{again:?}");
    for (name, permits, said) in [
        ("workers", "3", "2 permits in all, and 3"),
        ("nobody", "1", "never set, or was lost"),
    ] {
        let asked = ["--name", name, "--kind", "semaphore", "--permits", permits];
        let refused = [&["run"][..], &asked, &["--", "true"]].concat();
        let refused = place.ran(&refused).await;
        assert!(refused.code != 0 && refused.code != 75, "{refused:?}");
        assert!(
            refused.err.contains(said) && refused.err.contains("locktopus semaphore"),
            "{refused:?}"
        );
    }
    let two = ["--name", "workers", "--kind", "semaphore", "--permits", "2"];
    let holder = place.script(&two, "echo $$ >pid; exec sleep 60");
    place.pid("pid").await;
    let free = place.does("-q semaphore show workers").await.out;
    assert_eq!(free, "0\n");
    let one = words("-q run --name workers --kind semaphore --wait 0s -- true");
    assert_eq!(place.ran(&one).await.code, 75);
    let broken = place.does("-q break workers --reason test").await;
    assert!(broken.out.contains("no fencing tokens"), "{broken:?}");
    place.ran(&one).await.ok();
    signal("TERM", holder.id().unwrap()).await;
    finished(holder).await;
}

#[tokio::test]
async fn what_a_rate_limiter_gave_out_is_shown_and_taken_back() {
    let place = Place::new().await;
    let locks = locktopus::connect(place.url()).await.unwrap();
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
        let ran = place.does(line).await;
        assert!(ran.out.contains(said), "{line}: {ran:?}");
    }
    assert_eq!(limiter.available().await.unwrap(), Some(3));
    let run = words("-q run --name mails --kind rate_limiter -- true");
    let ran = place.ran(&run).await;
    let said = "--kind rate_limiter \"mails\": nobody holds a rate_limiter";
    assert!(ran.code != 0 && ran.err.contains(said), "{ran:?}");
}

#[tokio::test]
async fn watch_tells_changes() {
    let place = Place::new().await;
    place.does("-q lock a --lease 1s").await;
    let ran = place.does("-q watch a --interval 20ms --until-free").await;
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!(lines.len(), 2, "{ran:?}");
    assert!(
        lines[0].contains("held by owner#") && lines[1].contains("free"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn the_doctor_finds_what_loses_locks() {
    let place = Place::new().await;
    let healthy = place.does("doctor").await;
    assert!(healthy.out.contains("answers    within "), "{healthy:?}");
    let sent = words("CONFIG SET maxmemory-policy allkeys-lru maxmemory 100mb");
    place.node().command(&sent).await.unwrap();
    let sick = place.ran(&["doctor"]).await;
    assert_eq!(sick.code, 1, "{sick:?}");
    assert!(sick.out.contains("danger [eviction]"), "{sick:?}");
}

#[tokio::test]
async fn what_java_left_is_seen_and_broken() {
    let place = Place::new().await;
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
        place.node().command(words).await.unwrap();
    }
    // Its queue shows that it is a fair lock.
    let seen = place.does("-q status slow").await;
    assert!(
        seen.out.starts_with("fair_lock \"slow\" is held"),
        "{seen:?}"
    );
    assert!(seen.out.contains("never expires"), "{seen:?}");
    assert!(seen.out.contains("waiting 1: owner#"), "{seen:?}");
    let broken = place
        .ran(&["-q", "break", "slow", "--reason", "no end"])
        .await
        .ok();
    assert!(
        broken.out.contains("a lease that never expires"),
        "{broken:?}"
    );
    // Its waiter is dead and does not block others for long.
    place
        .does("-q run --name slow --kind fair_lock --wait 20s -- true")
        .await;
}
