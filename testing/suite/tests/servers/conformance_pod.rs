//! The conformance suite with servers in containers, on every image.
//!
//! Without a container engine these tests fail. Set `LOCKTOPUS_SKIP_POD` to the reason why that is right
//! on this machine, and they are skipped instead, loudly.
#![cfg(unix)]

use crate::common;
use crate::conformance;

use std::io::Write;
use std::sync::Arc;

use common::SHARDS;
use conformance::{BOTH, ONE, passes};
use locktopus_testbed::topology::{ProviderKind, ServerImage, Spec, TopologyKind, start};

/// Whether to skip, with the reason in the output.
fn skipped() -> bool {
    match std::env::var("LOCKTOPUS_SKIP_POD") {
        Ok(reason) if !reason.trim().is_empty() => {
            // Written past the test runner, which would hide it.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED, NOT PASSED: a pod test, because LOCKTOPUS_SKIP_POD says: {reason}"
            );
            true
        }
        Ok(_) => panic!("LOCKTOPUS_SKIP_POD must give a reason"),
        Err(_) => false,
    }
}

async fn on(image: &str, kind: TopologyKind, clients: &[&'static [&'static str]]) {
    if skipped() {
        return;
    }
    let spec = Spec::new(kind).with_image(image.parse::<ServerImage>().unwrap());
    let place = match start(ProviderKind::Pod, &spec).await {
        Ok(deployment) => Arc::new(deployment),
        Err(error) => panic!("{kind} of {image}: {error}"),
    };
    for clients in clients {
        passes(&place, clients).await;
    }
    let place = Arc::into_inner(place).expect("the suite is done with the servers");
    place.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_8_0_standalone() {
    on("redis:8.0", TopologyKind::Standalone, &ONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_8_0_sentinel() {
    on("redis:8.0", TopologyKind::SENTINEL, &ONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_8_0_cluster() {
    on("redis:8.0", TopologyKind::CLUSTER, &ONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_8_0_tls() {
    on("redis:8.0", TopologyKind::Tls, &ONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_8_0_one_of_a_quorum() {
    on("redis:8.0", TopologyKind::QUORUM, &[BOTH]).await;
}

/// The other images, with both clients at once.
async fn standalone_and_cluster_of(image: &str) {
    for kind in [TopologyKind::Standalone, SHARDS] {
        on(image, kind, &[BOTH]).await;
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
