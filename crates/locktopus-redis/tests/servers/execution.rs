//! A command is written once, even if its answer is lost, and the client recovers.

use crate::common;

use std::net::SocketAddr;
use std::time::Duration;

use common::*;
use locktopus_protocol::backoff::SETTLED;
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{ClientError, RedisClient, Reply, Route};
use locktopus_redis::RedisRsClient;
use locktopus_servers::topology::{Knobs, TopologyKind};
use tokio::time::{Instant, sleep};

const COUNT: &str = "redis.call('RPUSH', KEYS[2], ARGV[1]); return redis.call('INCR', KEYS[1])";

/// The server runs the script, and the connection breaks before the answer is written.
async fn lost_reply(kind: TopologyKind) {
    // No failover while it is frozen, even on a busy machine.
    let knobs = Knobs {
        down_after_ms: 60_000,
        ..Knobs::default()
    };
    let servers = servers_with(kind, knobs).await;
    let client = client(&servers).await;
    let node = servers.primary_for("{k}").await.unwrap();
    // Connected in advance, so the server reads both commands in one round and cuts the connection
    // before it writes the answer.
    let killer = common::client(&servers).await;
    let (_, killers_addr) = connection(&killer).await;
    // After the killer's: the connection read last before a stop is read first after it.
    let (id, addr) = connection(&client).await;
    node.freeze().await.unwrap();
    let (answer, killed, ()) = tokio::join!(
        async {
            let args: [&[u8]; 6] = [b"EVAL", COUNT.as_bytes(), b"2", b"{k}:n", b"{k}:l", b"x"];
            client.command(Route::Slot(key_slot(b"k")), &args).await
        },
        async {
            node.wait_unread(addr, COUNT.len()).await.unwrap();
            let args: [&[u8]; 4] = [b"CLIENT", b"KILL", b"ID", id.as_bytes()];
            killer.command(Route::Slot(key_slot(b"k")), &args).await
        },
        async {
            let kill = "CLIENTKILLID".len() + id.len();
            node.wait_unread(killers_addr, kill).await.unwrap();
            node.thaw().await.unwrap();
        },
    );
    killed.unwrap();
    assert!(
        matches!(answer, Err(ClientError::MaybeExecuted(_))),
        "{answer:?}"
    );
    // A retry would arrive with the new connection, before later commands on it.
    let count = eventually("reading", async || {
        call(&client, "k", &["GET", "{k}:n"]).await
    })
    .await;
    assert_eq!(count, bytes("1"));
    assert_ne!(connection(&client).await.0, id);
    let length = call(&client, "k", &["LLEN", "{k}:l"]).await;
    assert_eq!(length, Ok(Reply::Int(1)));
}

/// The id of the connection for commands, and its address on the client's side.
async fn connection(client: &RedisRsClient) -> (String, SocketAddr) {
    let Ok(Reply::Bytes(info)) = call(client, "k", &["CLIENT", "INFO"]).await else {
        panic!("no connection")
    };
    let info = String::from_utf8(info.to_vec()).unwrap();
    let field = |name: &str| {
        let mut words = info.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)).unwrap()
    };
    (field("id=").to_owned(), field("addr=").parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_reply_standalone() {
    lost_reply(TopologyKind::Standalone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_reply_sentinel() {
    lost_reply(WATCHED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_reply_cluster() {
    lost_reply(SHARDS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_is_used_again_after_the_thaw() {
    let servers = servers(TopologyKind::Standalone).await;
    let client = client(&servers).await;
    call(&client, "k", &["SET", "k", "1"]).await.unwrap();
    servers.nodes()[0].freeze().await.unwrap();
    for _ in 0..3 {
        call(&client, "k", &["GET", "k"]).await.unwrap_err();
    }
    servers.nodes()[0].thaw().await.unwrap();
    let since = Instant::now();
    eventually("a command", async || {
        call(&client, "k", &["GET", "k"]).await
    })
    .await;
    assert!(
        since.elapsed() < Duration::from_secs(3),
        "{:?}",
        since.elapsed()
    );
}

/// Only callers of a frozen node wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_node_does_not_delay_other_slots() {
    let servers = servers(SHARDS).await;
    let client = client(&servers).await;
    let frozen = servers.primary_for("a").await.unwrap();
    let keys = ["b", "c", "d", "e", "f", "g", "h"];
    let mut alive = Vec::new();
    for key in keys {
        if servers.primary_for(key).await.unwrap().name() != frozen.name() {
            alive.push(key);
        }
    }
    assert!(!alive.is_empty());
    call(&client, "a", &["GET", "a"]).await.unwrap();
    frozen.freeze().await.unwrap();
    // Shorter than the time after which the whole cluster refuses service.
    let until = Instant::now() + Duration::from_millis(900);
    let (failures, slowest) = tokio::join!(
        async {
            let mut failures = 0;
            while Instant::now() < until {
                failures += usize::from(call(&client, "a", &["GET", "a"]).await.is_err());
            }
            failures
        },
        async {
            let mut slowest = Duration::ZERO;
            while Instant::now() < until {
                for key in &alive {
                    let since = Instant::now();
                    let answer = call(&client, key, &["GET", key]).await;
                    slowest = slowest.max(since.elapsed());
                    if Instant::now() < until {
                        assert_eq!(answer, Ok(Reply::Nil), "{key}");
                    }
                }
            }
            slowest
        }
    );
    frozen.thaw().await.unwrap();
    assert!(failures > 0);
    assert!(slowest < Duration::from_millis(300), "{slowest:?}");
    eventually("the thawed node", async || {
        call(&client, "a", &["GET", "a"]).await
    })
    .await;
}

async fn down_and_back(kind: TopologyKind) {
    let servers = servers(kind).await;
    let client = client(&servers).await;
    call(&client, "k", &["GET", "k"]).await.unwrap();
    let node = servers.primary_for("k").await.unwrap();
    node.crash().await.unwrap();
    let until = Instant::now() + Duration::from_secs(3);
    let mut last = Ok(Reply::Nil);
    while Instant::now() < until {
        last = call(&client, "k", &["GET", "k"]).await;
        sleep(Duration::from_millis(50)).await;
    }
    // A refused connection has certainly carried nothing.
    assert!(matches!(last, Err(ClientError::NotSent(_))), "{last:?}");
    node.start().await.unwrap();
    eventually("a command", async || {
        call(&client, "k", &["GET", "k"]).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_away_is_used_again_standalone() {
    down_and_back(TopologyKind::Standalone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_away_is_used_again_cluster() {
    down_and_back(SHARDS).await;
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
    assert!(client.take_events().is_some());
    assert!(client.take_events().is_none());
}
