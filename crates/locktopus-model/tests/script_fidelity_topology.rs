//! Whether the shipped scripts do on the modelled server what they do on a real one. Every script, with the arguments
//! that the shipped backend gives it.
//!
//! `LOCKTOPUS_FIDELITY_CALLS` sets how often each script is called at least, `LOCKTOPUS_FIDELITY_SEED` the random numbers, and
//! `LOCKTOPUS_FIDELITY_REPLAY` names a file with a list of steps that a failure printed.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "script_fidelity_common/mod.rs"]
mod common;

use locktopus_testbed::topology::{ProviderKind, Spec, TopologyKind, start};

#[test]
fn each_script_does_what_it_does_on_a_real_server() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let spec = Spec::new(TopologyKind::Standalone);
    let place = runtime.block_on(start(ProviderKind::Plain, &spec)).unwrap();
    common::compare("processes", place.nodes()[0].addr(), 200);
    runtime.block_on(place.stop()).unwrap();
}
