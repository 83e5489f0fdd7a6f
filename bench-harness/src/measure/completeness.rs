//! Rules for a measurement to count.
//!
//! Every cell has every planned round (fewer if its option `rounds` says so), each round granted
//! locks, and nothing failed ([`shared::completeness`](crate::shared::completeness)).

use crate::measure::model::{Cell, Report};
use crate::shared::completeness::{Evidence, nothing};

/// The parts that a measurement lacks, a sentence each; empty if it counts.
#[must_use]
pub fn missing(report: &Report) -> Vec<String> {
    let mut missing: Vec<_> = nothing(report.cells.len()).into_iter().collect();
    for cell in &report.cells {
        let few = cell.subject.options.get("rounds");
        let planned = few.and_then(|rounds| rounds.parse().ok());
        let problems = rounds(cell, planned.unwrap_or(report.run.rounds));
        let what = cell.subject.describe();
        let problems = problems.into_iter();
        missing.extend(problems.map(|problem| format!("{what}: {problem}")));
    }
    missing
}

fn rounds(cell: &Cell, planned: u32) -> Vec<String> {
    let mut problems = Vec::new();
    if cell.rounds.len() != planned as usize {
        problems.push(format!("{} of {planned} rounds", cell.rounds.len()));
    }
    for round in &cell.rounds {
        let memory = round.client_cost.and_then(|cost| cost.memory);
        // A memory measurement has locks or waiters instead of grants.
        let evidence = Evidence {
            granted: round.acquisitions > 0 || memory.is_some_and(|occupied| occupied.by > 0),
            done: None,
            errors: &round.errors,
            is_expected: |_: &str| false,
        };
        let of_round = evidence.problems().into_iter();
        problems.extend(of_round.map(|problem| format!("round {}: {problem}", round.index)));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Report {
        let mut report: Report =
            serde_json::from_str(include_str!("../../tests/data/report-v1.json")).unwrap();
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
        assert_eq!(said(|report| report.cells.clear()), "no cell was run");
        let none = said(|report| report.cells[0].rounds[0].acquisitions = 0);
        assert!(none.ends_with("round 0: nothing was granted"), "{none}");
        let failing = said(|report| {
            let errors = &mut report.cells[0].rounds[0].errors;
            errors.insert("unavailable".to_owned(), 300);
        });
        assert!(failing.contains("300 times \"unavailable\""), "{failing}");
        let short = said(|report| report.run.rounds += 1);
        assert!(short.contains("rounds"), "{short}");
    }
}
