//! A script whose reply is lost ran exactly once, and its caller gets "maybe".

use crate::common;

use std::net::SocketAddr;

use common::{call, client, read_int, route};
use locktopus_fred::FredClient;
use locktopus_protocol::{ClientError, RedisClient, Reply};
use locktopus_servers::topology::{Knobs, Spec, TopologyKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const KILL: &[u8] = b"CLIENT KILL TYPE normal\r\n";

const SCRIPT: &[u8] = b"redis.call('incr', KEYS[1]); return redis.call('rpush', KEYS[2], 'x')";

async fn runs_once_on(kind: TopologyKind) {
    // No failover while it is frozen, even on a busy machine.
    let knobs = Knobs {
        node_timeout_ms: 60_000,
        down_after_ms: 60_000,
        ..Knobs::default()
    };
    let servers = common::start(Spec::new(kind).with_knobs(knobs)).await;
    let client = client(&servers).await;
    let key = "{lost}n";
    assert_eq!(read_int(&client, key).await, 0);
    let node = servers.primary_for(key).await.unwrap();
    // Opened in advance: a frozen server accepts no connection.
    let mut killer = tokio::net::TcpStream::connect(node.addr()).await.unwrap();
    killer.write_all(b"PING\r\n").await.unwrap();
    let mut pong = [0; 7];
    killer.read_exact(&mut pong).await.unwrap();

    let killers = killer.local_addr().unwrap();
    let ours = address(&client, key).await;
    node.freeze().await.unwrap();
    // The script is queued, followed by the command that kills its connection.
    let script = async {
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
        node.wait_unread(ours, SCRIPT.len()).await.unwrap();
        killer.write_all(KILL).await.unwrap();
        node.wait_unread(killers, KILL.len()).await.unwrap();
        node.thaw().await.unwrap();
    };
    let (outcome, ()) = tokio::join!(script, kill);
    assert!(
        matches!(outcome, Err(ClientError::MaybeExecuted(_))),
        "not lost: {outcome:?}"
    );
    common::until_ok(&client, key, &["PING"]).await;
    assert_eq!(read_int(&client, key).await, 1);
}

/// The client's address of the connection for commands.
async fn address(client: &FredClient, key: &str) -> SocketAddr {
    let Ok(Reply::Bytes(info)) = call(client, key, &["CLIENT", "INFO"]).await else {
        panic!("no connection")
    };
    let info = std::str::from_utf8(&info).unwrap();
    let mut words = info.split_whitespace();
    let addr = words.find_map(|word| word.strip_prefix("addr="));
    addr.unwrap().parse().unwrap()
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
