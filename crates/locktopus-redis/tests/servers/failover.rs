//! The primary changes after a crash, a freeze or a migration, and commands find the new one.

use crate::common;

use std::time::Duration;

use common::*;
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{RedisClient, Reply};
use locktopus_servers::topology::{Deployment, Knobs, TopologyKind};
use tokio::time::{Instant, sleep};

/// Writes until a write succeeds again, and checks that the promoted server has it.
async fn recovers(servers: &Deployment, client: &locktopus_redis::RedisRsClient, old: &str) {
    eventually("a write after the fail-over", async || {
        let written = call(client, "k", &["SET", "k", "2"])
            .await
            .map_err(|error| error.to_string())?;
        // A frozen old primary may have been thawed. Only the new one counts.
        let now = servers
            .primary_for("k")
            .await
            .map_err(|error| error.to_string())?;
        if now.name() == old {
            Err("the old primary is still in charge".to_owned())
        } else {
            Ok(written)
        }
    })
    .await;
    let now = servers.primary_for("k").await.unwrap();
    assert_ne!(now.name(), old);
    assert_eq!(call(client, "k", &["GET", "k"]).await, Ok(bytes("2")));
    // The change leaves no errors behind.
    for _ in 0..50 {
        call(client, "k", &["GET", "k"]).await.unwrap();
    }
}

async fn crash(kind: TopologyKind) {
    let servers = servers(kind).await;
    let client = client(&servers).await;
    call(&client, "k", &["SET", "k", "1"]).await.unwrap();
    let old = servers.primary_for("k").await.unwrap();
    old.crash().await.unwrap();
    recovers(&servers, &client, old.name()).await;
}

async fn freeze(kind: TopologyKind) {
    let servers = servers(kind).await;
    let client = client(&servers).await;
    call(&client, "k", &["SET", "k", "1"]).await.unwrap();
    let old = servers.primary_for("k").await.unwrap();
    old.freeze().await.unwrap();
    recovers(&servers, &client, old.name()).await;
    // The old primary wakes up, not knowing that it was replaced.
    old.thaw().await.unwrap();
    eventually("a write after the thaw", async || {
        call(&client, "k", &["SET", "k", "3"]).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinel_crash() {
    crash(TopologyKind::SENTINEL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinel_freeze() {
    freeze(TopologyKind::SENTINEL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_crash() {
    crash(TopologyKind::CLUSTER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_freeze() {
    freeze(TopologyKind::CLUSTER).await;
}

/// A demotion without a broken connection: the old primary keeps answering, with `READONLY`.
#[tokio::test(flavor = "multi_thread")]
async fn sentinel_orderly_failover() {
    let servers = servers(TopologyKind::SENTINEL).await;
    let client = client(&servers).await;
    call(&client, "k", &["SET", "k", "1"]).await.unwrap();
    let old = servers.primary().await.unwrap();
    servers.sentinels()[0]
        .command(&["SENTINEL", "FAILOVER", servers.master_name()])
        .await
        .unwrap();
    recovers(&servers, &client, old.name()).await;
}

/// Dead and frozen sentinels are skipped.
#[tokio::test(flavor = "multi_thread")]
async fn dead_sentinels_are_passed_over() {
    let servers = servers(TopologyKind::SENTINEL).await;
    servers.sentinels()[0].crash().await.unwrap();
    servers.sentinels()[1].freeze().await.unwrap();
    let client = client(&servers).await;
    assert_eq!(call(&client, "k", &["GET", "k"]).await, Ok(Reply::Nil));
}

/// During a migration the client follows `ASK`; afterwards it follows `MOVED` and updates its map.
#[tokio::test(flavor = "multi_thread")]
async fn slots_migrate_under_traffic() {
    let servers = servers(SHARDS).await;
    let client = client(&servers).await;
    let slot = key_slot(b"k");
    let from = servers.primary_for("k").await.unwrap();
    let to = servers
        .nodes()
        .iter()
        .find(|node| node.name() != from.name())
        .unwrap();
    call(&client, "k", &["SET", "{k}stays", "1"]).await.unwrap();

    begin_migration(from, to, slot).await;
    // The key is missing on the old node, so the new one answers.
    assert_eq!(
        call(&client, "k", &["SET", "k", "new"]).await,
        Ok(bytes("OK"))
    );
    assert_eq!(call(&client, "k", &["GET", "k"]).await, Ok(bytes("new")));
    assert_eq!(
        call(&client, "k", &["GET", "{k}stays"]).await,
        Ok(bytes("1"))
    );
    let port = to.addr().port().to_string();
    let migrate = ["MIGRATE", "127.0.0.1", &port, "{k}stays", "0", "5000"];
    from.command(&migrate).await.unwrap();
    end_migration(&servers, from, to, slot).await;

    // The first call is redirected, not refused; afterwards the map is right.
    assert_eq!(
        call(&client, "k", &["GET", "{k}stays"]).await,
        Ok(bytes("1"))
    );
    let refused = async || errors(from, "MOVED").await;
    eventually("calls without redirects", async || {
        let before = refused().await;
        call(&client, "k", &["GET", "k"])
            .await
            .map_err(|error| error.to_string())?;
        let after = refused().await;
        if after == before {
            Ok(())
        } else {
            Err(format!("{before} -> {after}"))
        }
    })
    .await;
}

/// All connections break at once, and all are replaced.
#[tokio::test(flavor = "multi_thread")]
async fn all_connections_of_a_cluster_are_cut() {
    let servers = servers(SHARDS).await;
    let client = client(&servers).await;
    let keys = ["a", "b", "c", "d", "e", "f"];
    for round in 0..3 {
        for key in keys {
            eventually("a command", async || {
                call(&client, key, &["GET", key]).await
            })
            .await;
        }
        for node in servers.nodes() {
            node.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
                .await
                .unwrap();
        }
        let since = Instant::now();
        for key in keys {
            eventually("a command", async || {
                call(&client, key, &["GET", key]).await
            })
            .await;
        }
        assert!(
            since.elapsed() < Duration::from_secs(2),
            "round {round}: {:?}",
            since.elapsed()
        );
    }
}

/// After a restart of the whole cluster the client works as before.
#[tokio::test(flavor = "multi_thread")]
async fn a_whole_cluster_restarts() {
    let knobs = Knobs {
        appendonly: true,
        ..Knobs::default()
    };
    let servers = servers_with(SHARDS, knobs).await;
    let client = client(&servers).await;
    call(&client, "k", &["SET", "k", "1"]).await.unwrap();
    for node in servers.nodes() {
        node.crash().await.unwrap();
    }
    for _ in 0..20 {
        call(&client, "k", &["GET", "k"]).await.unwrap_err();
        sleep(Duration::from_millis(20)).await;
    }
    for node in servers.nodes() {
        node.start().await.unwrap();
    }
    assert_eq!(
        eventually("a command", async || call(&client, "k", &["GET", "k"])
            .await)
        .await,
        bytes("1")
    );
    client.close().await;
}

async fn errors(node: &locktopus_servers::topology::Node, code: &str) -> String {
    let counted = node
        .info("errorstats", &format!("errorstat_{code}"))
        .await
        .unwrap();
    counted.unwrap_or_default()
}
