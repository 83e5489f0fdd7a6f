//! A name with several addresses, one of the primary and one of its replica.
//!
//! A test of every client: each includes this file with its own [`names`], which resolve the host.

use std::time::Duration;

use locktopus_protocol::{
    Channel, ChannelFlavour, ClientError, ConnectOptions, HostPort, RedisClient, Reply, Route,
    Servers,
};
use locktopus_servers::topology::{Node, ProviderKind, Role, Spec, TopologyKind, start};
use tokio::time::{Instant, sleep, timeout};

use super::names;

/// Longest wait for what must happen.
const LONG: Duration = Duration::from_secs(20);

/// Options for a host, with this limit for each connection.
fn to(host: &str, connect_timeout: Duration) -> ConnectOptions {
    let host = host.to_owned();
    let server = Servers::Standalone(HostPort { host, port: 6379 });
    ConnectOptions {
        connect_timeout,
        ..ConnectOptions::new(server)
    }
}

async fn follow(replica: &Node, primary: &Node) {
    let (ip, port) = (primary.addr().ip().to_string(), primary.addr().port());
    let follow = ["REPLICAOF", &ip, &port.to_string()];
    replica.command(&follow).await.unwrap();
    let deadline = Instant::now() + LONG;
    while !matches!(replica.role().await.unwrap(), Role::Replica { .. }) {
        assert!(Instant::now() < deadline, "it does not follow");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Retries what fails as not sent or refused, as the layer above does.
async fn set(client: &dyn RedisClient) -> Reply {
    let deadline = Instant::now() + LONG;
    loop {
        let call = client.command(Route::Any, &[b"SET", b"k", b"1"]);
        match timeout(LONG, call).await.expect("an answer") {
            Ok(reply) => return reply,
            Err(ClientError::Rejected { code, .. }) if code != "READONLY" => panic!("{code}"),
            Err(error) if Instant::now() > deadline => panic!("{error}"),
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Waits until every subscription is on a primary.
async fn subscribed_on(client: &dyn RedisClient, node: &Node) {
    let deadline = Instant::now() + LONG;
    loop {
        let channel = Channel {
            name: "c".into(),
            flavour: ChannelFlavour::Plain,
        };
        let outcome = client.subscribe(&[channel]).await;
        let count = node.command(&["PUBSUB", "NUMSUB", "c"]).await.unwrap();
        if outcome.is_ok() && format!("{count:?}").contains("Int(1)") {
            return;
        }
        assert!(Instant::now() < deadline, "{outcome:?} {count:?}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Like a stopped server: the kernel accepts connections, but no greeting comes.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_accepts_and_says_nothing_hides_no_other() {
    let spec = Spec::new(TopologyKind::Quorum { nodes: 2 });
    let place = start(ProviderKind::Plain, &spec).await.unwrap();
    let server = place.nodes()[0].addr();
    let kept = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = kept.local_addr().unwrap();
    let host = "silent.example";
    let options = to(host, Duration::from_secs(2));
    for addresses in [[silent, server], [server, silent]] {
        names::set(host, &addresses);
        let client = crate::connect(&options).await.unwrap();
        let answer = client.command(Route::Any, &[b"SET", b"k", b"1"]).await;
        assert!(answer.is_ok(), "{answer:?}");
        client.close().await;
    }
}

/// The error is the primary's refusal, and not that the other address leads to a replica.
#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_of_a_primary_is_told() {
    let spec = Spec::new(TopologyKind::Quorum { nodes: 2 });
    let place = start(ProviderKind::Plain, &spec).await.unwrap();
    let (a, b) = (&place.nodes()[0], &place.nodes()[1]);
    follow(b, a).await;
    let host = "full.example";
    let options = to(host, LONG);
    // The replica is one client of it, and this is another.
    let _held = tokio::net::TcpStream::connect(a.addr()).await.unwrap();
    let full = a.command(&["CONFIG", "SET", "maxclients", "2"]).await;
    full.unwrap();
    names::set(host, &[a.addr(), b.addr()]);
    let refused = crate::connect(&options).await.unwrap_err().to_string();
    assert!(refused.contains("max number of clients"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_one_that_leads_to_the_primary_is_found_and_found_again() {
    let spec = Spec::new(TopologyKind::Quorum { nodes: 2 });
    let place = start(ProviderKind::Plain, &spec).await.unwrap();
    let (a, b) = (&place.nodes()[0], &place.nodes()[1]);
    let host = "several.example";
    let options = to(host, LONG);
    follow(b, a).await;
    for addresses in [[a.addr(), b.addr()], [b.addr(), a.addr()]] {
        names::set(host, &addresses);
        let client = crate::connect(&options).await.unwrap();
        let at_once = client.command(Route::Any, &[b"SET", b"k", b"1"]).await;
        assert!(at_once.is_ok(), "{at_once:?}");
        let pipelined = client.pipeline(Route::Any, &[&[b"SET", b"k", b"1"]]).await;
        assert!(pipelined.unwrap().replies[0].is_ok());
        subscribed_on(&client, a).await;

        b.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
        follow(a, b).await;
        set(&client).await;
        subscribed_on(&client, b).await;

        a.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
        follow(b, a).await;
        set(&client).await;
        client.close().await;
    }
    names::set(host, &[b.addr(), b.addr()]);
    let nobody = crate::connect(&options).await.unwrap_err().to_string();
    assert!(nobody.contains("replica"), "{nobody}");
}
