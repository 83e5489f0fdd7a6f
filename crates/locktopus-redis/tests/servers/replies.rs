//! Commands and answers on every kind of deployment.

use crate::common;

use common::*;
use locktopus_protocol::{
    ClientError, ConnectOptions, Deployment, RedisClient, Reply, Route, Servers,
};
use locktopus_redis::ConnectError;
use locktopus_servers::topology::TopologyKind;

/// A SHA-1 that no script has.
const UNKNOWN_SCRIPT: &str = "ffffffffffffffffffffffffffffffffffffffff";

async fn answers(kind: TopologyKind, deployment_kind: Deployment, primaries: usize) {
    let servers = servers(kind).await;
    let mut options = options(&servers);
    options.client_name = Some("locktopus-test".to_owned());
    let client = locktopus_redis::connect(&options).await.unwrap();
    assert_eq!(
        (client.name(), client.deployment()),
        ("redis-rs", deployment_kind)
    );

    // Enough keys to reach every node of a cluster.
    for key in ["a", "b", "c", "d", "e", "f"] {
        let eval = async |script: &str| call(&client, key, &["EVAL", script, "1", key]).await;
        assert_eq!(
            eval("return redis.call('INCR', KEYS[1])").await,
            Ok(Reply::Int(1))
        );
        assert_eq!(eval("return false").await, Ok(Reply::Nil));
        assert_eq!(
            eval("return redis.call('GET', KEYS[1])").await,
            Ok(bytes("1"))
        );
        assert_eq!(
            eval("return redis.status_reply('FINE')").await,
            Ok(bytes("FINE"))
        );
        assert_eq!(
            eval("return {1, 'two', false, {4}}").await,
            Ok(Reply::Array(vec![
                Reply::Int(1),
                bytes("two"),
                Reply::Nil,
                Reply::Array(vec![Reply::Int(4)])
            ]))
        );
        assert_eq!(
            eval("return redis.error_reply('MYERR boom now')").await,
            Err(ClientError::rejected("MYERR boom now"))
        );
        let wrong = eval("return redis.call('LPUSH', KEYS[1], 'x')").await;
        assert!(
            matches!(&wrong, Err(ClientError::Rejected { code, .. }) if code == "WRONGTYPE"),
            "{wrong:?}"
        );
        let unknown = call(&client, key, &["EVALSHA", UNKNOWN_SCRIPT, "1", key]).await;
        assert!(
            matches!(&unknown, Err(ClientError::Rejected { code, .. }) if code == "NOSCRIPT"),
            "{unknown:?}"
        );
        let hash = format!("{{{key}}}:hash");
        call(&client, key, &["HSET", &hash, "field", "value"])
            .await
            .unwrap();
        assert_eq!(
            call(&client, key, &["HGETALL", &hash]).await,
            Ok(Reply::Array(vec![bytes("field"), bytes("value")]))
        );
        assert_eq!(
            call(&client, key, &["CLIENT", "GETNAME"]).await,
            Ok(bytes("locktopus-test"))
        );
    }

    assert_eq!(
        client.command(Route::Any, &[b"PING"]).await,
        Ok(bytes("PONG"))
    );
    let everywhere = client.command_on_primaries(&[b"ROLE"]).await.unwrap();
    assert_eq!(everywhere.len(), primaries);
    for answer in everywhere {
        assert!(
            servers
                .nodes()
                .iter()
                .any(|node| node.addr().to_string() == answer.node)
        );
        let Ok(Reply::Array(role)) = answer.reply else {
            panic!("{:?}", answer.reply)
        };
        assert_eq!(role[0], bytes("master"));
    }

    assert!(matches!(
        client.command(Route::Any, &[]).await,
        Err(ClientError::NotSent(_))
    ));
    client.close().await;
    let late = call(&client, "a", &["GET", "a"]).await;
    assert!(matches!(late, Err(ClientError::NotSent(_))), "{late:?}");
    assert!(
        client
            .subscribe(&[channel("x", locktopus_protocol::ChannelFlavour::Plain)])
            .await
            .is_err()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn standalone() {
    answers(TopologyKind::Standalone, Deployment::Standalone, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinel() {
    answers(WATCHED, Deployment::Sentinel, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster() {
    answers(SHARDS, Deployment::Cluster, 3).await;
}

/// A dead primary is one failed answer among the others.
#[tokio::test(flavor = "multi_thread")]
async fn one_dead_primary_does_not_hide_the_others() {
    let servers = servers(SHARDS).await;
    let client = client(&servers).await;
    servers.nodes()[1].crash().await.unwrap();
    let answers = client.command_on_primaries(&[b"PING"]).await.unwrap();
    let dead = servers.nodes()[1].addr().to_string();
    assert_eq!(answers.len(), 3);
    for answer in answers {
        assert_eq!(answer.reply.is_err(), answer.node == dead, "{answer:?}");
    }
}

#[tokio::test]
async fn impossible_options_are_refused_with_a_reason() {
    let nobody = |servers| async { locktopus_redis::connect(&ConnectOptions::new(servers)).await };
    let error = nobody(Servers::Cluster(Vec::new())).await.unwrap_err();
    assert_eq!(
        error,
        ConnectError::NoServers {
            what: "cluster node"
        }
    );

    let servers = servers(TopologyKind::Standalone).await;
    let node = address(&servers.nodes()[0]);
    let mut options = ConnectOptions::new(Servers::Cluster(vec![node.clone()]));
    let error = locktopus_redis::connect(&options)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("cluster support disabled"), "{error}");
    options.database = 2;
    let error = locktopus_redis::connect(&options).await.unwrap_err();
    assert_eq!(error, ConnectError::ClusterDatabase { given: 2 });

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
