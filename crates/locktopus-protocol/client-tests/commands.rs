//! Commands and answers on every kind of deployment.

use locktopus_protocol::{ChannelFlavour, ClientError, Deployment, RedisClient, Reply, Route};
use locktopus_servers::topology::TopologyKind;

use crate::common::*;

/// A SHA-1 that no script has.
const UNKNOWN_SCRIPT: &str = "ffffffffffffffffffffffffffffffffffffffff";

fn code(outcome: Result<Reply, ClientError>) -> String {
    match outcome {
        Err(ClientError::Rejected { code, .. }) => code,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

async fn answers(kind: TopologyKind, deployment: Deployment) {
    let servers = servers(kind).await;
    let client = client(&servers).await;
    let known = (client.name(), client.deployment());
    assert_eq!(known, (crate::CLIENT, deployment));
    // Enough keys to reach every node of a cluster.
    for key in ["{a}k", "{b}k", "{c}k", "{d}k", "{e}k", "{f}k"] {
        let say = async |words: &[&str]| call(&client, key, words).await;
        let eval = async |script: &str| say(&["EVAL", script, "1", key, "v"]).await;
        assert_eq!(say(&["SET", key, "1"]).await, Ok(bytes("OK")));
        let increment = eval("return redis.call('INCR', KEYS[1])").await;
        assert_eq!(increment, Ok(Reply::Int(2)));
        assert_eq!(say(&["GET", key]).await, Ok(bytes("2")));
        assert_eq!(eval("return false").await, Ok(Reply::Nil));
        let status = eval("return redis.status_reply('FINE')").await;
        assert_eq!(status, Ok(bytes("FINE")));
        let array = vec![
            Reply::Int(1),
            bytes("v"),
            Reply::Nil,
            Reply::Array(vec![Reply::Int(4)]),
            Reply::Array(vec![]),
        ];
        let answer = eval("return {1, ARGV[1], false, {4}, {}}").await;
        assert_eq!(answer, Ok(Reply::Array(array)));
        let half = eval("redis.setresp(3); return {double = 0.5}").await;
        assert_eq!(half, Ok(bytes("0.5")));
        let flag = eval("redis.setresp(3); return true").await;
        assert_eq!(flag, Ok(Reply::Int(1)));
        let custom = eval("return redis.error_reply('MYERR boom now')").await;
        assert_eq!(custom, Err(ClientError::rejected("MYERR boom now")));
        let unknown = say(&["EVALSHA", UNKNOWN_SCRIPT, "1", key]).await;
        assert_eq!(code(unknown), "NOSCRIPT");
        assert_eq!(code(say(&["HGET", key, "f"]).await), "WRONGTYPE");
        let hash = format!("{key}:hash");
        say(&["HSET", &hash, "field", "value"]).await.unwrap();
        let pair = Reply::Array(vec![bytes("field"), bytes("value")]);
        assert_eq!(say(&["HGETALL", &hash]).await, Ok(pair));
        assert_eq!(say(&["CLIENT", "GETNAME"]).await, Ok(bytes(NAME)));
    }
    let pong = client.command(Route::Any, &[b"PING"]).await;
    assert_eq!(pong, Ok(bytes("PONG")));

    let everywhere = client.command_on_primaries(&[b"ROLE"]).await.unwrap();
    let mut asked: Vec<_> = everywhere.iter().map(|one| one.node.clone()).collect();
    let mut primaries = Vec::new();
    for key in ["{a}k", "{b}k", "{c}k", "{d}k", "{e}k", "{f}k"] {
        primaries.push(servers.primary_for(key).await.unwrap().addr().to_string());
    }
    asked.sort();
    primaries.sort();
    primaries.dedup();
    assert_eq!(asked, primaries, "each primary once, by its address");
    for one in everywhere {
        let Ok(Reply::Array(role)) = one.reply else {
            panic!("{:?}", one.reply)
        };
        assert_eq!(role[0], bytes("master"));
    }

    let none = client.command(Route::Any, &[]).await;
    assert!(matches!(none, Err(ClientError::NotSent(_))), "{none:?}");
    assert!(client.take_events().is_some());
    assert!(client.take_events().is_none());
    client.close().await;
    let late = call(&client, "a", &["GET", "a"]).await;
    assert!(matches!(late, Err(ClientError::NotSent(_))), "{late:?}");
    let channels = [channel("x", ChannelFlavour::Plain)];
    assert!(client.subscribe(&channels).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_on_standalone() {
    answers(TopologyKind::Standalone, Deployment::Standalone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_on_sentinel() {
    answers(WATCHED, Deployment::Sentinel).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_on_cluster() {
    answers(SHARDS, Deployment::Cluster).await;
}

/// A dead primary is one failed answer among the others. Questions to any node go to another node.
/// The client is new: it has no connection yet that shows a server is up.
#[tokio::test(flavor = "multi_thread")]
async fn one_dead_primary_does_not_hide_the_others() {
    let servers = servers(SHARDS).await;
    for victim in servers.nodes() {
        let before = client(&servers).await;
        victim.crash().await.unwrap();
        let dead = victim.addr().to_string();
        let answers = before.command_on_primaries(&[b"PING"]).await.unwrap();
        assert_eq!(answers.len(), 3);
        for answer in answers {
            assert_eq!(answer.reply.is_err(), answer.node == dead, "{answer:?}");
        }
        let after = client(&servers).await;
        let answer = after.command(Route::Any, &[b"PING"]).await;
        assert!(answer.is_ok(), "without {dead}: {answer:?}");
        victim.start().await.unwrap();
    }
}
