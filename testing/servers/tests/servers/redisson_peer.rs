//! The Redisson process executes commands, on servers of every topology.
//!
//! Without a JDK, Maven or the downloads of Maven, these tests skip themselves and say so; in CI
//! that is a failure. Set `LOCKTOPUS_SKIP_JDK` to the reason why this machine has none.
#![cfg(unix)]

use std::time::{Duration, Instant};

use locktopus_servers::peers::redisson::{
    Jar, JavaThread, Redisson, RedissonError, Reply, jar_or_skip,
};
use locktopus_servers::topology::{Deployment, ProviderKind, Spec, TopologyKind, start};
use tokio::time::timeout;

const ONE_SENTINEL: TopologyKind = TopologyKind::Sentinel {
    replicas: 1,
    sentinels: 1,
};
/// Longest wait on a machine with other work.
const PATIENT: Duration = Duration::from_secs(60);
const SHARDS: TopologyKind = TopologyKind::Cluster {
    primaries: 3,
    replicas_each: 0,
};

async fn jar() -> Option<Jar> {
    let jar = jar_or_skip().await;
    jar.unwrap_or_else(|error| panic!("{error}"))
}

async fn servers(kind: TopologyKind) -> Deployment {
    match start(ProviderKind::Plain, &Spec::new(kind)).await {
        Ok(deployment) => deployment,
        Err(error) => panic!("{kind}: {error}"),
    }
}

/// Sends a command, in words separated by spaces, and compares the answer.
async fn expect(thread: &mut JavaThread, command: &str, reply: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    let begun = Instant::now();
    loop {
        let found = match thread.ask(&words).await.unwrap() {
            Reply::Done => "ok".to_owned(),
            Reply::Value(value) => value,
            Reply::No => "no".to_owned(),
            Reply::Threw { class, .. } => class,
        };
        // Redisson subscribes within the same limit before it waits; if that took longer, it proves
        // nothing about the lock.
        let busy = reply == "no" && found == "RedisTimeoutException";
        if !busy || begun.elapsed() > PATIENT {
            assert_eq!(found, reply, "{command}");
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_object_on_one_server() {
    let Some(jar) = jar().await else { return };
    let place = servers(TopologyKind::Standalone).await;
    let java = Redisson::start(&jar, &place.url()).await.unwrap();
    assert!(java.version().starts_with("4."), "{}", java.version());
    assert_eq!(jar.version().await.unwrap(), java.version());
    let (mut one, mut other) = (java.thread(), java.thread());

    for object in ["lock", "fair", "spin", "write"] {
        let say = |verb: &str| format!("{object} {verb} {object}-name");
        expect(&mut one, &format!("{} 60000", say("lock")), "ok").await;
        expect(&mut one, &format!("{} 0 60000", say("try")), "ok").await;
        expect(&mut one, &say("hold-count"), "2").await;
        expect(&mut one, &say("unlock"), "ok").await;
        expect(&mut other, &say("is-mine"), "no").await;
        expect(&mut other, &say("is-locked"), "ok").await;
        expect(&mut other, &format!("{} 20", say("try")), "no").await;
        expect(&mut other, &say("unlock"), "IllegalMonitorStateException").await;
        let name = format!("{object}-name");
        let left = one.ask(&[object, "remaining", &name]).await.unwrap();
        assert!(left.number().unwrap() > 10_000, "{left:?}");
        expect(&mut other, &say("force-unlock"), "ok").await;
        expect(&mut other, &say("is-locked"), "no").await;
    }
    for thread in [&mut one, &mut other] {
        expect(thread, "read lock shared", "ok").await;
    }
    expect(&mut one, "write try shared", "no").await;
    expect(&mut one, "fenced lock fence", "1").await;
    expect(&mut other, "fenced try fence", "no").await;
    expect(&mut one, "fenced unlock fence", "ok").await;
    expect(&mut other, "fenced try fence 0 1000", "2").await;

    expect(&mut one, "semaphore set seats 3", "ok").await;
    expect(&mut one, "semaphore set seats 4", "no").await;
    expect(&mut one, "semaphore acquire seats 2", "ok").await;
    expect(&mut one, "semaphore try seats 2", "no").await;
    expect(&mut one, "semaphore try seats 2 10", "no").await;
    expect(&mut one, "semaphore release seats 1", "ok").await;
    expect(&mut one, "semaphore available seats", "2").await;

    expect(&mut one, "permits set pool 1", "ok").await;
    let permit = one.ask(&["permits", "acquire", "pool", "60000"]).await;
    let Reply::Value(id) = permit.unwrap() else {
        panic!("a permit has an id");
    };
    expect(&mut one, "permits try pool 10 1000", "no").await;
    expect(&mut one, &format!("permits extend pool {id} 70000"), "ok").await;
    expect(&mut one, &format!("permits release pool {id}"), "ok").await;
    expect(&mut one, &format!("permits release pool {id}"), "no").await;
    expect(&mut one, "permits available pool", "1").await;

    expect(&mut one, "latch set gate 2", "ok").await;
    expect(&mut one, "latch await gate 10", "no").await;
    other.tell(&["latch", "await", "gate"]).await.unwrap();
    expect(&mut one, "latch count-down gate", "ok").await;
    expect(&mut one, "latch count gate", "1").await;
    expect(&mut one, "latch count-down gate", "ok").await;
    assert_eq!(other.reply().await.unwrap(), Reply::Done);

    expect(&mut one, "lock juggle balls", "IllegalArgumentException").await;
    expect(&mut one, "sword draw excalibur", "IllegalArgumentException").await;
    expect(&mut one, "lock unlock", "IllegalArgumentException").await;
    java.exit().await.unwrap();
    place.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_wait_side_by_side() {
    let Some(jar) = jar().await else { return };
    let place = servers(TopologyKind::Standalone).await;
    let java = Redisson::start(&jar, &place.url()).await.unwrap();
    let (mut holder, mut waiter, mut last) = (java.thread(), java.thread(), java.thread());
    // A name that would break up if it were not escaped.
    let name = "Zürich %20+ {x}\nT1 ok";
    // Not the fair lock: Redisson's own queue may keep an interrupted waiter.
    let lock = ["lock", "lock", name, "60000"];
    assert_eq!(holder.ask(&lock).await.unwrap(), Reply::Done);
    waiter.tell(&lock).await.unwrap();
    last.tell(&lock).await.unwrap();
    // Its own commands run one after another; those of other threads do not wait.
    last.tell(&["self", "owner"]).await.unwrap();
    let owner = holder.ask(&["self", "owner"]).await.unwrap();
    assert!(
        matches!(&owner, Reply::Value(id) if id.starts_with(java.client_id())),
        "{owner:?}"
    );
    let early = timeout(Duration::from_millis(200), last.reply()).await;
    assert!(early.is_err(), "{early:?}");

    waiter.interrupt().await.unwrap();
    let interrupted = waiter.reply().await.unwrap();
    // Redisson wraps it if the thread was waiting for an answer of the server.
    assert!(
        matches!(&interrupted, Reply::Threw { class, message }
            if class == "InterruptedException" || message.contains("InterruptedException")),
        "{interrupted:?}"
    );
    let unlocked = holder.ask(&["lock", "unlock", name]).await.unwrap();
    assert_eq!(unlocked, Reply::Done);
    assert_eq!(last.reply().await.unwrap(), Reply::Done);
    assert!(matches!(last.reply().await.unwrap(), Reply::Value(_)));

    java.kill().await.unwrap();
    let gone = last.reply().await.unwrap_err();
    assert!(matches!(gone, RedissonError::Gone), "{gone}");
    place.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_topologies_and_bad_urls() {
    let Some(jar) = jar().await else { return };
    for kind in [ONE_SENTINEL, SHARDS] {
        let place = servers(kind).await;
        let java = Redisson::start(&jar, &place.url()).await;
        let java = java.unwrap_or_else(|error| panic!("{kind}: {error}"));
        let mut thread = java.thread();
        expect(&mut thread, "lock lock here 60000", "ok").await;
        let found = place.primary_for("here").await.unwrap();
        let held = found.command(&["EXISTS", "here"]).await;
        assert_eq!(format!("{:?}", held.unwrap()), "Int(1)", "{kind}");
        expect(&mut thread, "lock unlock here", "ok").await;
        java.exit().await.unwrap();
        place.stop().await.unwrap();
    }
    for (url, named) in [
        ("redis://127.0.0.1:1", "127.0.0.1"),
        ("redis://h/?safety=quarantine", "safety"),
        ("memory:", "memory"),
        (
            "redis://:s3cret@127.0.0.1:1/x",
            "no number of a database: x",
        ),
    ] {
        let error = Redisson::start(&jar, url).await.unwrap_err().to_string();
        assert!(
            error.contains(named) && !error.contains("s3cret"),
            "{error}"
        );
    }
}
