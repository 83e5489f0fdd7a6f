//! Shared by the integration tests: servers, locks on them, and cases that run concurrently.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    unused_macros,
    clippy::unwrap_used,
    clippy::future_not_send,
    reason = "helpers of tests are tests too, cases share a thread, and each test program uses its part"
)]

pub mod cases;
pub mod raw;

use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use locktopus::{CohortSettings, Locktopus, WaitStrategy};
use locktopus_servers::rights;
use locktopus_servers::topology::{
    Deployment, Knobs, ProviderKind, Spec, TopologyKind, slot_of, start,
};
use tokio::time::{Instant, sleep};

pub use cases::{At, Cases, each_client, each_client_alone, each_client_on, one_case};

/// Both tests of a file: all cases on one server, and all on a cluster.
macro_rules! on_one_server_and_on_a_cluster {
    ($everything_on:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn standalone() {
            $everything_on(locktopus_servers::topology::TopologyKind::Standalone).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn cluster() {
            $everything_on($crate::common::SHARDS).await;
        }
    };
}
pub(crate) use on_one_server_and_on_a_cluster;

/// Every client library, as the option `client` of a URL names it.
pub const CLIENTS: [&str; 2] = ["redis", "fred"];

/// Longest wait for something that should happen at once. Generous, for a busy machine. A heartbeat
/// that must not be what wakes a waiter is longer.
pub const SOON: Duration = Duration::from_secs(5);

/// Longest wait for a program in another language, which may have to start, to compile itself, and
/// to wait for CPU. Heartbeats that must not be what wakes a waiter are longer.
pub const PATIENT: Duration = Duration::from_secs(60);

/// Longest wait for a failover and its consequences.
pub const LONG: Duration = Duration::from_secs(40);

/// Three primaries and no replicas: enough if no server is killed.
pub const SHARDS: TopologyKind = TopologyKind::Cluster {
    primaries: 3,
    replicas_each: 0,
};

/// A primary and a sentinel: enough if no server is killed.
pub const ONE_SENTINEL: TopologyKind = TopologyKind::Sentinel {
    replicas: 0,
    sentinels: 1,
};

/// A strategy whose heartbeat cannot wake a waiter within a test.
pub const ONLY_MESSAGES: WaitStrategy = WaitStrategy::Notify {
    heartbeat: Duration::from_secs(90),
};

/// A queueing strategy whose heartbeat cannot serve a waiter within a test, if its lease is
/// [`HANDED_LEASE`].
pub const HANDED: WaitStrategy = WaitStrategy::HandOff {
    heartbeat: Duration::from_secs(90),
    confirm: false,
};

/// Short leases shorten the heartbeat, because a pushed grant is worth only what is left of its
/// lease since the last heartbeat.
pub const HANDED_LEASE: Duration = Duration::from_secs(90 * 12);

pub async fn servers(kind: TopologyKind) -> Deployment {
    servers_with(kind, Knobs::default()).await
}

/// With TLS, also between the nodes.
pub async fn servers_with_tls(kind: TopologyKind) -> Deployment {
    started(with_users(kind, Knobs::default()).with_tls()).await
}

/// With users that have exactly the rights that locks need; [`url_for`] logs in as one.
pub async fn servers_with(kind: TopologyKind, knobs: Knobs) -> Deployment {
    started(with_users(kind, knobs)).await
}

fn with_users(kind: TopologyKind, mut knobs: Knobs) -> Spec {
    if kind == SHARDS {
        // No node takes over here, and nodes must not declare each other dead if the machine stops
        // for a second: then all of them refuse requests for at least as long.
        knobs.node_timeout_ms = 15_000;
    }
    let rules = rights::of_the_suite(kind);
    knobs.users.push(format!("{USER} on >{PASSWORD} {rules}"));
    let rules = rights::of_sentinels();
    knobs
        .sentinel_users
        .push(format!("{USER} on >{PASSWORD} {rules}"));
    Spec::new(kind).with_knobs(knobs)
}

async fn started(spec: Spec) -> Deployment {
    match start(ProviderKind::Plain, &spec).await {
        Ok(deployment) => deployment,
        Err(error) => panic!("{}: {error}", spec.kind()),
    }
}

/// `base` with options such as `client=fred&checks=off` appended.
pub fn url(base: &str, options: &str) -> String {
    let joint = if base.contains('?') { '&' } else { '?' };
    format!("{base}{joint}{options}")
}

/// The user of [`url_for`], on servers and on sentinels.
const USER: &str = "suite-user";
const PASSWORD: &str = "suite-secret";

/// The login of a user with exactly the rights that locks need.
pub const LOGIN: &str = "suite-user:suite-secret@";

/// The URL of a deployment for one client, with the login of a user with exactly the rights that
/// locks need.
pub fn url_for(deployment: &Deployment, client: &str) -> String {
    let url = plain_url_for(deployment, client).replacen("://", &format!("://{LOGIN}"), 1);
    match deployment.kind() {
        TopologyKind::Sentinel { .. } => {
            format!("{url}&sentinel_user={USER}&sentinel_password={PASSWORD}")
        }
        _ => url,
    }
}

/// The URL of a deployment for one client, without a login.
///
/// A server without a failover may answer slowly on a busy machine. With a failover, clients must
/// switch as soon as they do by default.
pub fn plain_url_for(deployment: &Deployment, client: &str) -> String {
    let patience = match deployment.kind() {
        TopologyKind::Sentinel { replicas: 1.., .. }
        | TopologyKind::Cluster {
            replicas_each: 1.., ..
        } => "",
        _ => "&connect_timeout=5s",
    };
    url(&deployment.url(), &format!("client={client}{patience}"))
}

pub async fn locks(deployment: &Deployment, client: &str) -> Locktopus {
    connect(&url_for(deployment, client)).await
}

/// As [`locks`], but tasks do not pass a lock to each other: every waiter asks the server itself.
pub async fn locks_apart(deployment: &Deployment, client: &str) -> Locktopus {
    let apart = CohortSettings {
        turns: 1,
        ..CohortSettings::default()
    };
    let url = url_for(deployment, client);
    locktopus::connect_with(&url, |builder| builder.cohort(apart))
        .await
        .unwrap()
}

pub async fn connect(url: &str) -> Locktopus {
    locktopus::connect(url)
        .await
        .unwrap_or_else(|error| panic!("{url}: {}", chain(&error)))
}

/// Shuts a `Locktopus` down and checks that it leaves nothing behind.
///
/// An attempt that was cut off before its answer is checked once more after a call's time.
pub async fn close(locks: Locktopus) {
    let grace = locks.backend().call_timeout + SOON;
    assert_eq!(locks.shutdown(grace).await.abandoned, 0, "releases left");
}

pub async fn close_both(one: Locktopus, other: Locktopus) {
    close(one).await;
    close(other).await;
}

/// A name that no other case uses.
pub fn unique(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{what}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A unique name that a cluster of `primaries` keeps on its primary number `node` at first.
pub fn unique_of(primaries: usize, node: usize, what: &str) -> String {
    loop {
        let name = unique(what);
        if usize::from(slot_of(&name)) * primaries / 16_384 == node {
            return name;
        }
    }
}

/// Repeats `attempt` until it succeeds; panics with the last failure if that takes too long.
pub async fn eventually<T, E: Debug>(
    what: &str,
    within: Duration,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let deadline = Instant::now() + within;
    loop {
        match attempt().await {
            Ok(value) => return value,
            Err(error) if Instant::now() > deadline => {
                panic!("{what}: not within {within:?}, last {error:?}")
            }
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Repeats a question until the answer is the expected one, like `eventually`.
pub async fn becomes<T: PartialEq + Debug>(
    what: &str,
    within: Duration,
    expected: T,
    mut ask: impl AsyncFnMut() -> T,
) {
    let attempt = async || match ask().await {
        found if found == expected => Ok(()),
        other => Err(other),
    };
    eventually(what, within, attempt).await;
}

/// An error with all its sources, as a user would log it.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
