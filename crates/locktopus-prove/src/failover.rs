//! The runs of the failover harness that docs/safety.md shows, from the files that it is made of.
//!
//! What counts is decided by the harness, in one place: [`bench_harness::failover::completeness`].

use std::collections::BTreeSet;
use std::path::Path;

use bench_harness::failover::completeness;
use bench_harness::failover::model::{CellReport, FailoverReport};
use bench_harness::failover::plan::{Choice, PlanFile, Subject, describe};
use locktopus_history::Property;

use crate::outcome::Outcome;

/// Where they are, from the root of the sources.
const FOLDER: &str = "bench-harness/failover";
/// What they were made from. Every cell of these is somewhere in them.
const PLANS: [&str; 2] = ["committed.toml", "broken.toml"];

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

/// Whether these runs are of all that the committed plans ask for: a part of a plan breaks fewer promises.
///
/// # Errors
///
/// If a cell of a plan was tried in none of them, which one that was skipped was not; if one run is there twice, of which every cell
/// would count twice; or if a plan cannot be read.
pub(crate) fn is_all_of_the_plans(root: &Path, runs: &[String]) -> Result<(), String> {
    let (mut known, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for line in runs {
        let run = read(line)?;
        if !ids.insert(run.run.id.clone()) {
            return Err(format!("the run {} is in {FOLDER} twice", run.run.id));
        }
        known.extend(run.cells.iter().map(|cell| {
            let who = (cell.subject, &*cell.mode, &*cell.client);
            describe(&cell.scenario, cell.topology, who)
        }));
        known.extend(run.failed.into_iter().map(|failed| failed.what));
    }
    let mut planned = Vec::new();
    for plan in PLANS {
        let of = |error: &dyn std::fmt::Display| format!("{FOLDER}/{plan}: {error}");
        let file = PlanFile::load(&root.join(FOLDER).join(plan)).map_err(|error| of(&error))?;
        let cells = file.cells(&Choice::default()).map_err(|error| of(&error))?;
        planned.extend(cells.iter().map(|cell| cell.describe()));
    }
    let absent: Vec<_> = planned
        .into_iter()
        .filter(|what| !known.contains(what))
        .collect();
    match absent.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "the runs in {FOLDER} are not all of its plans: they lack {}",
            absent.join("; ")
        )),
    }
}

/// How many cells these runs skipped. Of several runs one may try what another skipped; of a single one nothing may be skipped.
///
/// # Errors
///
/// If one cannot be read.
pub(crate) fn skipped(said: &str) -> Result<u64, String> {
    let skipped = said
        .lines()
        .map(|line| Ok(read(line)?.skipped.len() as u64));
    skipped.sum()
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

fn read(line: &str) -> Result<FailoverReport, String> {
    serde_json::from_str(line).map_err(|error| format!("a run in {FOLDER}: {error}"))
}

/// How many faults a plan does to locks of ours.
///
/// # Errors
///
/// If it cannot be read.
pub(crate) fn planned(root: &Path, plan: &str) -> Result<u64, String> {
    let of = |error: &dyn std::fmt::Display| format!("{FOLDER}/{plan}: {error}");
    let file = PlanFile::load(&root.join(FOLDER).join(plan)).map_err(|error| of(&error))?;
    let cells = file.cells(&Choice::default()).map_err(|error| of(&error))?;
    let ours = cells
        .iter()
        .filter(|cell| cell.subject == Subject::Locktopus);
    Ok(ours.map(|cell| u64::from(cell.scenario.faults)).sum())
}

/// What came of them. A promise that was not kept is a violation, and so is whatever keeps a run from counting: a cell that was
/// not run to its end, faults that were not done, errors that nothing explains, a lock that is broken on purpose and was not
/// caught by what it breaks.
///
/// # Errors
///
/// If no fault was done under a lock of ours, or no lock was broken on purpose.
pub(crate) fn outcome(said: &str) -> Result<Outcome, String> {
    let (mut cases, mut exclusive, mut violations, mut killed, mut survived) = (0, 0, 0, 0, 0);
    for line in said.lines() {
        let run = read(line)?;
        violations += completeness::missing(&run).len() as u64;
        for cell in &run.cells {
            violations += cell.broken_promises.len() as u64;
            match (cell.subject.is_broken(), completeness::is_caught(cell)) {
                (true, true) => killed += 1,
                (true, false) => survived += 1,
                // Others' locks are shown beside ours, and promise nothing here.
                (false, _) if cell.subject != Subject::Locktopus => {}
                (false, _) => {
                    cases += cell.figures.faults;
                    if requires_exclusion(cell) {
                        exclusive += cell.figures.faults;
                        // The report calls them a broken promise. Where it does not, its words "no semaphore here" may pass for an excuse
                        // of permits that failed, so that it does not seem to contradict itself.
                        if cell.broken_promises.is_empty() {
                            violations += cell.figures.faults_with_double_grants;
                        }
                    }
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
            exclusive: Some(exclusive),
        }),
    }
}

/// Whether two holders at once break a promise there: the report says of what is not required why not.
fn requires_exclusion(cell: &CellReport) -> bool {
    let begin = format!("{}: ", Property::ValidityOverlap);
    !cell
        .not_required
        .iter()
        .any(|property| property.starts_with(&begin))
}

/// A run of a lock of ours, and of one that is broken on purpose and was caught.
#[cfg(test)]
pub(crate) fn example() -> FailoverReport {
    let text = include_str!("../../../bench-harness/tests/data/failover-summary.json");
    let mut run: FailoverReport = serde_json::from_str(text).expect("it is a report");
    let mut ours = run.cells.remove(0);
    (ours.figures.faults, ours.planned_faults) = (20, 20);
    ours.figures.faults_with_double_grants = 0;
    let mut broken = ours.clone();
    broken.subject = Subject::BrokenRelease;
    broken.caught = vec!["validity: 1".to_owned()];
    run.cells = vec![ours, broken];
    run
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use super::*;
    use crate::build;

    fn changed(change: impl FnOnce(&mut FailoverReport)) -> Result<Outcome, String> {
        let mut run = example();
        change(&mut run);
        outcome(&serde_json::to_string(&run).unwrap())
    }

    /// Others' locks are shown beside ours; and of ours not every mode promises exclusion after every fault.
    #[test]
    fn faults_are_counted_where_they_could_break_something() {
        let others = changed(|run| {
            run.cells[0].not_required.clear();
            let mut other = run.cells[0].clone();
            other.subject = Subject::Redisson;
            run.cells.push(other);
        });
        let others = others.unwrap();
        assert_eq!((others.cases, others.exclusive), (20, Some(20)));
        // As the example is: it says why exclusion is not required.
        let weaker = changed(|run| run.cells[0].figures.faults_with_double_grants = 3);
        let weaker = weaker.unwrap();
        assert_eq!((weaker.exclusive, weaker.violations), (Some(0), 0));
        // The report calls them a broken promise, or it contradicts itself.
        let required = |doubles: u64| {
            let outcome = changed(|run| {
                let cell = &mut run.cells[0];
                cell.not_required.clear();
                cell.figures.validity.count = 0;
                let outcomes = cell.outcomes.values_mut();
                outcomes.for_each(|outcome| *outcome = "passed".to_owned());
                cell.figures.faults_with_double_grants = doubles;
            });
            outcome.unwrap().violations
        };
        assert!(required(0) == 0 && required(3) >= 3);
        // As a report is that contradicts itself: no permits to be tested, and too many of them.
        let permits = changed(|run| {
            let cell = &mut run.cells[0];
            let property = Property::PermitValidity.to_string();
            cell.not_required = vec![format!("{property}: no semaphore here")];
            (cell.figures.validity.count, cell.figures.permits_over) = (0, 3);
            let outcomes = cell.outcomes.values_mut();
            outcomes.for_each(|outcome| *outcome = "passed".to_owned());
            cell.outcomes.insert(property, "failed".to_owned());
            cell.figures.faults_with_double_grants = 3;
        });
        assert!(permits.unwrap().violations >= 3);
    }

    #[test]
    fn promises_that_were_broken_are_violations() {
        let fine = changed(|_| ()).unwrap();
        assert_eq!((fine.cases, fine.violations, fine.killed), (20, 0, Some(1)));
        assert!(changed(|run| run.cells.truncate(1)).is_err());
        assert!(changed(|run| drop(run.cells.remove(0))).is_err());
        let promise = |run: &mut FailoverReport| {
            run.cells[0].broken_promises.push("tokens grow".to_owned());
        };
        assert_eq!(changed(promise).unwrap().violations, 1);
        assert!(changed(|run| run.cells[1].caught.clear()).is_err());
    }

    /// Each of these once passed: the table said 0 violations of a run that had failed.
    #[test]
    fn what_keeps_a_run_from_counting_is_a_violation() {
        let violations = |change: fn(&mut FailoverReport)| changed(change).unwrap().violations;
        assert_eq!(violations(|run| run.cells[0].figures.faults = 19), 1);
        assert_eq!(violations(|run| run.cells[0].figures.granted = 0), 1);
        let odd = violations(|run| {
            run.cells[0].errors.insert("other".to_owned(), 1);
        });
        assert_eq!(odd, 1);
        assert_eq!(violations(|run| run.fail("a cell", "no server")), 1);
        // Another one of two is not caught, or by something else than what it breaks.
        for caught in [&[][..], &["outage: 1".to_owned()]] {
            let two = changed(|run| {
                let mut other = run.cells[1].clone();
                other.caught = caught.to_vec();
                run.cells.push(other);
            });
            let two = two.unwrap();
            assert_eq!((two.violations, two.survived), (1, Some(1)), "{caught:?}");
        }
    }

    #[test]
    fn the_kept_runs_are_read() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let runs = kept(root).unwrap();
        assert!(build::of(&runs).is_ok());
        assert!(outcome(&runs.join("\n")).unwrap().cases > 1_000);
        is_all_of_the_plans(root, &runs).unwrap();
        let twice = [&runs[..], &runs[..1]].concat();
        let told = is_all_of_the_plans(root, &twice).unwrap_err();
        assert!(told.contains("twice"), "{told}");
        // Without one cell they are not.
        let first = |cells: &mut Vec<_>| drop(cells.remove(0));
        let less: Vec<_> = runs
            .iter()
            .map(|line| {
                let mut run = read(line).unwrap();
                first(&mut run.cells);
                serde_json::to_string(&run).unwrap()
            })
            .collect();
        assert!(is_all_of_the_plans(root, &less).is_err());
    }

    /// As on a machine without containers: to be skipped is not to be tried.
    #[test]
    fn what_every_run_skips_is_not_of_the_plans() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let mut runs: Vec<_> = kept(root)
            .unwrap()
            .iter()
            .map(|run| read(run).unwrap())
            .collect();
        for run in &mut runs {
            let all = std::mem::take(&mut run.cells).into_iter();
            let (gone, stay): (Vec<_>, Vec<_>) =
                all.partition(|cell| cell.scenario == "isolate-clients");
            run.cells = stay;
            for cell in gone {
                let who = (cell.subject, &*cell.mode, &*cell.client);
                let what = describe(&cell.scenario, cell.topology, who);
                run.skip(what, "no containers");
            }
        }
        let lines: Vec<_> = runs
            .iter()
            .map(|run| serde_json::to_string(run).unwrap())
            .collect();
        assert!(skipped(&lines.join("\n")).unwrap() > 0);
        let told = is_all_of_the_plans(root, &lines).unwrap_err();
        assert!(told.contains("isolate-clients"), "{told}");
    }
}
