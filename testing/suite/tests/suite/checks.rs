//! Findings at connect time, before any lock is acquired.

#[path = "checks/absent.rs"]
mod absent;
use crate::common;
#[path = "checks/refused.rs"]
mod refused;
#[path = "checks/routed.rs"]
mod routed;

use std::sync::Arc;
use std::time::Duration;

use common::{
    At, CLIENTS, Cases, LONG, ONE_SENTINEL, SHARDS, chain, close, connect, each_client,
    each_client_on, eventually, locks, plain_url_for, servers, servers_with, unique, url, url_for,
};
use locktopus::{ConnectError, Finding, Severity};
use locktopus_servers::topology::{Knobs, Role, TopologyKind};
use tokio::net::TcpListener;
use tokio::time::Instant;

/// Connecting may take half a second per address; the rest is for a busy machine.
const BOUND: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eviction() {
    let knobs = Knobs {
        extra_args: ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]
            .map(str::to_owned)
            .to_vec(),
        ..Knobs::default()
    };
    let place = Arc::new(servers_with(TopologyKind::Standalone, knobs).await);
    each_client_on(&place, "eviction", eviction_is_found).await;
}

async fn eviction_is_found((place, client): At) -> String {
    let url = url_for(&place, client);
    // A warning, and then it connects.
    let locks = connect(&url).await;
    let findings = locks.diagnose().await.unwrap().findings;
    let worst = findings.first().unwrap();
    assert_eq!(
        (worst.severity, worst.check),
        (Severity::Danger, "eviction")
    );
    assert!(worst.message.contains("allkeys-lru"), "{worst}");
    close(locks).await;
    close(connect(&format!("{url}&checks=off")).await).await;
    let refused = locktopus::connect(&format!("{url}&checks=refuse")).await;
    let refused = refused.map(drop).unwrap_err();
    let ConnectError::Unsafe { findings, .. } = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(findings.first(), Some(worst));
    refused.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_database() {
    for kind in [TopologyKind::Standalone, SHARDS] {
        let place = Arc::new(servers(kind).await);
        // One after the other, because each examines the whole server.
        for client in CLIENTS {
            println!(
                "{}",
                neighbours_are_found((Arc::clone(&place), client)).await
            );
        }
    }
}

/// The first finding about other users of the database.
async fn shared(url: &str) -> Option<Finding> {
    let locks = connect(url).await;
    let findings = locks.diagnose().await.unwrap().findings;
    close(locks).await;
    let mut findings = findings.into_iter();
    findings.find(|finding| finding.check == "shared database")
}

async fn neighbours_are_found((place, client): At) -> String {
    // Each client in its own namespace, so that the keys of the other one count as foreign locks.
    let url = plain_url_for(&place, client);
    let namespaced = format!("{url}&namespace={client}:");
    let locks = connect(&namespaced).await;
    let (name, set) = (unique("lock"), unique("set"));
    let guard = locks.lock(&*name).acquire().await.unwrap();
    let mutex = locks.mutex(unique("mutex")).acquire().await.unwrap();
    let readers = locks.rw_lock(unique("rw")).read().acquire().await.unwrap();
    let permits = locks.permit_semaphore(unique("permits"));
    permits.initialise(2).await.unwrap();
    let permit = permits.permits(1).acquire().await.unwrap();
    // For a program with another namespace or none, locks are not foreign data.
    assert_eq!(shared(&format!("{url}&namespace=none:")).await, None);
    assert_eq!(shared(&url).await, None);

    let neighbour = format!("{client}-cache:{set}");
    let node = place.primary_for(&neighbour).await.unwrap();
    node.command(&["SET", &neighbour, "1"]).await.unwrap();
    let found = shared(&url).await.unwrap();
    assert_eq!(found.severity, Severity::Warning, "{found}");
    assert!(found.message.contains(":set"), "{found}");
    let with_namespace = shared(&format!("{url}&namespace=none:")).await.unwrap();
    assert_eq!(with_namespace.severity, Severity::Note, "{with_namespace}");
    node.command(&["DEL", &neighbour]).await.unwrap();
    permit.release().await.unwrap();
    readers.release().await.unwrap();
    mutex.release().await.unwrap();
    guard.release().await.unwrap();
    close(locks).await;
    found.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica() {
    let kind = TopologyKind::Sentinel {
        replicas: 1,
        sentinels: 1,
    };
    let place = Arc::new(servers(kind).await);
    each_client_on(&place, "replica", replica_is_found).await;
}

async fn replica_is_found((place, client): At) -> String {
    let replica = &place.nodes()[1];
    place
        .wait_role(replica, Role::Replica { linked: true }, LONG)
        .await
        .unwrap();
    let url = url(
        &format!("redis://{}", replica.addr()),
        &format!("client={client}"),
    );
    let begun = Instant::now();
    let refused = locktopus::connect(&format!("{url}&checks=refuse")).await;
    let refused = refused.map(drop).unwrap_err();
    let took = begun.elapsed();
    assert!(
        matches!(refused, ConnectError::Unsafe { .. }),
        "{refused:?}"
    );
    let said = chain(&refused);
    assert!(said.contains("replica"), "{said}");
    assert!(took < BOUND, "{took:?}");

    let locks = connect(&format!("{url}&checks=off")).await;
    // Short, because fred cannot tell whether its last attempt ran, and tries to release it until
    // then.
    let request = locks
        .lock(unique("replica"))
        .fixed_lease(Duration::from_secs(1));
    let error = request.try_acquire().await.unwrap_err();
    assert!(chain(&error).contains("READONLY"), "{}", chain(&error));
    close(locks).await;
    format!("after {took:.2?}: {said}")
}

/// One primary is dead or frozen and has no replica. All others serve their slots.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_primary_away() {
    for away in absent::WAYS {
        let knobs = Knobs {
            full_coverage: false,
            ..Knobs::default()
        };
        let place = Arc::new(servers_with(SHARDS, knobs).await);
        absent::take_away(&place, away).await;
        let mut cases = Cases::new();
        for client in CLIENTS {
            for checks in ["off", "warn", "refuse"] {
                for host in ["127.0.0.1", "localhost"] {
                    let at = (Arc::clone(&place), client);
                    cases.add(
                        format!("{away:?} {client} checks={checks} {host}"),
                        absent::others_serve(at, checks, host),
                    );
                }
            }
        }
        cases.all_pass().await;
    }
}

/// With the option set, a program may start before its servers do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_come_later() {
    let mut cases = Cases::new();
    for kind in [TopologyKind::Standalone, ONE_SENTINEL, SHARDS] {
        let case = |client| absent::begins_without(kind, client);
        cases.each(&format!("{kind} lazy"), case);
    }
    cases.all_pass().await;
}

/// A refusal is an answer, whether by a user's rights, a server or a proxy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_single_refusal() {
    let place = Arc::new(servers(TopologyKind::Standalone).await);
    let mut cases = Cases::at_once(8);
    for client in CLIENTS {
        let usual = refused::COMMANDS.split(' ').map(|command| (command, ""));
        for (command, options) in usual.chain(refused::OF_MODES) {
            let name = |how: &str| format!("{client} {command} {how} {options}");
            let absent = refused::absent(command, client, options);
            cases.add(name("absent"), absent);
            let denied = refused::denied(Arc::clone(&place), command, client, options);
            cases.add(name("denied"), denied);
        }
    }
    cases.all_pass().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_missing_right() {
    let mut cases = Cases::new();
    for kind in [TopologyKind::Standalone, SHARDS] {
        let place = Arc::new(servers(kind).await);
        let case = refused::all_that_is_missing_is_listed;
        cases.each_on(&place, "missing rights", case);
    }
    cases.all_pass().await;
}

#[tokio::test]
async fn keys_on_several_servers() {
    let (mut places, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let place = servers(TopologyKind::Standalone).await;
        clients.push(locktopus::connect_client(&place.url()).await.unwrap());
        places.push(place);
    }
    routed::calls_go_alone(clients.try_into().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_there() {
    let mut cases = Cases::new();
    cases.each("refused", refused_connections);
    cases.each("silent", silent_servers);
    cases.all_pass().await;
}

/// The port has no listener.
async fn refused_connections(client: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    drop(listener);
    unreachable_everywhere(client, &addr).await
}

/// A listener accepts and never answers.
async fn silent_servers(client: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    // The backlog accepts connections although the listener does not.
    let outcome = unreachable_everywhere(client, &addr).await;
    drop(listener);
    outcome
}

async fn unreachable_everywhere(client: &str, addr: &str) -> String {
    let mut slowest = Duration::ZERO;
    let mut said = String::new();
    for (scheme, path) in [
        ("redis", ""),
        ("rediss", ""),
        ("redis-cluster", ""),
        ("redis-sentinel", "/mymaster"),
    ] {
        let url = format!("{scheme}://someone:hunter2@{addr}{path}?client={client}");
        let begun = Instant::now();
        let error = locktopus::connect(&url).await.map(drop).unwrap_err();
        let took = begun.elapsed();
        assert!(took < BOUND, "{scheme} {took:?}");
        slowest = slowest.max(took);
        assert!(
            matches!(error, ConnectError::Unreachable { .. }),
            "{error:?}"
        );
        said = chain(&error);
        assert!(said.contains(addr), "{said}");
        assert!(
            !format!("{said} {error:?}").contains("hunter2"),
            "{said} {error:?}"
        );
    }
    format!("slowest {slowest:.2?}; {said}")
}

/// Servers that fail after the connect are in `failover`. This one comes back, and the client finds
/// it without help.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_comes_back() {
    each_client("comes back", comes_back).await;
}

async fn comes_back(client: &'static str) -> String {
    let place = servers(TopologyKind::Standalone).await;
    let locks = locks(&place, client).await;
    let node = &place.nodes()[0];
    node.crash().await.unwrap();
    let error = locks.lock(unique("away")).try_acquire().await.unwrap_err();
    node.start().await.unwrap();
    let begun = Instant::now();
    let guard = eventually("a grant", LONG, async || {
        locks.lock(unique("back")).acquire().await
    })
    .await;
    let took = begun.elapsed();
    guard.release().await.unwrap();
    close(locks).await;
    format!(
        "usable {took:.2?} after its start; meanwhile: {}",
        chain(&error)
    )
}
