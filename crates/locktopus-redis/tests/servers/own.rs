//! What is true of redis-rs alone.

use std::time::Duration;

use locktopus_protocol::backoff::SETTLED;
use locktopus_protocol::{ChannelFlavour, ConnectOptions, Reply, Servers};
use locktopus_redis::ConnectError;
use locktopus_servers::topology::TopologyKind;
use tokio::time::sleep;

use crate::common::*;

#[tokio::test]
async fn impossible_options_are_refused_with_a_reason() {
    let nobody = |servers| async { connect(&ConnectOptions::new(servers)).await };
    let error = nobody(Servers::Cluster(Vec::new())).await.unwrap_err();
    let problem = "no cluster node is given: name at least one";
    assert_eq!(error, ConnectError::invalid("servers", problem));

    let servers = servers(TopologyKind::Standalone).await;
    let node = address(&servers.nodes()[0]);
    let mut options = ConnectOptions::new(Servers::Cluster(vec![node.clone()]));
    let error = connect(&options).await.unwrap_err().to_string();
    assert!(error.contains("cluster support disabled"), "{error}");
    options.database = 2;
    let error = connect(&options).await.unwrap_err();
    let problem = "a cluster has only database 0";
    assert_eq!(error, ConnectError::invalid("database", problem));

    let sentinels = Servers::Sentinel {
        sentinels: vec![node.clone()],
        master_name: "m".to_owned(),
    };
    let error = nobody(sentinels).await.unwrap_err().to_string();
    assert!(error.contains(&node.to_string()), "{error}");

    drop(servers);
    let error = nobody(Servers::Standalone(node.clone()))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&node.to_string()) && error.contains("refused"),
        "{error}"
    );
}

/// A connection that dies while idle costs no caller an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_lost_in_silence_is_replaced_before_the_next_command() {
    let servers = servers(TopologyKind::Standalone).await;
    let client = client(&servers).await;
    let node = &servers.nodes()[0];
    for _ in 0..4 {
        // Short-lived connections are replaced slowly.
        sleep(SETTLED).await;
        let Ok(Reply::Int(id)) = call(&client, "k", &["CLIENT", "ID"]).await else {
            panic!("no id")
        };
        node.command(&["CLIENT", "KILL", "ID", &id.to_string()])
            .await
            .unwrap();
        // Let the loopback deliver the end of the connection.
        sleep(Duration::from_millis(50)).await;
    }
}

/// Callers of a dead server share one attempt to connect, and all get its result.
#[tokio::test(flavor = "multi_thread")]
async fn callers_share_an_attempt_to_connect() {
    let servers = servers(TopologyKind::Standalone).await;
    let client = client(&servers).await;
    let node = &servers.nodes()[0];
    let accepted = async || -> u64 {
        node.info("stats", "total_connections_received")
            .await
            .unwrap()
            .unwrap()
            .parse()
            .unwrap()
    };
    node.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
        .await
        .unwrap();
    sleep(Duration::from_millis(50)).await;
    let before = accepted().await;
    let calls = (0..64).map(|_| call(&client, "k", &["PING"]));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer, Ok(bytes("PONG")));
    }
    // One of them is the connection that asks.
    assert_eq!(accepted().await - before, 2);
}

/// Plain channels are subscribed on the node of their slot.
#[tokio::test(flavor = "multi_thread")]
async fn migrated_plain() {
    crate::subscriptions::migrated(ChannelFlavour::Plain).await;
}
