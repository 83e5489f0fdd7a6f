//! Redisson itself and this library on the same locks.
//!
//! Without a JDK, Maven or what Maven downloads, these tests skip themselves, loudly; in CI that is a
//! failure. Set `LOCKTOPUS_SKIP_JDK` to the reason why that is right on a machine.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::future_not_send,
    reason = "helpers of tests are tests too, and cases share a thread"
)]

mod common;
#[path = "redisson/crashed.rs"]
mod crashed;
#[path = "redisson/exclusive.rs"]
mod exclusive;

use std::sync::Arc;

use common::raw::{Raw, Value};
use common::{CLIENTS, Cases, SHARDS, SOON, eventually, servers};
use locktopus_testbed::peers::redisson::{JavaThread, Redisson, Reply, jar_or_skip};
use locktopus_testbed::topology::{Deployment, TopologyKind};

/// Servers, the client to use on them, and a Redisson that uses them too.
#[derive(Clone)]
struct At {
    place: Arc<Deployment>,
    client: &'static str,
    java: Arc<Redisson>,
}

/// Starts every case for every client.
async fn everything_on(kind: TopologyKind) {
    let Some(jar) = jar_or_skip()
        .await
        .unwrap_or_else(|error| panic!("{error}"))
    else {
        return;
    };
    let place = Arc::new(servers(kind).await);
    let java = Redisson::start(&jar, &place.url()).await.unwrap();
    let java = Arc::new(java);
    let mut cases = Cases::new();
    for client in CLIENTS {
        let name = |case: &str| format!("{kind} {client} {case}");
        let at = At {
            place: Arc::clone(&place),
            client,
            java: Arc::clone(&java),
        };
        cases.add(name("Java holds"), exclusive::java_holds(at.clone()));
        cases.add(name("we hold"), exclusive::we_hold(at.clone()));
        cases.add(name("Java crashes"), crashed::holder(at, jar.clone()));
    }
    cases.all_pass().await;
    let java = Arc::into_inner(java).expect("the cases are done with it");
    java.exit().await.unwrap();
    drop(place);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standalone() {
    everything_on(TopologyKind::Standalone).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster() {
    everything_on(SHARDS).await;
}

/// Says something to a Java thread and takes whatever it answers.
async fn ask(thread: &mut JavaThread, command: &[&str]) -> Reply {
    thread
        .ask(command)
        .await
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Waits until a Java thread can only be woken by a message, or by the end of the lease.
async fn waits_for_message(java: &Redisson, thread: &JavaThread) {
    let mut watcher = java.thread();
    eventually("a Java thread that waits", SOON, async || {
        match ask(&mut watcher, &["self", "waits", thread.name()]).await {
            Reply::Done => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

/// Waits until this many clients listen for the release of a lock.
async fn listeners(place: &Deployment, name: &str, number: i64) {
    let mut raw = Raw::to(place.primary_for(name).await.unwrap()).await;
    let count = match place.kind() {
        TopologyKind::Cluster { .. } => "SHARDNUMSUB",
        _ => "NUMSUB",
    };
    let channel = format!("redisson_lock__channel:{{{name}}}");
    eventually("subscriptions", SOON, async || {
        match raw.say(&["PUBSUB", count, &channel]).await.list() {
            [_, Value::Int(seen)] if *seen == number => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}
