//! Deployments of several servers.

use locktopus::fred::fred::types::config::{Config, Server, ServerConfig};
use locktopus::redis::redis::cluster::ClusterClientBuilder;
use locktopus::redis::redis::{self, Client, RedisConnectionInfo};
use locktopus_servers::topology::Deployment;

use crate::own_client::{PASSWORD, USER, refused, works_as};

pub(crate) async fn cluster(place: &Deployment) {
    let nodes = || {
        let nodes = place.nodes().iter();
        nodes.map(|node| format!("redis://{USER}:{PASSWORD}@{}", node.addr()))
    };
    // Channels and locks are spread, so any node has connections.
    let node = &place.nodes()[0];
    works_as(node, locktopus::redis::from_cluster_nodes(nodes()), 0).await;
    let all: Vec<_> = nodes().collect();
    let url = all[0].replacen("redis://", "redis-cluster://", 1);
    let config = Config::from_url(&url).unwrap();
    works_as(node, locktopus::fred::from_config(&config), 0).await;

    let in_database = nodes().map(|node| format!("{node}/1"));
    let said = refused(locktopus::redis::from_cluster_nodes(in_database)).await;
    assert!(said.contains("only database 0"), "{said}");
}

/// The program's own connection carries the commands, if it does not retry.
pub(crate) async fn handed_in(place: &Deployment) {
    let node = &place.nodes()[0];
    let nodes = place.nodes().iter();
    let nodes: Vec<_> = nodes
        .map(|node| format!("redis://{USER}:{PASSWORD}@{}", node.addr()))
        .collect();
    let settings = || locktopus::redis::from_cluster_nodes(nodes.clone());
    works_as(node, settings().options("router=client"), 0).await;

    let careful = ClusterClientBuilder::new(nodes.clone()).retries(0);
    let mut connection = careful
        .build()
        .unwrap()
        .get_async_connection()
        .await
        .unwrap();
    works_as(node, settings().router(connection.clone()), 0).await;
    // It still belongs to its owner.
    let ping = redis::cmd("PING");
    let pong: String = ping.query_async(&mut connection).await.unwrap();
    assert_eq!(pong, "PONG");

    let patient = ClusterClientBuilder::new(nodes.clone()).retries(1);
    let hasty = ClusterClientBuilder::new(nodes.clone()).retries(2);
    for eager in [patient, hasty.min_retry_wait(0).max_retry_wait(1)] {
        let connection = eager.build().unwrap().get_async_connection().await.unwrap();
        let said = refused(settings().router(connection)).await;
        assert!(said.contains("retries(0)"), "{said}");
    }
    let one = Client::open(nodes[0].as_str()).unwrap();
    let said = refused(locktopus::redis::from_client(&one).router(connection)).await;
    assert!(said.contains("for a cluster"), "{said}");
    let said = refused(settings().options("router=client&client=fred")).await;
    assert!(said.contains("client=fred"), "{said}");
}

pub(crate) async fn sentinels(place: &Deployment) {
    let (node, sentinel) = (&place.nodes()[0], place.sentinels()[0].addr());
    let login = RedisConnectionInfo::default()
        .set_username(USER)
        .set_password(PASSWORD)
        .set_db(2);
    let known_as = |password: &str, master: &str| {
        let sentinels = [format!("redis://{USER}:{password}@{sentinel}")];
        locktopus::redis::from_sentinels(sentinels, master, None, &login)
    };
    works_as(node, known_as("hunter3", place.master_name()), 2).await;
    let said = refused(known_as("hunter4", place.master_name())).await;
    assert!(said.contains("cannot connect"), "{said}");
    let said = refused(known_as("hunter3", "nobody")).await;
    assert!(said.contains("nobody"), "{said}");

    let config = Config {
        username: Some(USER.to_owned()),
        password: Some(PASSWORD.to_owned()),
        database: Some(2),
        server: ServerConfig::Sentinel {
            hosts: vec![Server::new(sentinel.ip().to_string(), sentinel.port())],
            service_name: place.master_name().to_owned(),
            username: Some(USER.to_owned()),
            password: Some("hunter3".to_owned()),
        },
        ..Config::default()
    };
    works_as(node, locktopus::fred::from_config(&config), 2).await;
}
