//! A command is written once, even if its answer is lost, and the client recovers.

use std::net::SocketAddr;
use std::time::Duration;

use locktopus_protocol::{ClientError, RedisClient, Reply};
use locktopus_servers::topology::{Deployment, Knobs, Node, TopologyKind};
use tokio::time::{Instant, sleep, timeout};

use crate::common::*;

const COUNT: &str = "redis.call('RPUSH', KEYS[2], ARGV[1]); return redis.call('INCR', KEYS[1])";

/// The server runs the script, and the connection breaks before the answer is written.
async fn lost_reply(kind: TopologyKind) {
    // No failover while it is frozen, even on a busy machine.
    let knobs = Knobs {
        node_timeout_ms: 60_000,
        down_after_ms: 60_000,
        ..Knobs::default()
    };
    let servers = servers_with(kind, knobs).await;
    let client = client(&servers).await;
    let node = servers.primary_for("{k}").await.unwrap();
    // Connected in advance, so the server reads both commands in one round and cuts the connection
    // before it writes the answer.
    let killer = crate::common::client(&servers).await;
    let (_, killers_addr) = connection(&killer).await;
    // After the killer's: the connection read last before a stop is read first after it.
    let (id, addr) = connection(&client).await;
    node.freeze().await.unwrap();
    let (answer, killed, ()) = tokio::join!(
        async {
            let args: [&[u8]; 6] = [b"EVAL", COUNT.as_bytes(), b"2", b"{k}:n", b"{k}:l", b"x"];
            client.command(route("k"), &args).await
        },
        async {
            node.wait_unread(addr, COUNT.len()).await.unwrap();
            let args: [&[u8]; 4] = [b"CLIENT", b"KILL", b"ID", id.as_bytes()];
            killer.command(route("k"), &args).await
        },
        async {
            let kill = "CLIENTKILLID".len() + id.len();
            node.wait_unread(killers_addr, kill).await.unwrap();
            node.thaw().await.unwrap();
        },
    );
    killed.unwrap();
    let lost = matches!(answer, Err(ClientError::MaybeExecuted(_)));
    assert!(lost, "{answer:?}");
    // A retry would arrive with the new connection, before later commands on it.
    assert_eq!(number(&client, "{k}:n").await, 1);
    assert_ne!(connection(&client).await.0, id);
    let length = call(&client, "k", &["LLEN", "{k}:l"]).await;
    assert_eq!(length, Ok(Reply::Int(1)));
}

/// The id of the connection for commands, and its address on the client's side.
async fn connection(client: &Client) -> (String, SocketAddr) {
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

/// Each command that was sent to a frozen server runs at most once.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_costs_deadlines_and_nothing_else() {
    let servers = servers(TopologyKind::Standalone).await;
    let client = client(&servers).await;
    call(&client, "k", &["SET", "k", "0"]).await.unwrap();
    servers.nodes()[0].freeze().await.unwrap();
    // The silent connection is replaced, and then nothing is sent any more.
    let mut sent = 0;
    until("the connection is given up", async || {
        match call(&client, "k", &["INCR", "k"]).await {
            Err(ClientError::NotSent(_)) => return true,
            Err(ClientError::MaybeExecuted(_)) => sent += 1,
            other => panic!("{other:?}"),
        }
        false
    })
    .await;
    assert!(sent > 0, "the first one had left");
    servers.nodes()[0].thaw().await.unwrap();
    let since = Instant::now();
    until_ok(&client, "k", &["PING"]).await;
    let took = since.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
    let done = number(&client, "k").await;
    assert!(done <= sent, "{done} of {sent} that may have been sent");
}

/// Keys of slots that other nodes serve.
async fn live_keys(servers: &Deployment, victim: &Node) -> Vec<String> {
    let mut keys = Vec::new();
    for number in 1..30 {
        let key = format!("{{{number}}}");
        if servers.primary_for(&key).await.unwrap().addr() != victim.addr() {
            keys.push(key);
        }
    }
    keys
}

/// Only callers of a frozen or dead node wait.
#[tokio::test(flavor = "multi_thread")]
async fn live_slots_do_not_wait_for_a_dead_node() {
    for freeze in [false, true] {
        // Without replicas there is no failover, and the other slots stay in service.
        let knobs = Knobs {
            full_coverage: false,
            ..Knobs::default()
        };
        let servers = servers_with(SHARDS, knobs).await;
        let client = client(&servers).await;
        let victim = servers.primary_for("{0}").await.unwrap();
        let alive = live_keys(&servers, victim).await;
        for key in &alive {
            call(&client, key, &["SET", key, "0"]).await.unwrap();
        }
        call(&client, "{0}", &["GET", "{0}"]).await.unwrap();
        if freeze {
            victim.freeze().await.unwrap();
        } else {
            victim.crash().await.unwrap();
        }
        let (mut slowest, until) = (Duration::ZERO, Instant::now() + Duration::from_secs(3));
        while Instant::now() < until {
            // Keep calling the dead node.
            let dead = client.command(route("{0}"), &[b"GET", b"{0}"]);
            match timeout(Duration::from_millis(5), dead).await {
                Ok(answer) => assert!(answer.is_err(), "{answer:?}"),
                Err(_) => client.timed_out(route("{0}")),
            }
            for key in &alive {
                let since = Instant::now();
                call(&client, key, &["INCR", key]).await.unwrap();
                slowest = slowest.max(since.elapsed());
            }
        }
        assert!(
            slowest < Duration::from_millis(300),
            "{freeze}: {slowest:?}"
        );
        if freeze {
            victim.thaw().await.unwrap();
        } else {
            victim.start().await.unwrap();
        }
        until_ok(&client, "{0}", &["GET", "{0}"]).await;
    }
}

/// A server that was away is used again, and nothing that was given up on meanwhile runs late.
async fn down_and_back(kind: TopologyKind) {
    let knobs = Knobs {
        appendonly: true,
        ..Knobs::default()
    };
    let servers = servers_with(kind, knobs).await;
    let client = client(&servers).await;
    call(&client, "n", &["SET", "n", "0"]).await.unwrap();
    let node = servers.primary_for("n").await.unwrap();
    node.crash().await.unwrap();
    let until = Instant::now() + Duration::from_secs(3);
    let (mut tries, mut last) = (0, Ok(Reply::Nil));
    while Instant::now() < until {
        // Some are dropped while they wait, some are answered.
        let answer = client.command(route("n"), &[b"INCR", b"n"]);
        if let Ok(outcome) = timeout(Duration::from_millis(3 + tries % 60), answer).await {
            assert!(outcome.is_err(), "{outcome:?}");
            last = outcome;
            sleep(Duration::from_millis(tries % 50)).await;
        }
        tries += 1;
    }
    // A refused connection has certainly carried nothing.
    assert!(matches!(last, Err(ClientError::NotSent(_))), "{last:?}");
    if crate::CLIENT == "fred" && kind == TopologyKind::Standalone {
        let failure = client.ready().await.unwrap_err();
        assert!(matches!(failure, ClientError::NotSent(_)), "{failure}");
    }
    node.start().await.unwrap();
    let since = Instant::now();
    until_ok(&client, "n", &["PING"]).await;
    let took = since.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(number(&client, "n").await, 0, "a command came late");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_away_is_used_again_standalone() {
    down_and_back(TopologyKind::Standalone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_away_is_used_again_cluster() {
    down_and_back(SHARDS).await;
}
