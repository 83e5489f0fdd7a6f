//! The Redisson process executes commands. `redisson_topology` of the suite uses every object.
//!
//! Without a JDK, Maven or the downloads of Maven, these tests skip themselves and say so; in CI
//! that is a failure. Set `LOCKTOPUS_SKIP_JDK` to the reason why this machine has none.
#![cfg(unix)]

use std::time::Duration;

use locktopus_servers::peers::redisson::{Jar, Redisson, RedissonError, Reply, jar_or_skip};
use locktopus_servers::topology::{Deployment, ProviderKind, Spec, TopologyKind, start};
use tokio::time::timeout;

const ONE_SENTINEL: TopologyKind = TopologyKind::Sentinel {
    replicas: 1,
    sentinels: 1,
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_wait_side_by_side() {
    let Some(jar) = jar().await else { return };
    let place = servers(TopologyKind::Standalone).await;
    let java = Redisson::start(&jar, &place.url()).await.unwrap();
    assert_eq!(jar.version().await.unwrap(), java.version());
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
async fn a_sentinel_and_bad_urls() {
    let Some(jar) = jar().await else { return };
    let place = servers(ONE_SENTINEL).await;
    let java = Redisson::start(&jar, &place.url()).await.unwrap();
    let mut thread = java.thread();
    let lock = ["lock", "lock", "here", "60000"];
    assert_eq!(thread.ask(&lock).await.unwrap(), Reply::Done);
    let found = place.primary_for("here").await.unwrap();
    let held = found.command(&["EXISTS", "here"]).await.unwrap();
    assert_eq!(held.text(), "1");
    let juggle = thread.ask(&["lock", "juggle", "balls"]).await.unwrap();
    assert!(
        matches!(&juggle, Reply::Threw { class, .. } if class == "IllegalArgumentException"),
        "{juggle:?}"
    );
    java.exit().await.unwrap();
    place.stop().await.unwrap();
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
