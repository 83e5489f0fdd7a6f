//! Connecting: logins, TLS, time limits, and how a client ends.

use crate::common;

use std::time::{Duration, Instant};

use common::{bytes, call, client, connections, eventually, options, read_int, servers};
use locktopus_fred::{ConnectError, connect};
use locktopus_protocol::{
    ConnectOptions, Credentials, HostPort, RedisClient, Reply, Secret, Servers, TlsOptions,
};
use locktopus_servers::topology::{Knobs, Spec, TopologyKind};

#[tokio::test]
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
        let begin = Instant::now();
        let failure = connect(&ConnectOptions::new(servers)).await.unwrap_err();
        assert!(
            matches!(failure, ConnectError::Unreachable { .. }),
            "{failure}"
        );
        assert!(failure.to_string().contains("127.0.0.1:1"), "{failure}");
        assert!(begin.elapsed() < Duration::from_secs(2), "{failure}");
    }
}

#[tokio::test]
async fn a_silent_server_is_reported_in_time() {
    let servers = servers(TopologyKind::Standalone).await;
    servers.nodes()[0].freeze().await.unwrap();
    let begin = Instant::now();
    let failure = connect(&options(&servers)).await.unwrap_err();
    assert!(
        failure.to_string().contains("no answer within 2000 ms"),
        "{failure}"
    );
    assert!(begin.elapsed() < Duration::from_secs(3));
    servers.nodes()[0].thaw().await.unwrap();
}

#[tokio::test]
async fn logins_and_databases() {
    let rules = "app on >hunter2 ~* &* +@all -client|setname";
    let knobs = Knobs {
        users: vec![rules.into()],
        ..Knobs::default()
    };
    let servers = common::start(Spec::new(TopologyKind::Standalone).with_knobs(knobs)).await;
    let mut options = options(&servers);
    options.database = 3;
    options.client_name = Some("locktopus-test".into());
    let named = connect(&options).await.unwrap();
    let info = call(&named, "k", &["CLIENT", "INFO"]).await.unwrap();
    let Reply::Bytes(info) = info else {
        panic!("{info:?}")
    };
    let info = String::from_utf8(info.to_vec()).unwrap();
    assert!(
        info.contains("name=locktopus-test") && info.contains(" db=3 "),
        "{info}"
    );

    let login = |password: &str| {
        Some(Credentials {
            username: Some("app".into()),
            password: Secret::new(password),
        })
    };
    options.credentials = login("hunter2");
    let app = connect(&options).await.unwrap();
    assert_eq!(call(&app, "k", &["ACL", "WHOAMI"]).await, Ok(bytes("app")));
    assert!(!format!("{app:?}").contains("hunter2"));

    options.credentials = login("hunter3");
    let failure = connect(&options).await.unwrap_err().to_string();
    assert!(
        failure.contains("WRONGPASS") && !failure.contains("hunter3"),
        "{failure}"
    );
}

#[tokio::test]
async fn sentinels_have_logins_of_their_own() {
    let servers = servers(TopologyKind::SENTINEL).await;
    for sentinel in servers.sentinels() {
        let user = ["ACL", "SETUSER", "watcher", "on", ">hunter4", "+@all"];
        sentinel.command(&user).await.unwrap();
    }
    let mut options = options(&servers);
    let login = |password: &str| {
        Some(Credentials {
            username: Some("watcher".into()),
            password: Secret::new(password),
        })
    };
    options.sentinel_credentials = login("hunter4");
    let client = connect(&options).await.unwrap();
    assert_eq!(
        call(&client, "k", &["SET", "k", "1"]).await,
        Ok(bytes("OK"))
    );
    options.sentinel_credentials = login("hunter5");
    let failure = connect(&options).await.unwrap_err().to_string();
    assert!(!failure.contains("hunter"), "{failure}");
}

#[tokio::test]
async fn a_dropped_client_leaves_no_connection() {
    let servers = servers(TopologyKind::CLUSTER).await;
    let client = client(&servers).await;
    let flavour = locktopus_protocol::ChannelFlavour::Plain;
    let channel = locktopus_protocol::Channel {
        name: "c".into(),
        flavour,
    };
    client.subscribe(&[channel]).await.unwrap();
    for key in ["{a}k", "{b}k", "{c}k"] {
        call(&client, key, &["GET", key]).await.unwrap();
    }
    let open = async || {
        let mut open = 0;
        for node in servers.nodes() {
            open += connections(node, "normal").await.len();
            open += connections(node, "pubsub").await.len();
        }
        open
    };
    assert!(open().await >= 4);
    drop(client);
    eventually("all connections are closed", async || open().await == 0).await;
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn tls_names_its_feature() {
    let nobody = HostPort {
        host: "127.0.0.1".into(),
        port: 1,
    };
    let mut options = ConnectOptions::new(Servers::Standalone(nobody));
    options.tls = Some(TlsOptions::default());
    let failure = connect(&options).await.unwrap_err();
    assert!(failure.to_string().contains("`tls`"), "{failure}");
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn tls_with_a_private_authority() {
    let servers = servers(TopologyKind::Tls).await;
    let files = servers.tls().unwrap();
    let mut options = options(&servers);
    let trusting = TlsOptions {
        ca_file: Some(files.ca.clone()),
        ..TlsOptions::default()
    };
    let careless = TlsOptions {
        danger_accept_invalid_certs: true,
        ..TlsOptions::default()
    };
    for tls in [trusting, careless] {
        options.tls = Some(tls);
        let client = connect(&options).await.unwrap();
        assert_eq!(
            call(&client, "k", &["SET", "k", "5"]).await,
            Ok(bytes("OK"))
        );
        assert_eq!(read_int(&client, "k").await, 5);
    }
    options.tls = Some(TlsOptions::default());
    assert!(connect(&options).await.is_err());
    options.tls = None;
    assert!(connect(&options).await.is_err());
}
