//! Checks that the plan was measured in full: a page from a part would not say so, and a repeated
//! cell would count twice.

use std::collections::BTreeSet;
use std::time::Duration;

use super::select::kind_of_reference;
use super::{Judged, Outcome, Row, Select};
use crate::measure::model::{Provider, Report, Subject, Topology};
use crate::measure::plan::{Filter, PlanError, Scenario, ScenarioFile, Strategy, Task};
use crate::measure::summary::{Summary, SummaryCell};

/// The plan behind the page.
const PLAN: &str = include_str!("../../../scenarios/targets.toml");

/// The cells and rounds that the plan asks for.
#[derive(Debug)]
pub struct Whole {
    tasks: Vec<Task>,
    rounds: u32,
}

impl Whole {
    /// The committed plan.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if it is invalid.
    pub fn committed() -> Result<Self, PlanError> {
        Self::of(&ScenarioFile::parse(PLAN, "targets")?)
    }

    /// Everything that this plan asks for.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if it asks for something that cannot be measured.
    pub fn of(plan: &ScenarioFile) -> Result<Self, PlanError> {
        let tasks = plan.tasks(&Filter::default())?;
        let rounds = plan.rounds;
        Ok(Self { tasks, rounds })
    }

    /// How the cells of the summary differ from the plan, in words: missing, with another number of
    /// rounds, twice, or not planned.
    #[must_use]
    pub fn differences(&self, summary: &Summary) -> Vec<String> {
        let of_plan = self.tasks.iter().filter_map(|task| {
            let mut cells = summary
                .cells
                .iter()
                .filter(|cell| is_of(&cell.subject, task));
            let planned = task.rounds_of(self.rounds) as usize;
            let problem = match (cells.next(), cells.next()) {
                (None, _) => "missing".to_owned(),
                (Some(_), Some(_)) => "there twice".to_owned(),
                (Some(cell), None) => {
                    // A repeated round number stands for one round.
                    let rounds = cell.rounds.iter().collect::<BTreeSet<_>>().len();
                    if rounds == planned && cell.rounds.len() == planned {
                        return None;
                    }
                    format!("rounds {:?}, planned are {planned}", cell.rounds)
                }
            };
            Some(format!("{}: {problem}", task.describe()))
        });
        let is_planned = |cell: &&SummaryCell| {
            let mut tasks = self.tasks.iter();
            tasks.any(|task| is_of(&cell.subject, task))
        };
        let others = summary.cells.iter().filter(|cell| !is_planned(cell));
        let others = others.map(|cell| format!("{}: not planned", cell.subject.describe()));
        of_plan.chain(others).collect()
    }

    /// Rounds of the report that were shorter than planned, in words. Their figures rest on fewer
    /// grants, and no figure shows that.
    #[must_use]
    pub fn shortened(&self, report: &Report) -> Vec<String> {
        let of_plan = report.cells.iter().filter_map(|cell| {
            let task = self.tasks.iter().find(|task| is_of(&cell.subject, task))?;
            Some((cell, task.duration))
        });
        let shorter = of_plan.filter_map(|(cell, planned)| {
            let lengths = cell.rounds.iter().map(|round| round.duration_ns);
            let shortest = Duration::from_nanos(lengths.min()?);
            (shortest < planned).then(|| {
                format!(
                    "{}: a round of {}, planned are {}",
                    cell.subject.describe(),
                    humantime::format_duration(shortest),
                    humantime::format_duration(planned)
                )
            })
        });
        shorter.collect()
    }
}

/// Figures that goals ask for and no run measured, in words.
#[must_use]
pub fn unmeasured(judged: &[Judged<'_>]) -> Vec<String> {
    let lines = judged.iter().flat_map(|one| {
        let lines = one.lines.iter().map(|line| (&one.target.id, line));
        lines.filter(|(_, line)| line.outcome == Outcome::NotMeasured)
    });
    let words = lines.map(|(id, line)| {
        let row = Row::of(line);
        format!("goal {id}, {} {}: missing", row.figure, row.case)
    });
    words.collect()
}

/// Whether this is what the task measures.
fn is_of(subject: &Subject, task: &Task) -> bool {
    // Without a number all servers of a quorum are used, and a single server is no quorum.
    let is_quorum = task.topology == Topology::Quorum && task.nodes.is_none();
    // The port map of a container engine is a proxy too.
    let through_proxy = task.round_trip.is_some() || subject.provider == Provider::Container;
    select(task).matches(subject)
        && (!is_quorum || subject.nodes > 1)
        && subject.through_proxy == through_proxy
        && has_options(subject, task)
}

/// Whether it has exactly the options of the task.
fn has_options(subject: &Subject, task: &Task) -> bool {
    let time = |name: &str| humantime::parse_duration(subject.options.get(name)?).ok();
    let warm_up = (task.strategy == Strategy::Redisson).then_some(task.warm_up);
    let lease = (task.scenario == Scenario::Renewal).then_some(task.lease);
    // The options that the selection has checked. It ignores an option that it cannot parse, so
    // their number must match too.
    let selected = [
        task.threads > 1,
        task.turns.is_some(),
        !task.lease_cache.is_zero(),
        task.round_trip.is_some(),
        task.safety.is_some(),
        task.rounds.is_some(),
    ];
    let planned = selected.into_iter().filter(|&is_there| is_there).count();
    let rounds = subject.options.get("rounds");
    time("JIT warm-up") == warm_up
        && time("lease") == lease
        && rounds.and_then(|rounds| rounds.parse().ok()) == task.rounds
        && subject.options.len() == planned + warm_up.iter().count() + lease.iter().count()
}

/// The selection for a task's cell.
fn select(task: &Task) -> Select {
    let strategy = task.strategy.name();
    let kind = kind_of_reference(strategy).unwrap_or_else(|| task.kind.name());
    let text = |text: &str| Some(text.to_owned());
    Select {
        scenario: text(task.scenario.name()),
        strategy: text(strategy),
        client: text(task.client.name()),
        kind: text(kind),
        topology: text(task.topology.name()),
        nodes: task.nodes,
        workers: Some(task.workers),
        processes: Some(task.processes),
        threads: Some(task.threads),
        turns: task.turns,
        lease_cache: Some(task.lease_cache),
        safety: task.safety.clone(),
        arrivals_per_second: task.arrivals_per_second,
        locks: Some(task.locks),
        hold: Some(task.hold),
        round_trip: task.round_trip,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::measure::targets::{Targets, judge};

    /// The summary behind docs/performance.md.
    fn committed() -> Summary {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        Summary::load(&docs.join("performance.json")).unwrap()
    }

    fn differences(summary: &Summary) -> Vec<String> {
        Whole::committed().unwrap().differences(summary)
    }

    #[test]
    fn the_committed_run_is_all_of_its_plan() {
        let summary = committed();
        assert_eq!(differences(&summary), [""; 0]);
        let targets = Targets::committed().unwrap();
        assert_eq!(unmeasured(&judge(&targets, &summary)), [""; 0]);
    }

    /// If any cell is gone, something of the plan is missing: no cell stands for another.
    #[test]
    fn a_cell_that_was_not_measured_is_missed() {
        let all = committed();
        let planned = Whole::committed().unwrap().tasks.len();
        assert_eq!(all.cells.len(), planned);
        for index in 0..planned {
            let mut less = all.clone();
            let gone = less.cells.remove(index).subject;
            let missed = differences(&less);
            let about =
                |text: &String| text.starts_with(&gone.scenario) && text.contains("missing");
            assert!(missed.len() == 1 && about(&missed[0]), "{missed:?}");
        }
    }

    /// A missing round, an extra round, and a repeated one.
    #[test]
    fn rounds_are_as_many_as_planned() {
        let told = |change: fn(&mut Vec<u32>)| {
            let mut other = committed();
            change(&mut other.cells[0].rounds);
            let found = differences(&other);
            let is_it = |text: &str| text.ends_with("planned are 5");
            assert!(found.len() == 1 && is_it(&found[0]), "{found:?}");
        };
        told(|rounds| rounds.truncate(4));
        told(|rounds| rounds.push(5));
        told(|rounds| rounds.push(4));
        told(|rounds| rounds[4] = 3);
    }

    #[test]
    fn a_cell_that_is_not_planned_or_there_twice_is_told() {
        let all = committed();
        for index in 0..all.cells.len() {
            let mut more = all.clone();
            more.cells.push(all.cells[index].clone());
            let found = differences(&more);
            assert!(
                found.len() == 1 && found[0].ends_with("there twice"),
                "{found:?}"
            );
            // With another provider it is the same measurement.
            let last = &mut more.cells.last_mut().unwrap().subject;
            last.provider = Provider::External;
            assert_eq!(differences(&more).len(), 1);
            let last = &mut more.cells.last_mut().unwrap().subject;
            last.scenario = "other".to_owned();
            let found = differences(&more);
            let odd = |text: &str| text.starts_with("other") && text.ends_with("not planned");
            assert!(found.len() == 1 && odd(&found[0]), "{found:?}");
        }
        // As many cells as planned, but one is another's double.
        let mut double = all.clone();
        double.cells[1] = all.cells[0].clone();
        let found = differences(&double);
        assert!(
            found.len() == 2 && found[0].ends_with("there twice"),
            "{found:?}"
        );
        assert!(found[1].ends_with("missing"), "{found:?}");
    }

    #[test]
    fn a_cell_that_was_measured_otherwise_is_not_the_planned_one() {
        let told = |scenario: &str, strategy: &str, change: &dyn Fn(&mut Subject)| {
            let mut other = committed();
            let mut subjects = other.cells.iter_mut().map(|cell| &mut cell.subject);
            let is_it = |subject: &&mut Subject| {
                subject.scenario == scenario && subject.strategy == strategy
            };
            change(subjects.find(is_it).unwrap());
            let found = differences(&other);
            assert!(
                found.len() == 2 && found[0].ends_with("missing"),
                "{found:?}"
            );
            assert!(found[1].ends_with("not planned"), "{found:?}");
        };
        let with = |scenario: &str, strategy: &str, name: &str, value: &str| {
            told(scenario, strategy, &|subject| {
                subject.options.insert(name.to_owned(), value.to_owned());
            });
        };
        with("hot-lock", "redisson", "JIT warm-up", "0s");
        with("renewal", "locktopus", "lease", "9h");
        with("hot-lock", "locktopus", "turns", "many");
        with("waiting-memory", "locktopus", "rounds", "5");
        with("hot-lock", "locktopus", "new", "x");
        told("remote-waiter", "locktopus", &|subject| {
            subject.through_proxy = !subject.through_proxy;
        });
        told("hot-lock", "locktopus", &|subject| {
            subject.through_proxy = true
        });
    }

    #[test]
    fn a_figure_that_a_goal_asks_for_is_missed() {
        let mut less = committed();
        for cell in &mut less.cells {
            cell.figures.remove("commands");
        }
        let targets = Targets::committed().unwrap();
        let missed = unmeasured(&judge(&targets, &less));
        assert!(!missed.is_empty());
        let of_goals = |text: &String| text.starts_with("goal ") && text.contains("commands");
        assert!(missed.iter().all(of_goals), "{missed:?}");
    }
}
