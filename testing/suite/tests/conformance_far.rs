//! Runs the conformance suite on distant servers: behind proxies that delay every byte.
//!
//! The default run covers every kind of deployment, both clients and TLS. `LOCKTOPUS_FAR=all` adds
//! each kind at each distance through each client alone.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "suite/common/mod.rs"]
mod common;
#[path = "suite/conformance/mod.rs"]
mod conformance;

use std::sync::Arc;
use std::time::Duration;

use common::{ONE_SENTINEL, SHARDS};
use conformance::{BOTH, ONE, passes_far};
use locktopus_servers::skipped;
use locktopus_servers::topology::{Deployment, ProviderKind, Spec, TopologyKind, start};

/// The extra time of an exchange: in the same building, in the same country, across an ocean.
const NEAR: Duration = Duration::from_millis(1);
const FAR: Duration = Duration::from_millis(40);
const FARTHEST: Duration = Duration::from_millis(150);

/// Redlock needs several independent servers.
const THREE: TopologyKind = TopologyKind::Quorum { nodes: 3 };

async fn away(spec: Spec, round_trip: Duration) -> Arc<Deployment> {
    let spec = spec.with_round_trip(round_trip);
    match start(ProviderKind::Plain, &spec).await {
        Ok(deployment) => Arc::new(deployment),
        Err(error) => panic!("{}, {round_trip:?} away: {error}", spec.kind()),
    }
}

async fn both_on(spec: Spec, round_trip: Duration) {
    passes_far(&away(spec, round_trip).await, BOTH, round_trip).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standalone_near() {
    both_on(Spec::new(TopologyKind::Standalone), NEAR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_farthest() {
    both_on(Spec::new(TopologyKind::Tls), FARTHEST).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinel_far() {
    both_on(Spec::new(ONE_SENTINEL), FAR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_far() {
    both_on(Spec::new(SHARDS), FAR).await;
}

/// The most exchanges before the first lock: a handshake for each node, and the slot map.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_with_tls_farthest() {
    both_on(Spec::new(SHARDS).with_tls(), FARTHEST).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quorum_far() {
    conformance::quorum::passes_far(&away(Spec::new(THREE), FAR).await, FAR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quorum_farthest() {
    conformance::quorum::passes_far(&away(Spec::new(THREE), FARTHEST).await, FARTHEST).await;
}

/// The tests outside the default run.
async fn the_rest_of(spec: Spec) {
    if std::env::var("LOCKTOPUS_FAR").as_deref() != Ok("all") {
        let tls = if spec.tls() { " with TLS" } else { "" };
        let kind = spec.kind();
        let what = format!("{kind}{tls} at every distance through each client alone");
        return skipped(&what, "only LOCKTOPUS_FAR=all runs it");
    }
    let place = away(spec, NEAR).await;
    for round_trip in [NEAR, FAR, FARTHEST] {
        place.set_round_trip(round_trip);
        for clients in ONE {
            passes_far(&place, clients, round_trip).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standalone_at_every_distance() {
    the_rest_of(Spec::new(TopologyKind::Standalone)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_at_every_distance() {
    the_rest_of(Spec::new(TopologyKind::Tls)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinel_at_every_distance() {
    the_rest_of(Spec::new(TopologyKind::SENTINEL)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_at_every_distance() {
    the_rest_of(Spec::new(TopologyKind::CLUSTER)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinel_with_tls_at_every_distance() {
    the_rest_of(Spec::new(TopologyKind::SENTINEL).with_tls()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_with_tls_at_every_distance() {
    the_rest_of(Spec::new(TopologyKind::CLUSTER).with_tls()).await;
}
