//! Separate users and passwords for data nodes and sentinels, and what errors reveal of them.

use crate::common;

use common::*;
use locktopus_protocol::{
    Channel, ChannelFlavour, ClientError, Credentials, RedisClient, Reply, Secret,
};
use locktopus_servers::topology::{Knobs, TopologyKind};

const PASSWORD: &str = "correct-horse";

fn login(username: &str, password: &str) -> Option<Credentials> {
    Some(Credentials {
        username: Some(username.to_owned()),
        password: Secret::new(password),
    })
}

/// A user who may run scripts and subscribe, but not set the connection's name or ask for roles.
fn knobs() -> Knobs {
    let user = format!("app on >{PASSWORD} ~* &* +@all -client|setname -role");
    Knobs {
        users: vec![user],
        ..Knobs::default()
    }
}

async fn logs_in(kind: TopologyKind) {
    let servers = servers_with(kind, knobs()).await;
    let mut options = options(&servers);
    options.credentials = login("app", PASSWORD);
    // The server refuses it, which must not matter.
    options.client_name = Some("locktopus-test".to_owned());
    let client = locktopus_redis::connect(&options).await.unwrap();
    for key in ["a", "b", "c"] {
        assert_eq!(
            call(&client, key, &["ACL", "WHOAMI"]).await,
            Ok(bytes("app"))
        );
        assert_eq!(
            call(&client, key, &["CLIENT", "GETNAME"]).await,
            Ok(Reply::Nil)
        );
    }
    let forbidden = call(&client, "a", &["CLIENT", "SETNAME", "x"]).await;
    assert!(
        matches!(&forbidden, Err(ClientError::Rejected { code, .. }) if code == "NOPERM"),
        "{forbidden:?}"
    );
    let channels: Vec<Channel> = vec![channel("c", ChannelFlavour::Plain)];
    client.subscribe(&channels).await.unwrap();
    assert!(!format!("{client:?}").contains(PASSWORD));

    options.credentials = login("app", "wrong-horse");
    let error = locktopus_redis::connect(&options)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("WRONGPASS") || error.contains("invalid username-password"),
        "{error}"
    );
    assert!(!error.contains("wrong-horse"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn standalone() {
    logs_in(TopologyKind::Standalone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinel() {
    logs_in(WATCHED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster() {
    logs_in(SHARDS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_have_users_of_their_own() {
    let servers = servers_with(WATCHED, knobs()).await;
    let rule = format!(">{PASSWORD}2");
    let words = ["ACL", "SETUSER", "watcher", "on", &rule, "+@all"];
    servers.sentinels()[0].command(&words).await.unwrap();
    let mut options = options(&servers);
    options.credentials = login("app", PASSWORD);
    options.sentinel_credentials = login("watcher", &format!("{PASSWORD}2"));
    let client = locktopus_redis::connect(&options).await.unwrap();
    assert_eq!(
        call(&client, "a", &["ACL", "WHOAMI"]).await,
        Ok(bytes("app"))
    );

    options.sentinel_credentials = login("watcher", "wrong-horse");
    let error = locktopus_redis::connect(&options)
        .await
        .unwrap_err()
        .to_string();
    let sentinel = servers.sentinels()[0].addr().to_string();
    assert!(
        error.contains(&sentinel) && !error.contains("wrong-horse"),
        "{error}"
    );
}

/// The connection selects the logical database again after a loss.
#[tokio::test(flavor = "multi_thread")]
async fn the_database_is_kept() {
    let servers = servers(TopologyKind::Standalone).await;
    let mut options = options(&servers);
    options.database = 3;
    let client = locktopus_redis::connect(&options).await.unwrap();
    call(&client, "k", &["SET", "k", "1"]).await.unwrap();
    let node = &servers.nodes()[0];
    node.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
        .await
        .unwrap();
    let value = eventually("reading", async || call(&client, "k", &["GET", "k"]).await).await;
    assert_eq!(value, bytes("1"));
    assert_eq!(node.info("keyspace", "db0").await.unwrap(), None);
}
