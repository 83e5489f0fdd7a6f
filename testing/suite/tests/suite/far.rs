//! Distant servers with default settings, as a user with a plain URL has them.

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use common::{
    CLIENTS, HANDED, HANDED_LEASE, LONG, ONE_SENTINEL, SHARDS, SOON, close, close_both, connect,
    eventually, unique, url,
};
use locktopus::{LockKind, LockName, LockTarget, Locktopus, NodeView, QuorumBackend};
use locktopus_servers::topology::{Deployment, ProviderKind, Spec, TopologyKind, start};
use tokio::time::{Instant, timeout};

/// Across an ocean.
const FARTHEST: Duration = Duration::from_millis(150);
const FAR: Duration = Duration::from_millis(40);

async fn away(spec: Spec, round_trip: Duration) -> Deployment {
    let spec = spec.with_round_trip(round_trip);
    start(ProviderKind::Plain, &spec).await.unwrap()
}

const THREE: TopologyKind = TopologyKind::Quorum { nodes: 3 };

/// Clients like two processes pass a lock to each other.
async fn a_lock_goes_round(one: &Locktopus, two: &Locktopus) {
    let name = unique("far");
    let first = one.lock(&name).acquire().await.unwrap();
    let request = two.lock(&name).strategy(HANDED).fixed_lease(HANDED_LEASE);
    let waiting = tokio::spawn(request.into_future());
    tokio::time::sleep(FARTHEST * 4).await;
    assert!(!waiting.is_finished(), "two holders");
    first.release().await.unwrap();
    let second = timeout(SOON, waiting).await.unwrap();
    let second = second.unwrap().unwrap();
    second.release().await.unwrap();
}

/// `wait_at_most` limits the wait for a held lock, not for the answer, so it may be shorter than
/// the round trip.
async fn a_short_wait_takes_a_free_lock(locks: &Locktopus) {
    let name = unique("free");
    // The connect is separate: the lock's server may not have been used before.
    let guard = locks.lock(&name).acquire().await.unwrap();
    guard.release().await.unwrap();
    let brief = locks.lock(&name).wait_at_most(FAR / 10).acquire();
    brief.await.unwrap().release().await.unwrap();
}

async fn with_defaults(spec: Spec) {
    let place = away(spec, FARTHEST).await;
    for client in CLIENTS {
        let url = url(&place.url(), &format!("client={client}"));
        let (one, two) = tokio::join!(connect(&url), connect(&url));
        a_lock_goes_round(&one, &two).await;
        // Further than a busy server in the same room.
        place.set_round_trip(FAR * 2);
        a_short_wait_takes_a_free_lock(&one).await;
        place.set_round_trip(FARTHEST);
        close_both(one, two).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standalone_with_defaults() {
    with_defaults(Spec::new(TopologyKind::Standalone)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_with_defaults() {
    with_defaults(Spec::new(TopologyKind::Tls)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinel_with_defaults() {
    with_defaults(Spec::new(ONE_SENTINEL)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_with_defaults() {
    with_defaults(Spec::new(SHARDS)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinel_with_tls_and_defaults() {
    with_defaults(Spec::new(ONE_SENTINEL).with_tls()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_with_tls_and_defaults() {
    with_defaults(Spec::new(SHARDS).with_tls()).await;
}

/// Short, because new nodes do not vote before the longest lease is over. Long enough for four
/// consecutive renewals without an answer within a node's default limit of one second: a machine at
/// three times its load may stop for longer than one of them.
const LONGEST: Duration = Duration::from_secs(6);

/// Neighbouring nodes use different client libraries.
fn quorum_on(place: &Deployment, options: &str) -> QuorumBackend {
    let clients = CLIENTS.iter().cycle();
    let urls: Vec<_> = std::iter::zip(place.urls(), clients)
        .map(|(base, client)| url(&base, &format!("client={client}{options}")))
        .collect();
    locktopus::quorum_of(&urls, |builder| builder.max_lease(LONGEST)).unwrap()
}

fn locks_on(quorum: QuorumBackend) -> Locktopus {
    let locks = Locktopus::builder(quorum).renewed_lease(LONGEST);
    locks.build().unwrap()
}

/// Waits until every node knows the holder. A node that does not vote yet receives the lock with a
/// renewal. Until then all others must answer, and one late answer would fail the test.
async fn is_held_everywhere(quorum: &QuorumBackend, name: &str) {
    let kind = LockKind::Mutex(Arc::default());
    let target = LockTarget::new(LockName::new(name).unwrap(), kind);
    eventually("held on all nodes", LONG, async || {
        let nodes = quorum.inspect_nodes(&target, Instant::now() + SOON).await;
        let nodes = nodes.unwrap();
        let holds = |node: &NodeView| node.state.as_ref().is_ok_and(|s| s.holder().is_some());
        if nodes.iter().all(holds) {
            Ok(())
        } else {
            Err(nodes)
        }
    })
    .await;
}

async fn quorum(round_trip: Duration) {
    let place = away(Spec::new(THREE), round_trip).await;
    let nodes = quorum_on(&place, "");
    let (one, two) = (locks_on(nodes.clone()), locks_on(quorum_on(&place, "")));
    let name = unique("quorum");
    let first = eventually("the first grant", LONG, async || {
        one.mutex(&name).acquire().await
    })
    .await;
    is_held_everywhere(&nodes, &name).await;
    let mut waiting = tokio::spawn(two.mutex(&name).into_future());
    // Half a lease longer than it lasts without a renewal.
    let held = timeout(LONGEST * 3 / 2, &mut waiting).await;
    assert!(
        held.is_err(),
        "not kept by its renewals: {:?}, {held:?}",
        first.ensure_valid()
    );
    first.ensure_valid().unwrap();
    first.release().await.unwrap();
    let second = timeout(LONG, waiting).await.unwrap().unwrap().unwrap();
    second.release().await.unwrap();
    close_both(one, two).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quorum_far_away_grants() {
    quorum(FAR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quorum_farthest_away_grants() {
    quorum(FARTHEST).await;
}

/// A call gives up before there is a connection, which takes two exchanges at least. A later call
/// finds it made, instead of starting again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quorum_is_connected_to_however_impatient_its_calls_are() {
    let place = away(Spec::new(THREE), FARTHEST * 2).await;
    let locks = locks_on(quorum_on(&place, "&timeout=500ms&connect_timeout=5s"));
    let name = unique("impatient");
    let guard = eventually("the first grant", LONG, async || {
        locks.mutex(&name).acquire().await
    });
    drop(guard.await);
    close(locks).await;
}
