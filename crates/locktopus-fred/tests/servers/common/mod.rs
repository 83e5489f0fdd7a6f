//! Shared by all tests: servers, a client for them, and a stand-in for the hub.
#![allow(dead_code, unused_imports, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod hub;
use std::future::Future;
use std::time::{Duration, Instant};

use bytes::Bytes;
pub(crate) use locktopus_fred::{FredClient, connect};
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{
    ClientError, ConnectOptions, Credentials, HostPort, RedisClient, Reply, Route, Secret, Servers,
};
use locktopus_servers::rights;
use locktopus_servers::topology::{Deployment, Knobs, Node, ProviderKind, Spec, TopologyKind};

pub(crate) use hub::Hub;

/// Long enough for any election on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The client name of the clients under test. Sentinels have connections too.
pub(crate) const NAME: &str = "locktopus-test";

pub(crate) async fn servers(kind: TopologyKind) -> Deployment {
    start(Spec::new(kind)).await
}

/// The tests' user has only the permissions that locks need, and those for the tests' own data.
const USER: &str = "suite-user";
const PASSWORD: &str = "suite-secret";
const DATA: &str = "~* &* +@read +@write +@scripting +client +acl|whoami +debug";

pub(crate) async fn start(spec: Spec) -> Deployment {
    let mut knobs = spec.knobs().clone();
    let rules = rights::of_the_suite(spec.kind());
    let user = format!("{USER} on >{PASSWORD} {rules} {DATA}");
    knobs.users.push(user);
    let rules = rights::of_sentinels();
    let user = format!("{USER} on >{PASSWORD} {rules}");
    knobs.sentinel_users.push(user);
    let spec = spec.with_knobs(knobs);
    locktopus_servers::topology::start(ProviderKind::Plain, &spec)
        .await
        .unwrap()
}

pub(crate) fn address(node: &Node) -> HostPort {
    HostPort {
        host: node.addr().ip().to_string(),
        port: node.addr().port(),
    }
}

pub(crate) fn options(deployment: &Deployment) -> ConnectOptions {
    let nodes = || deployment.nodes().iter().map(address).collect::<Vec<_>>();
    let mut options = ConnectOptions::new(match deployment.kind() {
        TopologyKind::Sentinel { .. } => Servers::Sentinel {
            sentinels: deployment.sentinels().iter().map(address).collect(),
            master_name: deployment.master_name().to_owned(),
        },
        TopologyKind::Cluster { .. } => Servers::Cluster(nodes()),
        _ => Servers::Standalone(nodes().remove(0)),
    });
    options.client_name = Some(NAME.to_owned());
    options.credentials = Some(Credentials {
        username: Some(USER.to_owned()),
        password: Secret::new(PASSWORD),
    });
    options.sentinel_credentials = options.credentials.clone();
    options
}

pub(crate) async fn client(deployment: &Deployment) -> FredClient {
    locktopus_fred::connect(&options(deployment)).await.unwrap()
}

pub(crate) fn route(key: &str) -> Route {
    Route::Slot(key_slot(key.as_bytes()))
}

/// Sends one command as the backend does: with a deadline, reporting when it passed.
pub(crate) async fn call(
    client: &FredClient,
    key: &str,
    words: &[&str],
) -> Result<Reply, ClientError> {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let answer = client.command(route(key), &words);
    match tokio::time::timeout(Duration::from_millis(800), answer).await {
        Ok(outcome) => outcome,
        Err(_elapsed) => {
            client.timed_out(route(key));
            Err(ClientError::MaybeExecuted("deadline".to_owned()))
        }
    }
}

pub(crate) async fn read_int(client: &FredClient, key: &str) -> i64 {
    match call(client, key, &["GET", key]).await.unwrap() {
        Reply::Bytes(digits) => std::str::from_utf8(&digits).unwrap().parse().unwrap(),
        Reply::Nil => 0,
        other => panic!("{key} holds {other:?}"),
    }
}

/// Repeats an idempotent command until it succeeds. Returns how long that took.
pub(crate) async fn until_ok(client: &FredClient, key: &str, words: &[&str]) -> (Reply, Duration) {
    let begin = Instant::now();
    let mut last = None;
    while begin.elapsed() < PATIENCE {
        match call(client, key, words).await {
            Ok(reply) => return (reply, begin.elapsed()),
            Err(failure) => last = Some(failure),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{words:?} never worked: {last:?}");
}

/// Waits for a condition.
pub(crate) async fn eventually<F: Future<Output = bool>>(
    what: &str,
    mut condition: impl FnMut() -> F,
) {
    let begin = Instant::now();
    while !condition().await {
        assert!(begin.elapsed() < PATIENCE, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn bytes(text: &str) -> Reply {
    Reply::Bytes(Bytes::copy_from_slice(text.as_bytes()))
}

/// The connection ids that `CLIENT LIST` shows for one kind of client.
pub(crate) async fn connections(node: &Node, kind: &str) -> Vec<String> {
    let list = node
        .command(&["CLIENT", "LIST", "TYPE", kind])
        .await
        .unwrap()
        .text();
    let own = |line: &&str| line.contains(&format!(" name={NAME} "));
    list.lines()
        .filter(own)
        .filter_map(|line| Some(line.split_once("id=")?.1.split_once(' ')?.0.to_owned()))
        .collect()
}

/// Kills all connections of one kind. Returns how many there were.
pub(crate) async fn kill_connections(node: &Node, kind: &str) -> usize {
    let ids = connections(node, kind).await;
    for id in &ids {
        // It may have closed already.
        let _gone = node.command(&["CLIENT", "KILL", "ID", id]).await;
    }
    ids.len()
}
