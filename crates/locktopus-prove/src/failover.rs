//! The runs of the failover harness that docs/safety.md shows, from the files that it is made of.

use std::path::Path;

use serde::Deserialize;

use crate::outcome::Outcome;

/// Where they are, from the root of the sources.
const FOLDER: &str = "bench-harness/failover";

/// What of a run counts here.
#[derive(Debug, Deserialize)]
struct Run {
    cells: Vec<Cell>,
    #[serde(default)]
    failed: Vec<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Cell {
    subject: String,
    figures: Figures,
    #[serde(default)]
    broken_promises: Vec<String>,
    #[serde(default)]
    trouble: Vec<String>,
    #[serde(default)]
    caught: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Figures {
    faults: u64,
}

/// The files, each in a line.
///
/// # Errors
///
/// If there is none, or one cannot be read.
pub(crate) fn kept(root: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("{FOLDER}: {error}");
    let entries = std::fs::read_dir(root.join(FOLDER)).map_err(failed)?;
    let mut runs = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("run-") && name.ends_with(".json") {
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            let value: serde_json::Value =
                serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
            runs.push(value.to_string());
        }
    }
    match runs.is_empty() {
        true => Err(format!("there is no run in {FOLDER}")),
        false => Ok(runs),
    }
}

/// A report as one line.
///
/// # Errors
///
/// If it is none.
pub(crate) fn one_line(report: &str) -> Result<String, String> {
    let value: serde_json::Value =
        serde_json::from_str(report).map_err(|error| format!("a report: {error}"))?;
    Ok(value.to_string())
}

fn read(line: &str) -> Result<Run, String> {
    serde_json::from_str(line).map_err(|error| format!("a run in {FOLDER}: {error}"))
}

/// What came of them: a promise that was not kept and a cell that was not run to its end are violations.
///
/// # Errors
///
/// If there was no fault, or no lock was broken on purpose.
pub(crate) fn outcome(said: &str) -> Result<Outcome, String> {
    let (mut cases, mut violations, mut killed, mut survived) = (0, 0, 0, 0);
    for line in said.lines() {
        let run = read(line)?;
        violations += run.failed.len() as u64;
        for cell in run.cells {
            match (cell.subject.starts_with("broken-"), cell.caught.is_empty()) {
                (true, false) => killed += 1,
                (true, true) => survived += 1,
                (false, _) => {
                    cases += cell.figures.faults;
                    violations += (cell.broken_promises.len() + cell.trouble.len()) as u64;
                }
            }
        }
    }
    match (cases, killed) {
        (0, _) => Err("no fault was done".to_owned()),
        (_, 0) => Err("no lock that is broken on purpose was caught".to_owned()),
        _ => Ok(Outcome {
            cases,
            violations,
            killed: Some(killed),
            survived: Some(survived),
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use super::*;
    use crate::build;

    fn run(cells: &str) -> String {
        format!(r#"{{"cells": [{cells}]}}"#)
    }

    const FINE: &str = r#"{"subject": "locktopus", "figures": {"faults": 20}}"#;
    const BROKEN: &str =
        r#"{"subject": "broken-tokens", "figures": {"faults": 4}, "caught": ["tokens grow: 1"]}"#;

    #[test]
    fn promises_that_were_broken_are_violations() {
        let both = format!("{FINE}, {BROKEN}");
        let outcome_of = |cells: &str| outcome(&run(cells));
        let fine = outcome_of(&both).unwrap();
        assert_eq!((fine.cases, fine.violations, fine.killed), (20, 0, Some(1)));
        assert!(outcome_of(FINE).is_err());
        assert!(outcome_of(BROKEN).is_err());
        let promise = both.replacen("20}", r#"20}, "broken_promises": ["tokens grow"]"#, 1);
        assert_eq!(outcome_of(&promise).unwrap().violations, 1);
        let missed = both.replace(r#"["tokens grow: 1"]"#, "[]");
        assert!(outcome_of(&missed).is_err());
    }

    #[test]
    fn the_kept_runs_are_read() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let runs = kept(root).unwrap();
        assert!(build::of(&runs).is_ok());
        assert!(outcome(&runs.join("\n")).unwrap().cases > 1_000);
    }
}
