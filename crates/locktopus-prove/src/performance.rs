//! The measurement that docs/performance.md is made from, as far as it is a proof: of which code it speaks, and that nothing was
//! wrong while it was made.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::outcome::Outcome;

const FILE: &str = "docs/performance.json";
/// What is measured there are locks or waiters that stay: nobody comes after another. Everywhere else two holders at once are
/// looked for.
const WITHOUT_TURNS: [&str; 3] = ["renewal", "held-memory", "waiting-memory"];

#[derive(Debug, Deserialize)]
struct Summary {
    runs: Vec<Run>,
    skipped: Vec<serde_json::Value>,
    cells: Vec<Cell>,
}

#[derive(Debug, Deserialize)]
struct Run {
    rounds: usize,
}

#[derive(Debug, Deserialize)]
struct Cell {
    run: usize,
    subject: Subject,
    /// `None`: nobody looked.
    overlaps: Option<u64>,
    errors: u64,
    rounds: Vec<u32>,
}

#[derive(Debug, Deserialize)]
struct Subject {
    scenario: String,
    #[serde(default)]
    options: BTreeMap<String, String>,
}

/// What is kept of it.
///
/// # Errors
///
/// If it cannot be read.
pub(crate) fn kept(root: &Path) -> Result<String, String> {
    std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))
}

/// What came of it: two holders at once and operations that failed are violations, and so is what was not measured: a cell in
/// which nobody looked for two holders, fewer rounds than were planned, something that was skipped.
///
/// # Errors
///
/// If nothing was measured.
pub(crate) fn outcome(kept: &str) -> Result<Outcome, String> {
    let summary: Summary =
        serde_json::from_str(kept).map_err(|error| format!("{FILE}: {error}"))?;
    let violations = |cell: &Cell| cell.errors + two_at_once(cell) + missing(cell, &summary.runs);
    match summary.cells.len() {
        0 => Err(format!("{FILE}: nothing was measured")),
        cases => Ok(Outcome {
            cases: cases as u64,
            violations: summary.cells.iter().map(violations).sum::<u64>()
                + summary.skipped.len() as u64,
            ..Outcome::default()
        }),
    }
}

fn two_at_once(cell: &Cell) -> u64 {
    cell.overlaps.unwrap_or_else(|| {
        let has_no_turns = WITHOUT_TURNS.contains(&&*cell.subject.scenario);
        u64::from(!has_no_turns)
    })
}

/// Rounds that are missing: a cell may have fewer than its run, and then says so.
fn missing(cell: &Cell, runs: &[Run]) -> u64 {
    let of_cell = cell.subject.options.get("rounds");
    let of_cell = of_cell.and_then(|rounds| rounds.parse().ok());
    let of_run = runs.get(cell.run).map_or(usize::MAX, |run| run.rounds);
    let planned = of_cell.unwrap_or(of_run);
    planned.saturating_sub(cell.rounds.len()) as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use super::*;
    use crate::build;

    /// A run of two rounds, of one cell of this scenario.
    fn of(scenario: &str, cell: &str) -> Outcome {
        let subject = format!(r#""subject": {{"scenario": "{scenario}", "options": {{}}}}"#);
        let kept = format!(
            r#"{{"runs": [{{"rounds": 2}}], "skipped": [], "cells": [{{"run": 0, {subject}, {cell}}}]}}"#
        );
        outcome(&kept).unwrap()
    }

    #[test]
    fn two_holders_and_failures_are_violations() {
        let cell = |overlaps: &str, errors: u64| {
            format!(r#""overlaps": {overlaps}, "errors": {errors}, "rounds": [0, 1]"#)
        };
        assert_eq!(of("hot-lock", &cell("0", 0)).violations, 0);
        assert_eq!(of("hot-lock", &cell("2", 3)).violations, 5);
        // Nobody looked, where somebody must.
        assert_eq!(of("hot-lock", &cell("null", 0)).violations, 1);
        assert_eq!(of("renewal", &cell("null", 0)).violations, 0);
        let nothing = r#"{"runs": [], "skipped": [], "cells": []}"#;
        assert!(outcome(nothing).is_err());
    }

    #[test]
    fn what_was_not_measured_is_a_violation() {
        let cell = r#""overlaps": 0, "errors": 0, "rounds": [0]"#;
        assert_eq!(of("hot-lock", cell).violations, 1);
        let fewer = r#"{"runs": [{"rounds": 5}], "skipped": ["Redisson"], "cells": [{"run": 0, "overlaps": 0, "errors": 0,
            "rounds": [0, 1], "subject": {"scenario": "uncontended", "options": {"rounds": "2"}}}]}"#;
        assert_eq!(outcome(fewer).unwrap().violations, 1);
    }

    #[test]
    fn what_is_kept_is_read() {
        let kept = kept(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))).unwrap();
        let outcome = outcome(&kept).unwrap();
        assert!(outcome.cases > 10 && outcome.violations == 0, "{outcome}");
        assert!(build::of(&[kept]).is_ok());
    }
}
