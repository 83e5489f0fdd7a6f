//! Shared by the tests of every client: a topology, a client for it, and waiting on conditions.
//!
//! Each client's test program includes this folder, and names its [`Client`] and [`connect`].
#![allow(
    dead_code,
    unreachable_pub,
    reason = "not every client needs all of it"
)]

use std::time::Duration;

use bytes::Bytes;
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{
    Channel, ChannelFlavour, ClientError, ConnectOptions, Credentials, HostPort, PushEvent,
    RedisClient, Reply, Route, Secret, Servers,
};
use locktopus_servers::rights;
use locktopus_servers::topology::{
    Deployment, Knobs, Node, ProviderKind, Spec, TopologyKind, start,
};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout};

pub(crate) use crate::{Client, connect};

/// The time limit that the backend gives one command.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// Longest wait for anything that must happen.
pub const LONG: Duration = Duration::from_secs(20);

/// Three primaries without replicas, for tests that kill nothing.
pub const SHARDS: TopologyKind = TopologyKind::Cluster {
    primaries: 3,
    replicas_each: 0,
};

/// One replica and one sentinel, for tests that kill nothing.
pub const WATCHED: TopologyKind = TopologyKind::Sentinel {
    replicas: 1,
    sentinels: 1,
};

/// The name of the clients under test. Sentinels have connections too.
pub const NAME: &str = "locktopus-test";

pub async fn servers(kind: TopologyKind) -> Deployment {
    servers_with(kind, Knobs::default()).await
}

/// The tests' user has only the permissions that locks need, and those for the tests' own data.
const USER: &str = "suite-user";
const PASSWORD: &str = "suite-secret";
const DATA: &str = "~* &* +@read +@write +@scripting +client +acl|whoami +debug";

pub async fn servers_with(kind: TopologyKind, mut knobs: Knobs) -> Deployment {
    let rules = rights::of_the_suite(kind);
    let user = format!("{USER} on >{PASSWORD} {rules} {DATA}");
    knobs.users.push(user);
    let rules = rights::of_sentinels();
    let user = format!("{USER} on >{PASSWORD} {rules}");
    knobs.sentinel_users.push(user);
    start(ProviderKind::Plain, &Spec::new(kind).with_knobs(knobs))
        .await
        .unwrap()
}

pub fn address(node: &Node) -> HostPort {
    HostPort {
        host: node.addr().ip().to_string(),
        port: node.addr().port(),
    }
}

pub fn options(deployment: &Deployment) -> ConnectOptions {
    let nodes: Vec<_> = deployment.nodes().iter().map(address).collect();
    let mut options = ConnectOptions::new(match deployment.kind() {
        TopologyKind::Cluster { .. } => Servers::Cluster(nodes),
        TopologyKind::Sentinel { .. } => Servers::Sentinel {
            sentinels: deployment.sentinels().iter().map(address).collect(),
            master_name: deployment.master_name().to_owned(),
        },
        _ => Servers::Standalone(nodes[0].clone()),
    });
    options.client_name = Some(NAME.to_owned());
    options.credentials = login(USER, PASSWORD);
    options.sentinel_credentials = options.credentials.clone();
    options
}

pub fn login(username: &str, password: &str) -> Option<Credentials> {
    Some(Credentials {
        username: Some(username.to_owned()),
        password: Secret::new(password),
    })
}

pub async fn client(deployment: &Deployment) -> Client {
    connect(&options(deployment)).await.unwrap()
}

pub fn route(key: &str) -> Route {
    Route::Slot(key_slot(key.as_bytes()))
}

/// Sends a command for the slot of `key` as the backend does: with a time limit, reporting a
/// timeout to the adapter.
pub async fn call(client: &Client, key: &str, words: &[&str]) -> Result<Reply, ClientError> {
    let route = route(key);
    let args: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
    match timeout(PATIENCE, client.command(route, &args)).await {
        Ok(answer) => answer,
        Err(_) => {
            client.timed_out(route);
            Err(ClientError::MaybeExecuted("the caller gave up".to_owned()))
        }
    }
}

/// Repeats `attempt` until it succeeds.
pub async fn eventually<T, E: std::fmt::Debug>(
    what: &str,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        match attempt().await {
            Ok(value) => return value,
            Err(error) if Instant::now() > deadline => panic!("{what}: {error:?}"),
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}

pub fn channel(name: &str, flavour: ChannelFlavour) -> Channel {
    Channel {
        name: Bytes::copy_from_slice(name.as_bytes()),
        flavour,
    }
}

/// Sends a command until it succeeds.
pub async fn until_ok(client: &Client, key: &str, words: &[&str]) -> Reply {
    let what = format!("{words:?}");
    eventually(&what, async || call(client, key, words).await).await
}

/// Waits for a condition.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    eventually(what, async || {
        condition().await.then_some(()).ok_or("not yet")
    })
    .await;
}

pub async fn number(client: &Client, key: &str) -> i64 {
    match until_ok(client, key, &["GET", key]).await {
        Reply::Bytes(digits) => std::str::from_utf8(&digits).unwrap().parse().unwrap(),
        Reply::Nil => 0,
        other => panic!("{key} holds {other:?}"),
    }
}

pub fn bytes(text: &str) -> Reply {
    Reply::Bytes(Bytes::copy_from_slice(text.as_bytes()))
}

/// Waits for a message on each of `names`. Skips other messages and events.
pub async fn hear_all(events: &mut UnboundedReceiver<PushEvent>, names: &[String]) {
    let mut missing: Vec<_> = names.to_vec();
    let heard = async {
        while !missing.is_empty() {
            if let PushEvent::Message { channel, .. } = events.recv().await.unwrap() {
                missing.retain(|name| channel != name.as_bytes());
            }
        }
    };
    let outcome = timeout(LONG, heard).await;
    assert!(
        outcome.is_ok(),
        "nothing heard on {} channels: {missing:?}",
        missing.len()
    );
}

pub async fn publish(client: &Client, channel: &Channel, payload: &str) {
    let name = std::str::from_utf8(&channel.name).unwrap();
    let verb = match channel.flavour {
        ChannelFlavour::Sharded => "SPUBLISH",
        ChannelFlavour::Plain => "PUBLISH",
    };
    until_ok(client, name, &[verb, name, payload]).await;
}

/// Publishes on every channel and waits until each message has arrived.
pub async fn all_heard(
    client: &Client,
    events: &mut UnboundedReceiver<PushEvent>,
    channels: &[Channel],
) {
    for channel in channels {
        publish(client, channel, "1").await;
    }
    let name = |channel: &Channel| String::from_utf8(channel.name.to_vec()).unwrap();
    let names: Vec<_> = channels.iter().map(name).collect();
    hear_all(events, &names).await;
}

/// Waits until the client reports that messages may have been missed.
pub async fn disrupted(events: &mut UnboundedReceiver<PushEvent>) -> &'static str {
    let heard = async {
        loop {
            if let PushEvent::Disrupted { reason } = events.recv().await.unwrap() {
                return reason;
            }
        }
    };
    timeout(LONG, heard).await.expect("a disruption")
}

/// Does what the layer above does after a disruption.
pub async fn subscribe_again(client: &Client, channels: &[Channel]) {
    eventually("subscribing again", async || {
        client.subscribe(channels).await
    })
    .await;
}

/// The connections of the clients under test that `CLIENT LIST` shows for one type.
pub async fn connections(node: &Node, kind: &str) -> usize {
    let list = ["CLIENT", "LIST", "TYPE", kind];
    let list = node.command(&list).await.unwrap().text();
    list.matches(&format!(" name={NAME} ")).count()
}

async fn id_of(node: &Node) -> String {
    node.command(&["CLUSTER", "MYID"]).await.unwrap().text()
}

/// Begins to move a slot.
pub async fn begin_migration(from: &Node, to: &Node, slot: u16) {
    let (from_id, to_id, slot) = (id_of(from).await, id_of(to).await, slot.to_string());
    to.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id])
        .await
        .unwrap();
    from.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id])
        .await
        .unwrap();
}

/// Hands a slot over, to the new owner first, as the servers' documentation requires.
pub async fn end_migration(servers: &Deployment, from: &Node, to: &Node, slot: u16) {
    let (to_id, slot) = (id_of(to).await, slot.to_string());
    let assign = ["CLUSTER", "SETSLOT", &slot, "NODE", &to_id];
    to.command(&assign).await.unwrap();
    from.command(&assign).await.unwrap();
    for node in servers.nodes() {
        if node.name() != to.name() && node.name() != from.name() {
            node.command(&assign).await.unwrap();
        }
    }
}
