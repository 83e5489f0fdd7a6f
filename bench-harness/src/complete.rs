//! What a run must contain to count.
//!
//! A run that granted nothing finds no overlap, and a cell that could not be run breaks no promise. So nothing is passed
//! that is empty: every cell that was planned was run, with every round or fault that was planned; every one granted
//! locks; and nothing failed but what its faults make fail. Both `run` and `failover` end with what is said here.

use crate::failover::model::{CellReport, FailoverReport};
use crate::failover::plan::{Subject, describe};
use crate::model::{Cell, Report};

/// What is missing in a measurement, a sentence each; empty if it counts.
#[must_use]
pub fn measurement(report: &Report) -> Vec<String> {
    let mut missing = Vec::new();
    if report.cells.is_empty() {
        missing.push("nothing was measured".to_owned());
    }
    for cell in &report.cells {
        let problems = rounds(cell, report.run.rounds);
        let what = name(cell);
        let problems = problems.into_iter();
        missing.extend(problems.map(|problem| format!("{what}: {problem}")));
    }
    missing
}

fn name(cell: &Cell) -> String {
    let subject = &cell.subject;
    format!(
        "{} {} through {} on {}, {} workers",
        subject.scenario,
        subject.lock_kind,
        subject.client,
        subject.topology.name(),
        subject.workers
    )
}

fn rounds(cell: &Cell, planned: u32) -> Vec<String> {
    let mut problems = Vec::new();
    if cell.rounds.len() != planned as usize {
        problems.push(format!("{} of {planned} rounds", cell.rounds.len()));
    }
    for round in &cell.rounds {
        let memory = round.client_cost.and_then(|cost| cost.memory);
        // What locks or waiters occupy is measured of those that are there, not of grants.
        if round.acquisitions == 0 && memory.is_none_or(|occupied| occupied.by == 0) {
            problems.push(format!("round {} granted nothing", round.index));
        }
        for (kind, count) in &round.errors {
            problems.push(format!("round {}: {count} times {kind:?}", round.index));
        }
    }
    problems
}

/// What is missing in a run of faults, a sentence each; empty if it counts.
#[must_use]
pub fn failover(report: &FailoverReport) -> Vec<String> {
    let mut missing = Vec::new();
    if report.cells.is_empty() {
        missing.push("no cell was run".to_owned());
    }
    for failed in &report.failed {
        missing.push(format!("{}: {}", failed.what, failed.why));
    }
    for cell in &report.cells {
        let who = (cell.subject, &*cell.mode, &*cell.client);
        let what = describe(&cell.scenario, cell.topology, who);
        let problems = failover_cell(cell).into_iter();
        missing.extend(problems.map(|problem| format!("{what}: {problem}")));
    }
    missing
}

/// What is missing in one cell of such a run.
#[must_use]
pub fn failover_cell(cell: &CellReport) -> Vec<String> {
    let mut problems = cell.trouble.clone();
    let figures = &cell.figures;
    if figures.granted == 0 {
        problems.push("nothing was granted".to_owned());
    }
    if figures.faults < cell.planned_faults {
        problems.push(format!(
            "{} of {} faults were done",
            figures.faults, cell.planned_faults
        ));
    }
    if cell.subject.is_broken() && cell.caught.is_empty() {
        problems.push("a lock that is broken on purpose was not caught".to_owned());
    }
    // Other libraries name their errors as they like; what they do is shown, not judged.
    if cell.subject == Subject::Locktopus {
        for (kind, count) in &cell.errors {
            if !cell.fault.explains(kind) {
                problems.push(format!(
                    "{count} times {kind:?}, which this fault does not explain"
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn data(name: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(name);
        std::fs::read_to_string(path).unwrap()
    }

    fn measured() -> Report {
        let mut report: Report = serde_json::from_str(&data("report-v1.json")).unwrap();
        report.run.rounds = u32::try_from(report.cells[0].rounds.len()).unwrap();
        for round in report.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
            round.errors.clear();
        }
        report
    }

    fn tested() -> FailoverReport {
        let mut report: FailoverReport =
            serde_json::from_str(&data("failover-summary.json")).unwrap();
        for cell in &mut report.cells {
            cell.trouble.clear();
            cell.errors.clear();
            cell.planned_faults = cell.figures.faults;
        }
        report
    }

    #[test]
    fn a_measurement_must_measure() {
        assert_eq!(measurement(&measured()), Vec::<String>::new());
        let said = |change: fn(&mut Report)| {
            let mut report = measured();
            change(&mut report);
            let missing = measurement(&report);
            assert_eq!(missing.len(), 1, "{missing:?}");
            missing[0].clone()
        };
        assert_eq!(said(|report| report.cells.clear()), "nothing was measured");
        let none = said(|report| report.cells[0].rounds[0].acquisitions = 0);
        assert!(none.ends_with("round 0 granted nothing"), "{none}");
        let failing = said(|report| {
            let errors = &mut report.cells[0].rounds[0].errors;
            errors.insert("unavailable".to_owned(), 300);
        });
        assert!(failing.ends_with("300 times \"unavailable\""), "{failing}");
        let short = said(|report| report.run.rounds += 1);
        assert!(short.contains("rounds"), "{short}");
    }

    #[test]
    fn a_run_of_faults_must_do_them() {
        assert_eq!(failover(&tested()), Vec::<String>::new());
        let said = |change: fn(&mut FailoverReport)| {
            let mut report = tested();
            change(&mut report);
            let missing = failover(&report);
            assert_eq!(missing.len(), 1, "{missing:?}");
            missing[0].clone()
        };
        assert_eq!(said(|report| report.cells.clear()), "no cell was run");
        let failed = said(|report| report.fail("restart on standalone", "a worker was killed"));
        assert_eq!(failed, "restart on standalone: a worker was killed");
        let none = said(|report| report.cells[0].figures.granted = 0);
        assert!(none.ends_with("nothing was granted"), "{none}");
        let fewer = said(|report| report.cells[0].planned_faults += 1);
        assert!(fewer.ends_with("faults were done"), "{fewer}");
        let odd = said(|report| {
            report.cells[0].errors.insert("other".to_owned(), 2);
        });
        assert!(odd.contains("2 times \"other\""), "{odd}");
        let stopped = said(|report| report.cells[0].trouble.push("stopped".to_owned()));
        assert!(stopped.ends_with("stopped"), "{stopped}");
    }
}
