//! As `script_fidelity_topology`, for each version of the servers, in containers.
//!
//! Without a container engine these tests fail. If that is right on this machine, set
//! `LOCKTOPUS_SKIP_POD` to the reason, and the tests are skipped with a loud message.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "script_fidelity_common/mod.rs"]
mod common;

use locktopus_servers::pod_or_skip;
use locktopus_servers::topology::{ProviderKind, ServerImage, Spec, TopologyKind, start};

fn on(image: &str) {
    if !pod_or_skip() {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = image.parse::<ServerImage>().unwrap();
    let spec = Spec::new(TopologyKind::Standalone).with_image(server);
    let place = match runtime.block_on(start(ProviderKind::Pod, &spec)) {
        Ok(place) => place,
        Err(error) => panic!("{image}: {error}"),
    };
    common::compare(image, place.nodes()[0].addr(), 100);
    runtime.block_on(place.stop()).unwrap();
}

#[test]
fn redis_7_0() {
    on("redis:7.0");
}

#[test]
fn redis_8_0() {
    on("redis:8.0");
}

#[test]
fn valkey_8_1() {
    on("valkey/valkey:8.1");
}

#[test]
fn valkey_9_1() {
    on("valkey/valkey:9.1");
}
