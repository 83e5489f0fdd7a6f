//! Connecting: logins, databases, TLS, time limits, how a client ends, and what errors reveal.

use std::time::Duration;

use locktopus_protocol::{
    ChannelFlavour, ClientError, ConnectOptions, HostPort, RedisClient, Reply, Servers, TlsOptions,
};
use locktopus_servers::topology::{Knobs, TopologyKind};
use tokio::time::Instant;

use crate::common::*;

const SECRET: &str = "correct-horse";

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_address_is_reported_in_time() {
    let nobody = HostPort {
        host: "127.0.0.1".into(),
        port: 1,
    };
    let sentinels = vec![nobody.clone(), nobody.clone()];
    let all = [
        Servers::Standalone(nobody.clone()),
        Servers::Sentinel {
            sentinels,
            master_name: "mymaster".into(),
        },
        Servers::Cluster(vec![nobody]),
    ];
    for servers in all {
        let since = Instant::now();
        let failure = connect(&ConnectOptions::new(servers)).await.unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("127.0.0.1:1"), "{text}");
        assert!(since.elapsed() < Duration::from_secs(2), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_reported_in_time() {
    let servers = servers(TopologyKind::Standalone).await;
    let node = &servers.nodes()[0];
    node.freeze().await.unwrap();
    let since = Instant::now();
    let text = connect(&options(&servers)).await.unwrap_err().to_string();
    assert!(text.contains(&node.addr().to_string()), "{text}");
    assert!(since.elapsed() < Duration::from_secs(3), "{text}");
    node.thaw().await.unwrap();
}

/// A user who may run scripts and subscribe, but not set the connection's name or ask for roles.
fn knobs() -> Knobs {
    let user = format!("app on >{SECRET} ~* &* +@all -client|setname -role");
    Knobs {
        users: vec![user],
        ..Knobs::default()
    }
}

async fn logs_in(kind: TopologyKind) {
    let servers = servers_with(kind, knobs()).await;
    let mut options = options(&servers);
    // The server refuses the name, which must not matter.
    options.credentials = login("app", SECRET);
    let client = connect(&options).await.unwrap();
    for key in ["a", "b", "c"] {
        let whoami = call(&client, key, &["ACL", "WHOAMI"]).await;
        assert_eq!(whoami, Ok(bytes("app")));
        let name = call(&client, key, &["CLIENT", "GETNAME"]).await;
        assert_eq!(name, Ok(Reply::Nil));
    }
    let forbidden = call(&client, "a", &["CLIENT", "SETNAME", "x"]).await;
    assert!(
        matches!(&forbidden, Err(ClientError::Rejected { code, .. }) if code == "NOPERM"),
        "{forbidden:?}"
    );
    let channels = [channel("c", ChannelFlavour::Plain)];
    client.subscribe(&channels).await.unwrap();
    assert!(!format!("{client:?}").contains(SECRET));

    options.credentials = login("app", "wrong-horse");
    let error = connect(&options).await.unwrap_err().to_string();
    assert!(error.contains("WRONGPASS") || error.contains("invalid username-password"));
    assert!(!error.contains("wrong-horse"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_standalone() {
    logs_in(TopologyKind::Standalone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_sentinel() {
    logs_in(WATCHED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_cluster() {
    logs_in(SHARDS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_have_users_of_their_own() {
    let servers = servers_with(WATCHED, knobs()).await;
    let rule = format!(">{SECRET}2");
    let words = ["ACL", "SETUSER", "watcher", "on", &rule, "+@all"];
    servers.sentinels()[0].command(&words).await.unwrap();
    let mut options = options(&servers);
    options.credentials = login("app", SECRET);
    options.sentinel_credentials = login("watcher", &format!("{SECRET}2"));
    let client = connect(&options).await.unwrap();
    let whoami = call(&client, "a", &["ACL", "WHOAMI"]).await;
    assert_eq!(whoami, Ok(bytes("app")));

    options.sentinel_credentials = login("watcher", "wrong-horse");
    let error = connect(&options).await.unwrap_err().to_string();
    let sentinel = servers.sentinels()[0].addr().to_string();
    assert!(error.contains(&sentinel), "{error}");
    assert!(!error.contains("wrong-horse"), "{error}");
}

/// The connection selects the logical database again after a loss.
#[tokio::test(flavor = "multi_thread")]
async fn the_database_is_kept() {
    let servers = servers(TopologyKind::Standalone).await;
    let mut options = options(&servers);
    options.database = 3;
    let client = connect(&options).await.unwrap();
    call(&client, "k", &["SET", "k", "1"]).await.unwrap();
    let node = &servers.nodes()[0];
    let kill = ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"];
    node.command(&kill).await.unwrap();
    assert_eq!(number(&client, "k").await, 1);
    assert_eq!(node.info("keyspace", "db0").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_client_leaves_no_connection() {
    let servers = servers(SHARDS).await;
    let client = client(&servers).await;
    let channels = [channel("c", ChannelFlavour::Plain)];
    client.subscribe(&channels).await.unwrap();
    for key in ["{a}k", "{b}k", "{c}k"] {
        call(&client, key, &["GET", key]).await.unwrap();
    }
    let open = async || {
        let mut open = 0;
        for node in servers.nodes() {
            open += connections(node, "normal").await + connections(node, "pubsub").await;
        }
        open
    };
    assert!(open().await >= 4);
    drop(client);
    until("all connections are closed", async || open().await == 0).await;
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn the_missing_feature_is_named() {
    let servers = servers(TopologyKind::Standalone).await;
    let mut options = options(&servers);
    options.tls = Some(TlsOptions::default());
    let error = connect(&options).await.unwrap_err().to_string();
    assert!(error.contains("`tls`"), "{error}");
}

#[cfg(feature = "tls")]
#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_checked() {
    let servers = servers(TopologyKind::Tls).await;
    let files = servers.tls().unwrap();
    let mut options = options(&servers);
    // A handshake may be slow on a busy machine.
    options.connect_timeout = Duration::from_secs(5);
    options.tls = Some(TlsOptions {
        ca_file: Some(files.ca.clone()),
        ..TlsOptions::default()
    });
    let client = connect(&options).await.unwrap();
    call(&client, "k", &["SET", "k", "1"]).await.unwrap();
    let mut events = client.take_events().unwrap();
    let channels = [channel("c", ChannelFlavour::Plain)];
    client.subscribe(&channels).await.unwrap();
    all_heard(&client, &mut events, &channels).await;

    // The system does not know this authority.
    options.tls = Some(TlsOptions::default());
    connect(&options).await.unwrap_err();
    options.tls = Some(TlsOptions {
        danger_accept_invalid_certs: true,
        ..TlsOptions::default()
    });
    let client = connect(&options).await.unwrap();
    assert_eq!(number(&client, "k").await, 1);
    // Plain text to an encrypted port fails instead of hanging.
    options.tls = None;
    connect(&options).await.unwrap_err();
    options.tls = Some(TlsOptions {
        ca_file: Some("no-such-file.pem".into()),
        ..TlsOptions::default()
    });
    let error = connect(&options).await.unwrap_err().to_string();
    assert!(error.contains("no-such-file.pem"), "{error}");
}
