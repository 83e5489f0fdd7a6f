//! Checks that the folder has all of a cell: with some histories missing, fewer promises look
//! broken.
//!
//! `cell.json` names the files. The report of the run, if it is still beside them, says how much is
//! in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use locktopus_history::Verdict;

use crate::failover::model::{self, CellReport};
use crate::failover::plan::{Verb, describe};
use crate::failover::run::kept::{Kept, KeptError};

/// Part of every history's file name.
const HISTORY: &str = ".jsonl";
/// The history of a deployment's runner, which contains the faults.
const RUNNER: &str = "runner.jsonl.gz";
/// From the folder of a cell up to that of the run: `histories/RUN/cell-0`.
const UP: usize = 3;

/// What is missing, a sentence each; empty if this is all of the cell.
///
/// # Errors
///
/// [`KeptError`] if the folder, or the report beside it, cannot be read.
pub(super) fn missing(
    folder: &Path,
    cell: &Kept,
    verdict: &Verdict,
    report: Option<&Beside>,
) -> Result<Vec<String>, KeptError> {
    let mut missing = unnamed(folder, cell)?;
    missing.extend(gaps(cell));
    if let Some(report) = report {
        missing.extend(report.differences(cell, verdict));
    } else if verdict.outage.faults.is_empty() {
        let none =
            "no fault is in the histories, and no report beside them says that none was to be done";
        missing.push(none.to_owned());
    }
    Ok(missing)
}

/// Histories in the folder that `cell.json` does not name, so they would not be judged.
fn unnamed(folder: &Path, cell: &Kept) -> Result<Vec<String>, KeptError> {
    let named: BTreeSet<PathBuf> = cell
        .histories
        .iter()
        .map(|name| folder.join(name))
        .collect();
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(within) = folders.pop() {
        let failed = |error: std::io::Error| problem(&within, &error);
        for entry in std::fs::read_dir(&within).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let is_history = || path.to_string_lossy().contains(HISTORY);
            if path.is_dir() {
                folders.push(path);
            } else if is_history() && !named.contains(&path) {
                let name = path.strip_prefix(folder).unwrap_or(&path).display();
                found.push(format!("cell.json does not name the history {name}"));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Gaps in the histories. Deployments, and the processes of each, are numbered from 0, and each
/// deployment has a runner.
fn gaps(cell: &Kept) -> Vec<String> {
    let mut deployments: BTreeMap<&Path, BTreeSet<String>> = BTreeMap::new();
    for name in &cell.histories {
        let file = name.file_name().unwrap_or_default().to_string_lossy();
        let deployment = name.parent().unwrap_or_else(|| Path::new(""));
        let files = deployments.entry(deployment).or_default();
        files.insert(file.into_owned());
    }
    let mut gaps = Vec::new();
    let expected = (0..deployments.len()).map(|number| format!("deployment-{number}"));
    for name in expected.filter(|name| !deployments.contains_key(Path::new(name))) {
        gaps.push(format!("cell.json names no history of {name}"));
    }
    for (deployment, files) in &deployments {
        let others = files.iter().filter(|file| *file != RUNNER).count();
        let processes = (0..others.max(1)).map(|number| format!("process-{number}.jsonl.gz"));
        let due = processes.chain([RUNNER.to_owned()]);
        for name in due.filter(|name| !files.contains(name)) {
            let name = deployment.join(name);
            gaps.push(format!("cell.json does not name {}", name.display()));
        }
    }
    gaps
}

/// The report of the run, beside the histories, and what it says of the cell.
pub(super) struct Beside {
    /// Where it is.
    pub(super) path: PathBuf,
    cells: Vec<CellReport>,
}

impl Beside {
    /// Finds the report. It is `None` if the report belongs to a later run into the same directory,
    /// or the folder was moved elsewhere.
    ///
    /// # Errors
    ///
    /// [`KeptError`] if the report is there and cannot be read.
    pub(super) fn of(folder: &Path, cell: &Kept) -> Result<Option<Self>, KeptError> {
        let whole = folder
            .canonicalize()
            .map_err(|error| problem(folder, &error))?;
        let run = whole.parent().and_then(Path::file_name);
        let (Some(run), Some(directory)) = (run, whole.ancestors().nth(UP)) else {
            return Ok(None);
        };
        let path = directory.join("report.json");
        if !path.exists() {
            return Ok(None);
        }
        let report = model::read(&path).map_err(|error| problem(&path, &error))?;
        if *run != *report.run.id {
            return Ok(None);
        }
        let mut cells = report.cells;
        cells.retain(|one| {
            let who = (one.subject, &*one.mode, &*one.client);
            describe(&one.scenario, one.topology, who) == cell.cell
        });
        Ok(Some(Self { path, cells }))
    }

    fn differences(&self, cell: &Kept, verdict: &Verdict) -> Vec<String> {
        let path = self.path.display();
        let Some(report) = self.cells.first() else {
            return vec![format!("{path} says nothing of this cell")];
        };
        let (figures, facts) = (&report.figures, &verdict.facts);
        let faults = verdict.outage.faults.iter();
        let faults = faults.filter(|fault| fault.verb == report.fault.name());
        let mut differences = Vec::new();
        for (what, there, here) in [
            ("attempts", figures.attempts, facts.attempts),
            ("grants", figures.granted, facts.granted),
            ("faults", figures.faults, faults.count()),
        ] {
            if there != here as u64 {
                differences.push(format!("{here} {what}, and {there} in {path}"));
            }
        }
        let (done, planned) = (figures.faults, report.planned_faults.max(1));
        if report.fault != Verb::Nothing && done < planned {
            differences.push(format!("{path}: {done} of {planned} faults were done"));
        }
        if report.outcomes != cell.outcomes {
            differences.push(format!("{path} says other outcomes than cell.json"));
        }
        differences
    }
}

fn problem(path: &Path, problem: &dyn std::fmt::Display) -> KeptError {
    KeptError {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}
