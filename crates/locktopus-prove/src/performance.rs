//! The measurement that docs/performance.md is made from, as far as it is a proof: of which code it speaks, and that nothing was
//! wrong while it was made.

use std::path::Path;

use bench_harness::measure::plan::ScenarioFile;
use bench_harness::measure::targets::{Summary, SummaryCell, Whole};

use crate::outcome::Outcome;

const FILE: &str = "docs/performance.json";
/// What is measured for it.
const PLAN: &str = "bench-harness/scenarios/targets.toml";
/// What is measured there are locks or waiters that stay: nobody comes after another. Everywhere else two holders at once are
/// looked for.
const WITHOUT_TURNS: [&str; 3] = ["renewal", "held-memory", "waiting-memory"];

/// What is kept of it.
///
/// # Errors
///
/// If it cannot be read.
pub(crate) fn kept(root: &Path) -> Result<String, String> {
    std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))
}

/// Whether it is of all that the plan asks for, in as many rounds: a part of it has fewer holders and fewer failures. What is more
/// than the plan would count as cases.
///
/// # Errors
///
/// If it differs from the plan, or one of them cannot be read.
pub(crate) fn is_all_of_the_plan(root: &Path, kept: &str) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{PLAN}: {error}");
    let plan = ScenarioFile::load(&root.join(PLAN)).map_err(|error| failed(&error))?;
    let whole = Whole::of(&plan).map_err(|error| failed(&error))?;
    let differences = whole.differences(&read(kept)?);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(format!("{FILE} is not {PLAN}: {}", differences.join("; "))),
    }
}

fn read(kept: &str) -> Result<Summary, String> {
    Summary::parse(kept, Path::new(FILE)).map_err(|error| error.to_string())
}

/// What came of it: two holders at once and operations that failed are violations, and so is what was not measured: a cell in
/// which nobody looked for two holders, fewer rounds than were planned, something that was skipped.
///
/// # Errors
///
/// If nothing was measured, or what is kept is no summary.
pub(crate) fn outcome(kept: &str) -> Result<Outcome, String> {
    let summary = read(kept)?;
    let violations = |cell: &SummaryCell| cell.errors + two_at_once(cell) + missing(cell, &summary);
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

fn two_at_once(cell: &SummaryCell) -> u64 {
    cell.overlaps.unwrap_or_else(|| {
        let has_no_turns = WITHOUT_TURNS.contains(&&*cell.subject.scenario);
        u64::from(!has_no_turns)
    })
}

/// Rounds that are missing, of a cell or of its figures: a cell may have fewer rounds than its run, and then says so.
fn missing(cell: &SummaryCell, summary: &Summary) -> u64 {
    let of_cell = cell.subject.options.get("rounds");
    let of_cell = of_cell.and_then(|rounds| rounds.parse().ok());
    let of_run = summary
        .runs
        .get(cell.run)
        .map_or(u32::MAX, |run| run.rounds);
    let of_figures = cell.figures.values().map(Vec::len).min();
    let there = cell.rounds.len().min(of_figures.unwrap_or(0));
    u64::from(of_cell.unwrap_or(of_run)).saturating_sub(there as u64)
}

/// A measurement of one cell in one round, of this build.
#[cfg(test)]
pub(crate) fn example(build: &str) -> Summary {
    use bench_harness::measure::model::Topology;

    let text = include_str!("../../../docs/performance.json");
    let mut summary = read(text).expect("it is a summary");
    summary.harness.git_describe = Some(build.to_owned());
    let is_it = |cell: &SummaryCell| {
        let subject = &cell.subject;
        let who = [&*subject.strategy, &*subject.client];
        let what = [&*subject.scenario, &*subject.lock_kind];
        who == ["locktopus", "redis-rs"]
            && what == ["uncontended", "lock"]
            && subject.topology == Topology::Standalone
            && subject.options.is_empty()
    };
    summary.cells.retain(is_it);
    summary.cells.truncate(1);
    let cell = &mut summary.cells[0];
    cell.rounds.truncate(1);
    cell.figures
        .values_mut()
        .for_each(|values| values.truncate(1));
    summary.runs.swap(0, cell.run);
    summary.runs.truncate(1);
    (cell.run, summary.runs[0].rounds) = (0, 1);
    summary
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use bench_harness::measure::model::Skipped;

    use super::*;
    use crate::build;

    /// Of a measurement that was changed so.
    fn violations(change: impl FnOnce(&mut Summary)) -> u64 {
        let mut summary = example("abc");
        change(&mut summary);
        outcome(&summary.to_json()).unwrap().violations
    }

    #[test]
    fn two_holders_and_failures_are_violations() {
        assert_eq!(violations(|_| ()), 0);
        let both = violations(|summary| {
            summary.cells[0].overlaps = Some(2);
            summary.cells[0].errors = 3;
        });
        assert_eq!(both, 5);
        // Nobody looked, where somebody must.
        assert_eq!(violations(|summary| summary.cells[0].overlaps = None), 1);
        let of_renewal = violations(|summary| {
            summary.cells[0].overlaps = None;
            summary.cells[0].subject.scenario = "renewal".to_owned();
        });
        assert_eq!(of_renewal, 0);
        let mut nothing = example("abc");
        nothing.cells.clear();
        assert!(outcome(&nothing.to_json()).is_err());
        assert!(outcome("{}").is_err());
    }

    #[test]
    fn what_was_not_measured_is_a_violation() {
        let of_run = |rounds: u32| violations(|summary| summary.runs[0].rounds = rounds);
        assert_eq!(of_run(2), 1);
        let without = violations(|summary| summary.cells[0].figures.clear());
        assert_eq!(without, 1);
        let one_without = violations(|summary| {
            let mut figures = summary.cells[0].figures.values_mut();
            figures.next_back().unwrap().clear();
        });
        assert_eq!(one_without, 1);
        let fewer = |planned: &str| {
            violations(|summary| {
                summary.runs[0].rounds = 5;
                let options = &mut summary.cells[0].subject.options;
                options.insert("rounds".to_owned(), planned.to_owned());
            })
        };
        assert_eq!((fewer("1"), fewer("3")), (0, 2));
        let skipped = violations(|summary| {
            let [what, needs] = ["Redisson", "Java"].map(str::to_owned);
            summary.skipped.push(Skipped { what, needs });
        });
        assert_eq!(skipped, 1);
    }

    #[test]
    fn what_is_kept_is_all_of_the_plan() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let kept = kept(root).unwrap();
        let outcome = outcome(&kept).unwrap();
        assert!(outcome.cases > 10 && outcome.violations == 0, "{outcome}");
        is_all_of_the_plan(root, &kept).unwrap();
        assert!(build::of(std::slice::from_ref(&kept)).is_ok());

        // Each of these once passed.
        let told = |change: fn(&mut Vec<SummaryCell>), word: &str| {
            let mut summary = read(&kept).unwrap();
            change(&mut summary.cells);
            let told = is_all_of_the_plan(root, &summary.to_json()).unwrap_err();
            assert!(told.contains(word), "{told}");
        };
        told(|cells| cells.truncate(3), "missing");
        told(|cells| drop(cells.remove(0)), "missing");
        told(|cells| cells.push(cells[0].clone()), "twice");
        told(|cells| cells[0].rounds.truncate(1), "planned are 5");
        told(
            |cells| {
                cells[0].subject.scenario = "renewal".to_owned();
                cells[0].overlaps = None;
            },
            "renewal",
        );
        // As many as are planned, of which one is another's double.
        told(
            |cells| {
                let of_modes: Vec<_> = (0..cells.len())
                    .filter(|at| cells[*at].subject.options.contains_key("safety"))
                    .collect();
                let double = |one: usize, other: usize| {
                    let [mut one, other] = [one, other].map(|at| cells[at].subject.clone());
                    one.options.clone_from(&other.options);
                    one == other
                };
                let pairs = of_modes
                    .iter()
                    .flat_map(|one| of_modes.iter().map(move |other| (*one, *other)));
                let (one, other) = pairs
                    .filter(|(one, other)| one != other)
                    .find(|(one, other)| double(*one, *other))
                    .unwrap();
                cells[one] = cells[other].clone();
            },
            "twice",
        );
    }
}
