//! Servers that die, freeze and come back.

use crate::common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{Hub, call, client, eventually, read_int, route, servers, until_ok};
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{ChannelFlavour, ClientError, RedisClient, Route};
use locktopus_servers::topology::{Deployment, Knobs, Node, Spec, TopologyKind};

/// Kills the primary. Commands and subscriptions must work again on the new one.
async fn promotion(kind: TopologyKind, flavour: ChannelFlavour, freeze: bool) {
    let servers = servers(kind).await;
    let key = "{fail}n";
    let name = "{fail}channel".to_owned();
    let hub = Hub::new(client(&servers).await, flavour, std::slice::from_ref(&name)).await;
    assert!(call(&hub.client, key, &["SET", key, "1"]).await.is_ok());
    let primary = servers.primary_for(key).await.unwrap();
    let begin = Instant::now();
    if freeze {
        primary.freeze().await.unwrap();
    } else {
        primary.crash().await.unwrap();
    }
    let (_, took) = until_ok(&hub.client, key, &["SET", key, "2"]).await;
    println!("{kind:?}, freeze {freeze}: commands work again after {took:?}");
    let verb = if flavour == ChannelFlavour::Plain {
        "PUBLISH"
    } else {
        "SPUBLISH"
    };
    eventually("messages arrive again", async || {
        let _maybe = call(&hub.client, key, &[verb, &name, "after"]).await;
        hub.count(&name, "after") > 0
    })
    .await;
    println!("messages arrive again after {:?}", begin.elapsed());
    if freeze {
        primary.thaw().await.unwrap();
    }
    assert_eq!(read_int(&hub.client, key).await, 2);
}

#[tokio::test]
async fn sentinel_promotes_after_a_crash() {
    promotion(TopologyKind::SENTINEL, ChannelFlavour::Plain, false).await;
}

#[tokio::test]
async fn sentinel_promotes_after_a_freeze() {
    promotion(TopologyKind::SENTINEL, ChannelFlavour::Plain, true).await;
}

#[tokio::test]
async fn cluster_promotes_after_a_crash() {
    promotion(TopologyKind::CLUSTER, ChannelFlavour::Sharded, false).await;
}

#[tokio::test]
async fn cluster_promotes_after_a_freeze() {
    promotion(TopologyKind::CLUSTER, ChannelFlavour::Sharded, true).await;
}

#[tokio::test]
async fn plain_channels_leave_a_dead_cluster_node() {
    promotion(TopologyKind::CLUSTER, ChannelFlavour::Plain, false).await;
}

#[tokio::test]
async fn a_frozen_server_costs_deadlines_and_nothing_else() {
    let servers = servers(TopologyKind::Standalone).await;
    let client = client(&servers).await;
    let node = &servers.nodes()[0];
    assert!(call(&client, "k", &["SET", "k", "1"]).await.is_ok());
    node.freeze().await.unwrap();
    // The silent connection is replaced, and then nothing is sent any more.
    let sent = AtomicU32::new(0);
    eventually("the connection is given up", async || {
        let answer = call(&client, "k", &["INCR", "k"]).await;
        if matches!(answer, Err(ClientError::MaybeExecuted(_))) {
            sent.fetch_add(1, Ordering::Relaxed);
        }
        matches!(answer, Err(ClientError::NotSent(_)))
    })
    .await;
    let sent = i64::from(sent.into_inner());
    assert!(sent > 0, "the first one had left");
    node.thaw().await.unwrap();
    let (_, took) = until_ok(&client, "k", &["PING"]).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    let done = read_int(&client, "k").await - 1;
    assert!(
        done <= sent,
        "{done} were done of {sent} that may have been sent"
    );
}

#[tokio::test]
async fn a_server_that_was_down_is_found_again() {
    let servers = servers(TopologyKind::Standalone).await;
    let client = client(&servers).await;
    let node = &servers.nodes()[0];
    node.crash().await.unwrap();
    let down = Instant::now();
    while down.elapsed() < Duration::from_secs(3) {
        let failure = call(&client, "k", &["PING"]).await.unwrap_err();
        assert!(
            !matches!(failure, ClientError::Rejected { .. }),
            "{failure}"
        );
    }
    node.start().await.unwrap();
    let (_, took) = until_ok(&client, "k", &["PING"]).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn a_primary_that_is_demoted_in_order_is_left() {
    let servers = servers(TopologyKind::SENTINEL).await;
    let client = client(&servers).await;
    assert!(call(&client, "k", &["SET", "k", "1"]).await.is_ok());
    let old = servers.primary().await.unwrap();
    let order = ["SENTINEL", "FAILOVER", servers.master_name()];
    servers.sentinels()[0].command(&order).await.unwrap();
    eventually("another primary", async || {
        servers
            .primary()
            .await
            .is_ok_and(|now| now.addr() != old.addr())
    })
    .await;
    until_ok(&client, "k", &["SET", "k", "2"]).await;
    assert_eq!(read_int(&client, "k").await, 2);
}

#[tokio::test]
async fn a_read_only_answer_ends_the_connection() {
    let servers = servers(TopologyKind::Standalone).await;
    let client = client(&servers).await;
    let node = &servers.nodes()[0];
    let id = call(&client, "k", &["CLIENT", "ID"]).await.unwrap();
    // A replica that answers, although its primary does not exist.
    node.command(&["REPLICAOF", "127.0.0.1", "1"])
        .await
        .unwrap();
    let refused = call(&client, "k", &["SET", "k", "1"]).await;
    let refused_as = |code: &str| match &refused {
        Err(ClientError::Rejected { code: got, .. }) => got == code,
        _ => false,
    };
    assert!(refused_as("READONLY"), "{refused:?}");
    node.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    until_ok(&client, "k", &["SET", "k", "1"]).await;
    assert_ne!(call(&client, "k", &["CLIENT", "ID"]).await.unwrap(), id);
}

#[tokio::test]
async fn a_cluster_that_is_down_says_so() {
    let kind = TopologyKind::Cluster {
        primaries: 3,
        replicas_each: 0,
    };
    let servers = servers(kind).await;
    let client = client(&servers).await;
    let victim = servers.primary_for("{0}").await.unwrap();
    let key = live_keys(&servers, victim).await.remove(0);
    victim.crash().await.unwrap();
    eventually("the refusal keeps its code", async || {
        let outcome = call(&client, &key, &["INCR", &key]).await;
        matches!(outcome, Err(ClientError::Rejected { code, .. }) if code == "CLUSTERDOWN")
    })
    .await;
    victim.start().await.unwrap();
    until_ok(&client, &key, &["PING"]).await;
    until_ok(&client, &key, &["SET", &key, "1"]).await;
}

/// With a new client, which has no connection yet that shows a server is up.
#[tokio::test]
async fn what_any_node_can_answer_is_asked_of_one_that_is_there() {
    let kind = TopologyKind::Cluster {
        primaries: 3,
        replicas_each: 0,
    };
    let servers = servers(kind).await;
    for victim in servers.nodes() {
        victim.crash().await.unwrap();
        let client = client(&servers).await;
        let answer = client.command(Route::Any, &[b"PING"]).await;
        assert!(answer.is_ok(), "without {}: {answer:?}", victim.addr());
        victim.start().await.unwrap();
    }
}

/// The longest time that live slots went unanswered after harm to another node.
async fn longest_wait(servers: &Deployment, freeze: bool) -> Duration {
    let client = client(servers).await;
    let victim = servers.primary_for("{0}").await.unwrap();
    let survivors = live_keys(servers, victim).await;
    for key in &survivors {
        call(&client, key, &["SET", key, "0"]).await.unwrap();
    }
    if freeze {
        victim.freeze().await.unwrap();
    } else {
        victim.crash().await.unwrap();
    }
    let mut longest = Duration::ZERO;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3) {
        // Keep calling the dead node.
        let dead = client.command(route("{0}"), &[b"GET", b"{0}"]);
        if tokio::time::timeout(Duration::from_millis(5), dead)
            .await
            .is_err()
        {
            client.timed_out(route("{0}"));
        }
        for key in &survivors {
            let sent = Instant::now();
            call(&client, key, &["INCR", key]).await.unwrap();
            longest = longest.max(sent.elapsed());
        }
    }
    if freeze {
        victim.thaw().await.unwrap();
    }
    longest
}

async fn live_keys(servers: &Deployment, victim: &Node) -> Vec<String> {
    let mut keys = Vec::new();
    for number in 1..30 {
        let key = format!("{{{number}}}");
        if servers
            .primary_for_slot(key_slot(key.as_bytes()))
            .await
            .unwrap()
            .addr()
            != victim.addr()
        {
            keys.push(key);
        }
    }
    keys
}

#[tokio::test]
async fn live_slots_do_not_wait_for_a_dead_node() {
    for freeze in [false, true] {
        // Without replicas there is no failover, and the other slots stay in service.
        let knobs = Knobs {
            full_coverage: false,
            ..Knobs::default()
        };
        let kind = TopologyKind::Cluster {
            primaries: 3,
            replicas_each: 0,
        };
        let servers = common::start(Spec::new(kind).with_knobs(knobs)).await;
        let longest = longest_wait(&servers, freeze).await;
        println!("freeze {freeze}: the longest wait of a live slot was {longest:?}");
        assert!(
            longest < Duration::from_millis(300),
            "freeze {freeze}: {longest:?}"
        );
    }
}
