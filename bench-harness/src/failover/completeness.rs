//! Rules for a run of faults to count.
//!
//! Every planned cell ran, with every planned fault. Every cell granted locks, and the only
//! failures are those that its faults explain
//! ([`shared::completeness`](crate::shared::completeness)). For our locks every property that any
//! grant tests was judged. A lock that is broken on purpose was caught by the property that it
//! breaks.

use locktopus_history::Property;

use crate::failover::model::{CellReport, FailoverReport};
use crate::failover::plan::{Subject, describe};
use crate::shared::completeness::{Evidence, nothing};

/// The parts that a run of faults lacks, a sentence each; empty if the run counts.
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

/// The parts that one cell of such a run lacks.
#[must_use]
pub fn missing_in_cell(cell: &CellReport) -> Vec<String> {
    let mut problems = cell.trouble.clone();
    let figures = &cell.figures;
    let evidence = Evidence {
        granted: figures.granted > 0,
        done: Some((figures.faults, cell.planned_faults, "faults were done")),
        errors: &cell.errors,
        // Other libraries name their errors as they like; their results are shown, not judged.
        is_expected: |kind: &str| cell.subject != Subject::Locktopus || cell.fault.explains(kind),
    };
    problems.extend(evidence.problems());
    problems.extend(uncaught(cell));
    problems.extend(unjudged(cell));
    problems
}

/// Whether this is a lock that is broken on purpose, and the property that it breaks gave it away.
#[must_use]
pub fn is_caught(cell: &CellReport) -> bool {
    cell.subject.is_broken() && !cell.caught.is_empty() && uncaught(cell).is_none()
}

/// If a different property caught the lock, that says nothing about its own property.
fn uncaught(cell: &CellReport) -> Option<String> {
    let breaks = breaks(cell.subject)?;
    if cell.caught.is_empty() {
        return Some("a lock that is broken on purpose was not caught".to_owned());
    }
    let begin = format!("{breaks}: ");
    let by_it = cell.caught.iter().any(|by| by.starts_with(&begin));
    (!by_it).then(|| {
        format!(
            "a lock that is broken on purpose was not caught by what it breaks ({breaks}), but by {}",
            cell.caught.join(", ")
        )
    })
}

/// The property that a lock is there to break. Properties that depend on it may break as well.
const fn breaks(subject: Subject) -> Option<Property> {
    Some(match subject {
        Subject::Locktopus | Subject::R1 | Subject::Rslock | Subject::Redisson => return None,
        Subject::BrokenHistory => Property::WellFormed,
        Subject::BrokenRelease
        | Subject::BrokenValidity
        | Subject::BrokenRejoin
        | Subject::BrokenReaders => Property::ValidityOverlap,
        Subject::BrokenPermits => Property::PermitValidity,
        Subject::BrokenTwins => Property::DuplicateTokens,
        Subject::BrokenTokens | Subject::BrokenDescent => Property::FallingTokens,
        Subject::BrokenGate => Property::StaleWrites,
        Subject::BrokenDoor => Property::GoodWrites,
        Subject::BrokenStore => Property::LostUpdates,
        Subject::BrokenSilence => Property::UseAfterEnd,
        Subject::BrokenSignal => Property::LossSignal,
        Subject::BrokenRevival => Property::ExtensionAfterEnd,
        Subject::BrokenOrder => Property::FairOrder,
        Subject::BrokenCleanUp => Property::Leftovers,
        Subject::BrokenWakeUp => Property::Outage,
    })
}

/// The outcome of a property that nothing tested, as a report writes it.
const NOT_JUDGED: &str = "not judged";

/// Properties that every grant tests: if one is not judged, its check did not run.
const ALWAYS: [Property; 5] = [
    Property::WellFormed,
    Property::UseAfterEnd,
    Property::ExtensionAfterEnd,
    Property::Outage,
    Property::Leftovers,
];
/// The same for grants of locks: ours have tokens, and the resource behind the lock checks them.
const OF_LOCKS: [Property; 6] = [
    Property::UseOverlap,
    Property::DuplicateTokens,
    Property::FallingTokens,
    Property::StaleWrites,
    Property::GoodWrites,
    Property::LostUpdates,
];

/// Properties of our locks that were not judged although there were grants. A lock that lost its
/// tokens breaks none of the promises about them, so it must not pass for that reason.
fn unjudged(cell: &CellReport) -> Vec<String> {
    if cell.subject != Subject::Locktopus || cell.figures.granted == 0 {
        return Vec::new();
    }
    let judged = |property: Property| {
        let outcome = cell.outcomes.get(&property.to_string());
        outcome.is_some_and(|outcome| outcome != NOT_JUDGED)
    };
    let mut due = ALWAYS.to_vec();
    match judged(Property::ValidityOverlap) {
        true => due.extend(OF_LOCKS),
        false => due.push(Property::PermitValidity),
    }
    let due = due.into_iter().filter(|property| !judged(*property));
    due.map(|property| format!("{property} was not judged, though there were grants"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failover::plan::Verb;

    fn tested() -> FailoverReport {
        let mut report: FailoverReport =
            serde_json::from_str(include_str!("../../tests/data/failover-summary.json")).unwrap();
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

    #[test]
    fn a_broken_lock_must_be_caught_by_what_it_breaks() {
        let mut cell = tested().cells.remove(0);
        assert!(!is_caught(&cell));
        for &subject in Subject::ALL {
            let Some(breaks) = breaks(subject) else {
                assert!(!subject.is_broken(), "{subject}");
                continue;
            };
            cell.subject = subject;
            cell.caught = vec![format!("{breaks}: 3")];
            assert_eq!(missing_in_cell(&cell), Vec::<String>::new(), "{subject}");
            assert!(is_caught(&cell));
            let other = Property::ALL
                .into_iter()
                .filter(|property| *property != breaks);
            cell.caught = other.map(|property| format!("{property}: 3")).collect();
            let problems = missing_in_cell(&cell);
            assert_eq!(problems.len(), 1, "{subject}: {problems:?}");
            let said = format!("not caught by what it breaks ({breaks})");
            assert!(problems[0].contains(&said), "{problems:?}");
            assert!(!is_caught(&cell));
        }
    }

    /// A lock without tokens breaks no promise about tokens, and would pass.
    #[test]
    fn what_grants_put_to_the_test_must_be_judged() {
        let mut cell = tested().cells.remove(0);
        let all = Property::ALL.map(|property| (property.to_string(), "passed".to_owned()));
        cell.outcomes = all.into_iter().collect();
        let unjudged = |cell: &CellReport, properties: &[Property]| {
            let mut cell = cell.clone();
            for property in properties {
                let name = property.to_string();
                cell.outcomes.insert(name, NOT_JUDGED.to_owned());
            }
            missing_in_cell(&cell).len()
        };
        let permits = [Property::PermitValidity, Property::PermitUse];
        assert_eq!(unjudged(&cell, &permits), 0);
        let needs_chance = [Property::LossSignal, Property::FairOrder];
        assert_eq!(unjudged(&cell, &needs_chance), 0);
        for property in ALWAYS.into_iter().chain(OF_LOCKS) {
            assert_eq!(unjudged(&cell, &[property]), 1, "{property}");
        }
        // With permits alone, no property of locks is due, only those of permits.
        let of_locks: Vec<_> = OF_LOCKS
            .into_iter()
            .chain([Property::ValidityOverlap])
            .collect();
        assert_eq!(unjudged(&cell, &of_locks), 0);
        assert_eq!(unjudged(&cell, &[&of_locks[..], &permits].concat()), 1);
        // A missing outcome counts as not judged.
        let mut silent = cell.clone();
        silent
            .outcomes
            .remove(&Property::DuplicateTokens.to_string());
        assert_eq!(unjudged(&silent, &[]), 1);
        // A report without outcomes does not even say which kinds of lock it has: the permits are
        // due too.
        silent.outcomes.clear();
        let due = ALWAYS.len() + [Property::PermitValidity].len();
        assert_eq!(missing_in_cell(&silent).len(), due);
        cell.subject = Subject::R1;
        assert_eq!(unjudged(&cell, &OF_LOCKS), 0);
    }

    /// A fault explains the errors of servers that are away or too slow, and no others.
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
        // Other libraries name their errors as they like.
        for subject in [Subject::R1, Subject::BrokenRelease] {
            assert_eq!(unexplained(Verb::Nothing, subject, &odd), 0, "{subject}");
        }
    }

    #[test]
    fn the_kept_runs_are_complete() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/failover");
        let mut cells = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "json") {
                let report = crate::failover::model::read(&path).unwrap();
                cells += report.cells.len();
                assert_eq!(missing(&report), [""; 0], "{}", path.display());
            }
        }
        assert!(cells > 100);
    }
}
