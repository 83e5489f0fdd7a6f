//! Several commands sent at once, and limits of any length.
//!
//! A test of every client: each includes this file with its own [`common`](crate::common).

use std::time::Duration;

use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{ClientError, ConnectOptions, RedisClient, Reply, Route, Servers};
use locktopus_servers::topology::TopologyKind;
use tokio::time::{sleep, timeout};

use crate::common::{address, bytes, call, client, connect, options, servers};

const SHARDS: TopologyKind = TopologyKind::Cluster {
    primaries: 3,
    replicas_each: 0,
};

fn route(key: &str) -> Route {
    Route::Slot(key_slot(key.as_bytes()))
}

/// Each of several commands sent at once gets its answer, and a blocking one delays no other
/// command.
#[tokio::test(flavor = "multi_thread")]
async fn pipelines_block_only_each_other() {
    let servers = servers(TopologyKind::Standalone).await;
    let client = client(&servers).await;
    let commands: [&[&[u8]]; 3] = [
        &[b"SET", b"begun", b"1"],
        &[b"BLPOP", b"list", b"0"],
        &[b"HGET", b"begun", b"f"],
    ];
    let pipeline = client.pipeline(Route::Slot(0), &commands);
    tokio::pin!(pipeline);
    let usual = async {
        while call(&client, "begun", &["GET", "begun"]).await != Ok(bytes("1")) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        answers = &mut pipeline => panic!("not blocked: {answers:?}"),
        () = usual => {}
    }
    let push = call(&client, "list", &["RPUSH", "list", "x"]);
    let (answers, pushed) = tokio::join!(pipeline, push);
    assert_eq!(pushed, Ok(Reply::Int(1)));
    let answers = answers.unwrap();
    assert_eq!(answers.node, servers.nodes()[0].addr().to_string());
    let [set, popped, refused] = answers.replies.try_into().unwrap();
    assert_eq!(set, Ok(bytes("OK")));
    assert_eq!(popped, Ok(Reply::Array(vec![bytes("list"), bytes("x")])));
    assert!(
        matches!(&refused, Err(ClientError::Rejected { code, .. }) if code == "WRONGTYPE"),
        "{refused:?}"
    );
}

/// They go to the node of their slot, and a refusal by another node is an answer.
#[tokio::test(flavor = "multi_thread")]
async fn pipelines_on_a_cluster() {
    let servers = servers(SHARDS).await;
    let client = client(&servers).await;
    for key in ["{a}k", "{b}k", "{c}k", "{d}k"] {
        let set: &[&[u8]] = &[b"SET", key.as_bytes(), b"1"];
        let get: &[&[u8]] = &[b"GET", key.as_bytes()];
        let answers = client.pipeline(route(key), &[set, get]).await.unwrap();
        let owner = servers.primary_for(key).await.unwrap();
        assert_eq!(answers.node, owner.addr().to_string());
        assert_eq!(answers.replies, [Ok(bytes("OK")), Ok(bytes("1"))]);
    }
    // Slots 0 and 16383 are on different nodes.
    let away: &[&[u8]] = &[b"GET", b"{a}k"];
    let mut moved = 0;
    for slot in [0, 16_383] {
        let answers = client.pipeline(Route::Slot(slot), &[away]).await.unwrap();
        match &answers.replies[0] {
            Ok(_) => {}
            Err(ClientError::Rejected { code, .. }) if code == "MOVED" => moved += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(moved >= 1);
}

/// With any durations in the options there is an answer or an error, and no panic.
#[tokio::test]
async fn no_duration_is_too_long_or_too_short() {
    let deployment = servers(TopologyKind::Sentinel {
        replicas: 0,
        sentinels: 1,
    })
    .await;
    let by_sentinel = options(&deployment);
    let direct = ConnectOptions {
        servers: Servers::Standalone(address(&deployment.nodes()[0])),
        ..by_sentinel.clone()
    };
    let cluster = ConnectOptions {
        servers: Servers::Cluster(vec![address(&deployment.nodes()[0])]),
        ..by_sentinel.clone()
    };
    let second = Duration::from_secs(1);
    let mut all = vec![
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_secs(10),
        Duration::from_secs(u64::MAX / 4),
        Duration::from_secs(u64::MAX),
        Duration::MAX,
    ];
    // And durations of every size in between.
    all.extend(
        (0..60)
            .step_by(6)
            .map(|bits| Duration::from_secs(0x9e37_79b9_7f4a_7c15 >> bits)),
    );
    for (at, connect_timeout) in all.iter().enumerate() {
        let command_timeout = all[all.len() - 1 - at];
        for options in [&by_sentinel, &direct, &cluster] {
            let options = ConnectOptions {
                connect_timeout: *connect_timeout,
                command_timeout,
                ..options.clone()
            };
            let connected = connect(&options).await;
            let possible = !matches!(options.servers, Servers::Cluster(_));
            if *connect_timeout > second && command_timeout > second {
                let what = (connect_timeout, command_timeout);
                assert_eq!(connected.is_ok(), possible, "{what:?}: {connected:?}");
            }
            if let Ok(client) = connected {
                client.timed_out(Route::Any);
                let _ = timeout(second, client.command(Route::Any, &[b"PING"])).await;
                let _ = timeout(second, client.pipeline(Route::Any, &[&[b"PING"]])).await;
                client.close().await;
            }
        }
    }
}
