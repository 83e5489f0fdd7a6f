//! What a run of faults must contain to count.
//!
//! Every cell that was planned was run, with every fault that was planned; every one granted locks; and nothing failed but
//! what its faults make fail: the rule is [`shared::completeness`](crate::shared::completeness).

use crate::failover::model::{CellReport, FailoverReport};
use crate::failover::plan::{Subject, describe};
use crate::shared::completeness::{Evidence, nothing};

/// What is missing in a run of faults, a sentence each; empty if it counts.
#[must_use]
pub fn missing(report: &FailoverReport) -> Vec<String> {
    let mut missing: Vec<_> = nothing(report.cells.len()).into_iter().collect();
    for failed in &report.failed {
        missing.push(format!("{}: {}", failed.what, failed.why));
    }
    for cell in &report.cells {
        let who = (cell.subject, &*cell.mode, &*cell.client);
        let what = describe(&cell.scenario, cell.topology, who);
        let problems = missing_in_cell(cell).into_iter();
        missing.extend(problems.map(|problem| format!("{what}: {problem}")));
    }
    missing
}

/// What is missing in one cell of such a run.
#[must_use]
pub fn missing_in_cell(cell: &CellReport) -> Vec<String> {
    let mut problems = cell.trouble.clone();
    let figures = &cell.figures;
    let evidence = Evidence {
        granted: figures.granted > 0,
        done: Some((figures.faults, cell.planned_faults, "faults were done")),
        errors: &cell.errors,
        // Other libraries name their errors as they like; what they do is shown, not judged.
        is_expected: |kind: &str| cell.subject != Subject::Locktopus || cell.fault.explains(kind),
    };
    problems.extend(evidence.problems());
    if cell.subject.is_broken() && cell.caught.is_empty() {
        problems.push("a lock that is broken on purpose was not caught".to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::failover::plan::Verb;

    fn data(name: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(name);
        std::fs::read_to_string(path).unwrap()
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
    fn a_run_of_faults_must_do_them() {
        assert_eq!(missing(&tested()), Vec::<String>::new());
        let said = |change: fn(&mut FailoverReport)| {
            let mut report = tested();
            change(&mut report);
            let missing = missing(&report);
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
        let uncaught = said(|report| {
            report.cells[0].subject = Subject::BrokenRelease;
            report.cells[0].caught.clear();
        });
        assert!(
            uncaught.ends_with("on purpose was not caught"),
            "{uncaught}"
        );
        let stopped = said(|report| report.cells[0].trouble.push("stopped".to_owned()));
        assert!(stopped.ends_with("stopped"), "{stopped}");
    }

    /// Servers that are away, or do not answer in time, explain what comes of that, and nothing else.
    #[test]
    fn errors_are_expected_where_the_fault_explains_them() {
        let mut cell = tested().cells.remove(0);
        let mut unexplained = |fault, subject, kinds: &[&str]| {
            (cell.fault, cell.subject) = (fault, subject);
            cell.caught = vec!["validity: 1".to_owned()];
            cell.errors = kinds.iter().map(|&kind| (kind.to_owned(), 1)).collect();
            missing_in_cell(&cell).len()
        };
        let away = [
            "no answer",
            "unavailable, wait timeout",
            "no quorum, not replicated",
        ];
        let odd = ["other", "no answer, other", "lost"];
        let ours = Subject::Locktopus;
        for fault in [Verb::KillPrimary, Verb::Restart, Verb::Evict, Verb::Nemesis] {
            assert_eq!(unexplained(fault, ours, &away), 0, "{fault}");
            assert_eq!(unexplained(fault, ours, &odd), odd.len(), "{fault}");
        }
        for fault in [
            Verb::Nothing,
            Verb::FlushScripts,
            Verb::StopHolder,
            Verb::KillHolder,
            Verb::KillWaiter,
        ] {
            assert_eq!(unexplained(fault, ours, &away), away.len(), "{fault}");
        }
        // They name their errors as they like.
        for subject in [Subject::R1, Subject::BrokenRelease] {
            assert_eq!(unexplained(Verb::Nothing, subject, &odd), 0, "{subject}");
        }
    }
}
