//! The primary changes after a crash, a freeze or a migration: commands find the new one, and
//! messages arrive again.

use std::time::Duration;

use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{ChannelFlavour, ClientError, RedisClient, Reply};
use locktopus_servers::topology::{Knobs, Node, TopologyKind};
use tokio::time::{Instant, sleep};

use ChannelFlavour::{Plain, Sharded};

use crate::common::*;

#[derive(Clone, Copy, PartialEq)]
enum Harm {
    Crash,
    Freeze,
    /// A demotion without a broken connection: the old primary answers, with `READONLY`.
    Order,
}

async fn promotion(kind: TopologyKind, flavour: ChannelFlavour, harm: Harm) {
    let servers = servers(kind).await;
    let client = client(&servers).await;
    let mut events = client.take_events().unwrap();
    let channels = [channel("{k}ch", flavour)];
    client.subscribe(&channels).await.unwrap();
    call(&client, "k", &["SET", "k", "1"]).await.unwrap();
    let old = servers.primary_for("k").await.unwrap();
    match harm {
        Harm::Crash => old.crash().await.unwrap(),
        Harm::Freeze => old.freeze().await.unwrap(),
        Harm::Order => {
            let order = ["SENTINEL", "FAILOVER", servers.master_name()];
            servers.sentinels()[0].command(&order).await.unwrap();
        }
    }
    until("a write on another primary", async || {
        let written = call(&client, "k", &["SET", "k", "2"]).await;
        let now = servers.primary_for("k").await;
        written.is_ok() && now.is_ok_and(|now| now.name() != old.name())
    })
    .await;
    assert_eq!(call(&client, "k", &["GET", "k"]).await, Ok(bytes("2")));
    // The change leaves no errors behind.
    for _ in 0..50 {
        call(&client, "k", &["GET", "k"]).await.unwrap();
    }
    disrupted(&mut events).await;
    subscribe_again(&client, &channels).await;
    all_heard(&client, &mut events, &channels).await;
    if harm == Harm::Freeze {
        // The old primary wakes up, not knowing that it was replaced.
        old.thaw().await.unwrap();
        until_ok(&client, "k", &["SET", "k", "3"]).await;
        assert_eq!(number(&client, "k").await, 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinel_crash() {
    promotion(TopologyKind::SENTINEL, Plain, Harm::Crash).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinel_freeze() {
    promotion(TopologyKind::SENTINEL, Plain, Harm::Freeze).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinel_orderly_failover() {
    promotion(TopologyKind::SENTINEL, Plain, Harm::Order).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_crash() {
    promotion(TopologyKind::CLUSTER, Sharded, Harm::Crash).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_freeze() {
    promotion(TopologyKind::CLUSTER, Sharded, Harm::Freeze).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_channels_leave_a_dead_cluster_node() {
    promotion(TopologyKind::CLUSTER, Plain, Harm::Crash).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_answer_ends_the_connection() {
    let servers = servers(TopologyKind::Standalone).await;
    let client = client(&servers).await;
    let node = &servers.nodes()[0];
    let id = call(&client, "k", &["CLIENT", "ID"]).await.unwrap();
    // A replica that answers, although its primary does not exist.
    let nobody = ["REPLICAOF", "127.0.0.1", "1"];
    node.command(&nobody).await.unwrap();
    let refused = call(&client, "k", &["SET", "k", "1"]).await;
    assert!(
        matches!(&refused, Err(ClientError::Rejected { code, .. }) if code == "READONLY"),
        "{refused:?}"
    );
    node.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    until_ok(&client, "k", &["SET", "k", "1"]).await;
    assert_ne!(call(&client, "k", &["CLIENT", "ID"]).await.unwrap(), id);
}

/// During a migration the client follows `ASK`; afterwards it follows `MOVED` and updates its map.
#[tokio::test(flavor = "multi_thread")]
async fn slots_migrate_under_traffic() {
    let servers = servers(SHARDS).await;
    let client = client(&servers).await;
    let slot = key_slot(b"k");
    let from = servers.primary_for("k").await.unwrap();
    let mut others = servers.nodes().iter();
    let to = others.find(|node| node.name() != from.name()).unwrap();
    call(&client, "k", &["SET", "{k}stays", "1"]).await.unwrap();

    begin_migration(from, to, slot).await;
    let say = async |words: &[&str]| call(&client, "k", words).await;
    // The key is missing on the old node, so the new one answers.
    assert_eq!(say(&["SET", "k", "new"]).await, Ok(bytes("OK")));
    assert_eq!(say(&["GET", "k"]).await, Ok(bytes("new")));
    assert_eq!(say(&["GET", "{k}stays"]).await, Ok(bytes("1")));
    // A script over an existing and a missing key can run on neither node.
    let both = say(&["EVAL", "return 1", "2", "{k}stays", "{k}none"]).await;
    assert!(
        matches!(&both, Err(ClientError::Rejected { code, .. }) if code == "TRYAGAIN"),
        "{both:?}"
    );
    let port = to.addr().port().to_string();
    let migrate = ["MIGRATE", "127.0.0.1", &port, "{k}stays", "0", "5000"];
    from.command(&migrate).await.unwrap();
    end_migration(&servers, from, to, slot).await;

    // The first call is redirected, not refused; afterwards the map is right.
    assert_eq!(say(&["GET", "{k}stays"]).await, Ok(bytes("1")));
    let refused = async || errors(from, "MOVED").await;
    until("calls without redirects", async || {
        let before = refused().await;
        say(&["GET", "k"]).await.unwrap();
        refused().await == before
    })
    .await;
}

async fn errors(node: &Node, code: &str) -> String {
    let counted = node.info("errorstats", &format!("errorstat_{code}")).await;
    counted.unwrap().unwrap_or_default()
}

/// All connections break at once, and all are replaced.
#[tokio::test(flavor = "multi_thread")]
async fn all_connections_of_a_cluster_are_cut() {
    let servers = servers(SHARDS).await;
    let client = client(&servers).await;
    for round in 0..3 {
        let since = Instant::now();
        for key in ["a", "b", "c", "d", "e", "f"] {
            until_ok(&client, key, &["GET", key]).await;
        }
        let took = since.elapsed();
        assert!(took < Duration::from_secs(2), "round {round}: {took:?}");
        for node in servers.nodes() {
            let kill = ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"];
            node.command(&kill).await.unwrap();
        }
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
    assert_eq!(number(&client, "k").await, 1);
}

/// While a shard is missing, the others refuse, and the refusal keeps its code.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_down_says_so() {
    let servers = servers(SHARDS).await;
    let client = client(&servers).await;
    let victim = servers.primary_for("a").await.unwrap();
    let mut key = String::new();
    for other in ["b", "c", "d", "e", "f"] {
        if servers.primary_for(other).await.unwrap().name() != victim.name() {
            key = other.to_owned();
        }
    }
    victim.crash().await.unwrap();
    until("a refusal", async || {
        let outcome = call(&client, &key, &["INCR", &key]).await;
        matches!(outcome, Err(ClientError::Rejected { code, .. }) if code == "CLUSTERDOWN")
    })
    .await;
    victim.start().await.unwrap();
    until_ok(&client, &key, &["SET", &key, "1"]).await;
}
