//! The measurement that docs/performance.md is made from, as far as it is a proof: of which code it speaks, and that nothing was
//! wrong while it was made.

use std::path::Path;

use serde::Deserialize;

use crate::outcome::Outcome;

const FILE: &str = "docs/performance.json";

#[derive(Debug, Deserialize)]
struct Summary {
    cells: Vec<Cell>,
}

#[derive(Debug, Deserialize)]
struct Cell {
    /// `None`: nobody looked.
    overlaps: Option<u64>,
    errors: u64,
}

/// What is kept of it.
///
/// # Errors
///
/// If it cannot be read.
pub(crate) fn kept(root: &Path) -> Result<String, String> {
    std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))
}

/// What came of it: two holders at once and operations that failed are violations.
///
/// # Errors
///
/// If nothing was measured.
pub(crate) fn outcome(kept: &str) -> Result<Outcome, String> {
    let summary: Summary =
        serde_json::from_str(kept).map_err(|error| format!("{FILE}: {error}"))?;
    let wrong = |cell: &Cell| cell.overlaps.unwrap_or(0) + cell.errors;
    match summary.cells.len() {
        0 => Err(format!("{FILE}: nothing was measured")),
        cases => Ok(Outcome {
            cases: cases as u64,
            violations: summary.cells.iter().map(wrong).sum(),
            ..Outcome::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use super::*;
    use crate::build;

    #[test]
    fn two_holders_and_failures_are_violations() {
        let of = |overlaps: &str, errors: u64| {
            outcome(&format!(
                r#"{{"cells": [{{"overlaps": {overlaps}, "errors": {errors}, "figures": {{}}}}]}}"#
            ))
        };
        assert_eq!(of("null", 0).unwrap().violations, 0);
        assert_eq!(of("2", 3).unwrap().violations, 5);
        assert!(outcome(r#"{"cells": []}"#).is_err());
    }

    #[test]
    fn what_is_kept_is_read() {
        let kept = kept(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))).unwrap();
        assert!(outcome(&kept).unwrap().cases > 10);
        assert!(build::of(&[kept]).is_ok());
    }
}
