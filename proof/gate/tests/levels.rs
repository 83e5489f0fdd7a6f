//! The levels that mutants are shown to say nothing against the scripts as they are shipped, and notice what is wrong.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::time::Duration;

use locktopus_core::SafetyMode;
use locktopus_gate::scripts::levels::{NOT_MODELLED, suite};

async fn conforms(safety: SafetyMode) {
    let report = suite(safety).run().await;
    let failures: Vec<_> = report
        .failures()
        .filter(|failure| !NOT_MODELLED.iter().any(|name| failure.0.starts_with(name)))
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(report.outcomes().len() > 300, "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_backend_on_a_modelled_server_conforms() {
    conforms(SafetyMode::Plain).await;
}

#[tokio::test(start_paused = true)]
async fn a_backend_in_quarantine_on_a_modelled_server_conforms() {
    let max_lease = Duration::from_secs(2 * 24 * 60 * 60);
    conforms(SafetyMode::Quarantine { max_lease }).await;
}
