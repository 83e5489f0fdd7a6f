//! The conformance suite on every topology, with servers as child processes.
//!
//! `LOCKTOPUS_CONFORMANCE=part-of-a-name` runs only some cases.

use crate::common;
use crate::conformance;

use std::sync::Arc;

use common::{SHARDS, servers, servers_with_tls};
use conformance::{BOTH, ONE, ROUTED, passes};
use locktopus_conformance::Suite;
use locktopus_servers::topology::TopologyKind;

async fn every_client_on(kind: TopologyKind) {
    let place = Arc::new(servers(kind).await);
    for clients in ONE {
        passes(&place, clients).await;
    }
    passes(&place, BOTH).await;
}

/// If only the way to the server differs, both clients together are enough.
async fn both_clients_on(kind: TopologyKind) {
    passes(&Arc::new(servers(kind).await), BOTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory() {
    let suite = Suite::new(|| async {
        locktopus::connect_backend("memory:conformance")
            .await
            .unwrap()
    });
    suite.shared_waiters().run().await.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standalone() {
    every_client_on(TopologyKind::Standalone).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinel() {
    both_clients_on(TopologyKind::SENTINEL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster() {
    every_client_on(TopologyKind::CLUSTER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_by_the_router_of_redis_rs() {
    let place = Arc::new(servers(TopologyKind::CLUSTER).await);
    for clients in ROUTED {
        passes(&place, clients).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_without_replicas() {
    let place = Arc::new(servers(SHARDS).await);
    passes(&place, BOTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls() {
    both_clients_on(TopologyKind::Tls).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinel_with_tls() {
    let place = Arc::new(servers_with_tls(TopologyKind::SENTINEL).await);
    passes(&place, BOTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_with_tls() {
    let place = Arc::new(servers_with_tls(TopologyKind::CLUSTER).await);
    passes(&place, BOTH).await;
}

/// Redlock over all five, and every kind on one of them: the servers of a quorum are independent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quorum() {
    let place = Arc::new(servers(TopologyKind::QUORUM).await);
    conformance::quorum::passes(&place).await;
    passes(&place, BOTH).await;
}
