//! Locks over a program's own client configuration, and URLs with sockets and certificate names:
//! real servers, users with a password, databases, TLS.

use crate::common;
#[path = "own_client/encrypted.rs"]
mod encrypted;
#[path = "own_client/several.rs"]
mod several;
#[path = "own_client/socket.rs"]
mod socket;

use common::{CLIENTS, ONE_SENTINEL, SHARDS, chain, close, servers_with, servers_with_tls, unique};
use locktopus::fred::fred::prelude::{Builder, ClientLike, Config};
use locktopus::redis::redis::Client;
use locktopus::{ClientSettings, Locktopus};
use locktopus_servers::topology::{Deployment, Knobs, Node, TopologyKind};

const USER: &str = "app";
const PASSWORD: &str = "hunter2";

async fn place(kind: TopologyKind) -> Deployment {
    let user = format!("{USER} on >{PASSWORD} ~* &* +@all");
    let knobs = Knobs {
        users: vec![user.clone()],
        sentinel_users: vec![user.replace(PASSWORD, "hunter3")],
        ..Knobs::default()
    };
    servers_with(kind, knobs).await
}

/// Acquires and releases, and checks the user on the server and the database.
async fn works_as(node: &Node, settings: ClientSettings, database: u32) {
    let locks = settings
        .options("checks=refuse&client_name=of-the-test&connect_timeout=5s")
        .connect()
        .await
        .unwrap_or_else(|error| panic!("{}", chain(&error)));
    lock_once(&locks).await;
    let list = node.command(&["CLIENT", "LIST"]).await.unwrap().text();
    let ours: Vec<_> = list
        .lines()
        .filter(|line| line.contains("name=of-the-test"))
        .collect();
    assert!(!ours.is_empty(), "{list}");
    for line in ours {
        let (db, user) = (format!(" db={database} "), format!(" user={USER} "));
        assert!(line.contains(&db) && line.contains(&user), "{line}");
    }
    close(locks).await;
}

async fn lock_once(locks: &Locktopus) {
    let guard = locks.lock(unique("own")).acquire().await.unwrap();
    guard.release().await.unwrap();
}

/// The error text of a failed connect. It contains no password.
async fn refused(settings: ClientSettings) -> String {
    let shown = format!("{settings:?}");
    let error = match settings.connect().await {
        Ok(_) => panic!("connected: {shown}"),
        Err(error) => error,
    };
    let said = format!("{} {error:?} {shown}", chain(&error));
    assert!(!said.contains("hunter"), "{said}");
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server() {
    let place = place(TopologyKind::Standalone).await;
    let node = &place.nodes()[0];
    let url = |password: &str| format!("redis://{USER}:{password}@{}/3", node.addr());

    let client = Client::open(url(PASSWORD)).unwrap();
    works_as(node, locktopus::redis::from_client(&client), 3).await;
    let info = client.get_connection_info();
    works_as(node, locktopus::redis::from_connection_info(info), 3).await;
    // Settings are not bound to the client library that they were made for.
    let moved = locktopus::redis::from_client(&client).options("client=fred");
    works_as(node, moved, 3).await;

    let config = Config::from_url(&url(PASSWORD)).unwrap();
    works_as(node, locktopus::fred::from_config(&config), 3).await;
    let builder = Builder::from_config(config);
    works_as(node, locktopus::fred::from_builder(&builder), 3).await;
    let pool = builder.build_pool(2).unwrap();
    pool.init().await.unwrap();
    works_as(node, locktopus::fred::from_client(&pool), 3).await;
    // The pool still belongs to its owner.
    pool.ping::<String>(None).await.unwrap();
    pool.quit().await.unwrap();

    let wrong = Client::open(url("hunter5")).unwrap();
    let said = refused(locktopus::redis::from_client(&wrong)).await;
    assert!(
        said.contains("AuthenticationFailed") || said.contains("WRONGPASS"),
        "{said}"
    );
    let wrong = Config::from_url(&url("hunter5")).unwrap();
    let said = refused(locktopus::fred::from_config(&wrong)).await;
    assert!(said.contains("WRONGPASS"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster() {
    several::cluster(&place(SHARDS).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_connection() {
    several::handed_in(&place(SHARDS).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels() {
    several::sentinels(&place(ONE_SENTINEL).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_and_names() {
    let place = place(TopologyKind::Tls).await;
    encrypted::own_settings(&place).await;
    for client in CLIENTS {
        encrypted::another_name(&place, client).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_with_tls_of_their_own() {
    let certificates = place(TopologyKind::Tls).await;
    let place = place(ONE_SENTINEL).await;
    for client in CLIENTS {
        encrypted::only_sentinels(&certificates, &place, client).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_in_certificates_behind_sentinels() {
    let place = servers_with_tls(ONE_SENTINEL).await;
    for client in CLIENTS {
        encrypted::a_named_primary(&place, client).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unix_sockets() {
    socket::works().await;
}
