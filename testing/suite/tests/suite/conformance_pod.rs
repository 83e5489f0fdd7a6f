//! A short run of the conformance suite with a server in a container. `conformance_images`, which
//! runs at night, covers all images and topologies.
//!
//! Without a container engine these tests fail. To skip them, set `LOCKTOPUS_SKIP_POD` to the
//! reason why this machine has none; the skipped tests then say so.

use crate::conformance;

use std::sync::Arc;

use conformance::{ONE, passes};
use locktopus_servers::pod_or_skip;
use locktopus_servers::topology::{ProviderKind, ServerImage, Spec, TopologyKind, start};

pub(crate) async fn on(image: &str, kind: TopologyKind, clients: &[&'static [&'static str]]) {
    if !pod_or_skip() {
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
