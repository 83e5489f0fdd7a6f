//! The conformance suite with servers in containers, on every image and topology:
//! `scripts/test --only conformance_images`.
#![cfg(all(unix, feature = "pod"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "suite/common/mod.rs"]
mod common;
#[path = "suite/conformance/mod.rs"]
mod conformance;
#[path = "suite/conformance_pod.rs"]
mod conformance_pod;

use common::SHARDS;
use conformance::{BOTH, ONE};
use locktopus_servers::topology::TopologyKind;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_8_0_sentinel() {
    conformance_pod::on("redis:8.0", TopologyKind::SENTINEL, &ONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_8_0_cluster() {
    conformance_pod::on("redis:8.0", TopologyKind::CLUSTER, &ONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_8_0_tls() {
    conformance_pod::on("redis:8.0", TopologyKind::Tls, &ONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_8_0_one_of_a_quorum() {
    conformance_pod::on("redis:8.0", TopologyKind::QUORUM, &[BOTH]).await;
}

/// The other images, with both clients at once.
async fn standalone_and_cluster_of(image: &str) {
    for kind in [TopologyKind::Standalone, SHARDS] {
        conformance_pod::on(image, kind, &[BOTH]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_7_0() {
    standalone_and_cluster_of("redis:7.0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn valkey_8_1() {
    standalone_and_cluster_of("valkey/valkey:8.1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn valkey_9_1() {
    standalone_and_cluster_of("valkey/valkey:9.1").await;
}
