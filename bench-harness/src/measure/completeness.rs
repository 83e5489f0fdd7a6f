//! What a measurement must contain to count.
//!
//! A run that granted nothing finds no overlap. So nothing is passed that is empty: every cell has every round that was
//! planned, each round granted locks, and nothing failed.

use crate::measure::model::{Cell, Report};

/// What is missing in a measurement, a sentence each; empty if it counts.
#[must_use]
pub fn missing(report: &Report) -> Vec<String> {
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

    #[test]
    fn a_measurement_must_measure() {
        assert_eq!(missing(&measured()), Vec::<String>::new());
        let said = |change: fn(&mut Report)| {
            let mut report = measured();
            change(&mut report);
            let missing = missing(&report);
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
}
