//! A script whose reply is lost ran exactly once, and its caller hears "maybe".
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::time::Duration;

use common::{client, read_int, route};
use locktopus_protocol::{ClientError, RedisClient};
use locktopus_testbed::topology::TopologyKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const SCRIPT: &[u8] = b"redis.call('incr', KEYS[1]); return redis.call('rpush', KEYS[2], 'x')";

async fn runs_once_on(kind: TopologyKind) {
    let servers = common::servers(kind).await;
    let client = client(&servers).await;
    let key = "{lost}n";
    assert_eq!(read_int(&client, key).await, 0);
    let node = servers.primary_for(key).await.unwrap();
    // Opened in advance: a sleeping server accepts nobody.
    let mut killer = tokio::net::TcpStream::connect(node.addr()).await.unwrap();
    killer.write_all(b"PING\r\n").await.unwrap();
    let mut pong = [0; 7];
    killer.read_exact(&mut pong).await.unwrap();

    // The server sleeps; the script queues up, and the killing of its connection right behind it.
    let sleep = node.command(&["DEBUG", "SLEEP", "0.5"]);
    let script = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let words = [
            b"EVAL".as_slice(),
            SCRIPT,
            b"2",
            key.as_bytes(),
            b"{lost}list",
        ];
        client.command(route(key), &words).await
    };
    let kill = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        killer
            .write_all(b"CLIENT KILL TYPE normal\r\n")
            .await
            .unwrap();
    };
    let (_slept, outcome, ()) = tokio::join!(sleep, script, kill);
    assert!(
        matches!(outcome, Err(ClientError::MaybeExecuted(_))),
        "not lost: {outcome:?}"
    );
    common::until_ok(&client, key, &["PING"]).await;
    assert_eq!(read_int(&client, key).await, 1);
}

#[tokio::test]
async fn runs_once_on_standalone() {
    runs_once_on(TopologyKind::Standalone).await;
}

#[tokio::test]
async fn runs_once_on_sentinel() {
    runs_once_on(TopologyKind::SENTINEL).await;
}

#[tokio::test]
async fn runs_once_on_cluster() {
    runs_once_on(TopologyKind::CLUSTER).await;
}
