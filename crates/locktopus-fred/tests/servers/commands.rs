//! Commands and answers on all three deployments.

use crate::common;

use std::time::{Duration, Instant};

use common::{bytes, call, client, read_int, route, servers};
use locktopus_protocol::{ClientError, Deployment, RedisClient, Reply, Route};
use locktopus_servers::topology::{Knobs, Spec, TopologyKind};

/// Every kind of answer, with keys on several nodes.
async fn answers_on(kind: TopologyKind, deployment: Deployment) {
    let servers = servers(kind).await;
    let client = client(&servers).await;
    assert_eq!(client.deployment(), deployment);
    assert_eq!(client.name(), "fred");
    for key in ["{a}k", "{b}k", "{c}k", "{d}k"] {
        let eval = async |script: &str| call(&client, key, &["EVAL", script, "1", key, "v"]).await;
        assert_eq!(
            call(&client, key, &["SET", key, "1"]).await,
            Ok(bytes("OK"))
        );
        assert_eq!(
            eval("return redis.call('incr', KEYS[1])").await,
            Ok(Reply::Int(2))
        );
        assert_eq!(call(&client, key, &["GET", key]).await, Ok(bytes("2")));
        assert_eq!(eval("return false").await, Ok(Reply::Nil));
        let array = Reply::Array(vec![Reply::Int(1), bytes("v"), Reply::Array(vec![])]);
        assert_eq!(eval("return {1, ARGV[1], {}}").await, Ok(array));
        let half = eval("redis.setresp(3); return {double = 0.5}").await;
        assert_eq!(half, Ok(bytes("0.5")));
        let flag = eval("redis.setresp(3); return true").await;
        assert_eq!(flag, Ok(Reply::Int(1)));

        let unknown = [
            "EVALSHA",
            "0123456789012345678901234567890123456789",
            "1",
            key,
        ];
        assert_eq!(code(call(&client, key, &unknown).await), "NOSCRIPT");
        let custom = eval("return redis.error_reply('MYERR boom')")
            .await
            .unwrap_err();
        let expected = ClientError::Rejected {
            code: "MYERR".into(),
            message: "boom".into(),
        };
        assert_eq!(custom, expected);
        assert_eq!(
            code(call(&client, key, &["HGET", key, "f"]).await),
            "WRONGTYPE"
        );
    }
    let words: [&[u8]; 2] = [b"SCRIPT LOAD", b"return 1"];
    assert!(matches!(
        client.command(Route::Any, &words).await,
        Err(ClientError::NotSent(_))
    ));
    client.close().await;
    let refused = call(&client, "{a}k", &["GET", "{a}k"]).await;
    assert!(
        matches!(refused, Err(ClientError::NotSent(_))),
        "{refused:?}"
    );
}

fn code(outcome: Result<Reply, ClientError>) -> String {
    match outcome {
        Err(ClientError::Rejected { code, .. }) => code,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn answers_on_standalone() {
    answers_on(TopologyKind::Standalone, Deployment::Standalone).await;
}

#[tokio::test]
async fn answers_on_sentinel() {
    answers_on(TopologyKind::SENTINEL, Deployment::Sentinel).await;
}

#[tokio::test]
async fn answers_on_cluster() {
    answers_on(TopologyKind::CLUSTER, Deployment::Cluster).await;
}

#[tokio::test]
async fn every_primary_answers_by_itself() {
    let servers = servers(TopologyKind::CLUSTER).await;
    let client = client(&servers).await;
    let words: [&[u8]; 3] = [b"SCRIPT", b"LOAD", b"return 1"];
    let replies = client.command_on_primaries(&words).await.unwrap();
    let mut nodes: Vec<_> = replies.iter().map(|reply| reply.node.clone()).collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 3, "{replies:?}");
    assert!(
        replies.iter().all(|reply| reply.reply.is_ok()),
        "{replies:?}"
    );
}

#[tokio::test]
async fn the_one_primary_is_named_by_its_address() {
    for kind in [TopologyKind::Standalone, TopologyKind::SENTINEL] {
        let servers = servers(kind).await;
        let client = client(&servers).await;
        let replies = client.command_on_primaries(&[b"PING"]).await.unwrap();
        let primary = servers.primary().await.unwrap().addr().to_string();
        assert_eq!(replies.len(), 1);
        assert_eq!(
            (&replies[0].node, &replies[0].reply),
            (&primary, &Ok(bytes("PONG")))
        );
    }
}

#[tokio::test]
async fn what_was_given_up_on_while_the_server_was_down_never_runs() {
    let knobs = Knobs {
        appendonly: true,
        ..Knobs::default()
    };
    let servers = common::start(Spec::new(TopologyKind::Standalone).with_knobs(knobs)).await;
    let client = client(&servers).await;
    let node = &servers.nodes()[0];
    assert_eq!(
        call(&client, "n", &["SET", "n", "0"]).await,
        Ok(bytes("OK"))
    );
    node.crash().await.unwrap();
    let down = Instant::now();
    let mut tries = 0;
    while down.elapsed() < Duration::from_secs(3) {
        let answer = client.command(route("n"), &[b"INCR", b"n"]);
        // Some are dropped while they wait, some are answered.
        if let Ok(outcome) =
            tokio::time::timeout(Duration::from_millis(3 + tries % 60), answer).await
        {
            assert!(outcome.is_err(), "{outcome:?}");
        }
        tries += 1;
    }
    node.start().await.unwrap();
    let (_, took) = common::until_ok(&client, "n", &["PING"]).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(read_int(&client, "n").await, 0, "a command came late");
}
