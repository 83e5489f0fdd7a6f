//! The levels that mutants meet pass with the shipped scripts, and notice wrong ones.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::time::Duration;

use locktopus_core::SafetyMode;
use locktopus_gate::scripts::levels::{Effort, Loads, NOT_MODELLED, Round, judge, suite};
use locktopus_gate::scripts::mutants::Mutant;
use locktopus_gate::scripts::parts;
use locktopus_gate::scripts::verdict::Verdict;

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

/// Wrong scripts that the simulator did not notice in 4,000 to 12,000 schedules each.
const NOT_SIMULATED: &[&str] = &[
    "a lock is left to others for as long as a clock was set back",
    "a heartbeat is not noted",
    "an attempt that is executed twice takes another place",
    "a number that is lost is given anew as if nobody held permits",
    "permits with ids that are held count as free in a new number",
];

#[test]
fn what_the_simulator_does_not_notice_the_transcripts_do() {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let parts = parts::read(root).unwrap();
    let wrong = locktopus_simulator::wrong_scripts();
    for name in NOT_SIMULATED {
        let patch = wrong
            .iter()
            .find(|wrong| wrong.name == *name)
            .unwrap()
            .patch;
        let part = parts.iter().find(|part| {
            part.text.contains(patch.from)
                && part.script_names().any(|name| name.ends_with(patch.script))
        });
        let part = part.unwrap_or_else(|| panic!("{name}: no part has its text"));
        let mut after = part.text.replacen(patch.from, patch.to, 1);
        for (from, to) in patch.more {
            after = after.replacen(from, to, 1);
        }
        let mutant = Mutant {
            id: String::new(),
            file: part.file.clone(),
            line: 1,
            operator: "planted".to_owned(),
            what: (*name).to_owned(),
            before: part.text.clone(),
            after,
            scripts: part.script_names().map(str::to_owned).collect(),
        };
        let effort = Effort {
            tests: Vec::new(),
            loads: Loads::default(),
        };
        let verdict = judge(&mutant, false, Round::Transcripts, &effort).unwrap();
        assert!(
            matches!(verdict, Verdict::Noticed { .. }),
            "{name}: {verdict:?}"
        );
    }
}
