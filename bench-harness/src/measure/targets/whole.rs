//! Whether what was measured is all of the plan: figures of a part would be a page that does not say so.

use super::select::kind_of_reference;
use super::{Judged, Outcome, Row, Select, Summary};
use crate::measure::model::Topology;
use crate::measure::plan::{Filter, PlanError, ScenarioFile, Task};

/// What the page is made of.
const PLAN: &str = include_str!("../../../scenarios/targets.toml");

/// What is planned for the page.
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
    /// [`PlanError`] if it is none.
    pub fn committed() -> Result<Self, PlanError> {
        let file = ScenarioFile::parse(PLAN, "targets")?;
        let tasks = file.tasks(&Filter::default())?;
        let rounds = file.rounds;
        Ok(Self { tasks, rounds })
    }

    /// What of it no run of the summary has, and what goals ask for that was not measured: in words, each once.
    #[must_use]
    pub fn unmeasured(&self, summary: &Summary, judged: &[Judged<'_>]) -> Vec<String> {
        let absent = self.tasks.iter().filter(|task| !self.has(summary, task));
        let mut unmeasured: Vec<_> = absent.map(Task::describe).collect();
        let lines = judged.iter().flat_map(|one| {
            let lines = one.lines.iter().map(|line| (&one.target.id, line));
            lines.filter(|(_, line)| line.outcome == Outcome::NotMeasured)
        });
        unmeasured.extend(lines.map(|(id, line)| {
            let row = Row::of(line);
            format!("goal {id}, {} {}", row.figure, row.case)
        }));
        unmeasured
    }

    /// Whether a run has the cell, in as many rounds as are planned.
    fn has(&self, summary: &Summary, task: &Task) -> bool {
        let wanted = select(task);
        let rounds = task.rounds_of(self.rounds) as usize;
        // Where no number is said all servers are meant, and one of a quorum is none.
        let is_quorum = task.topology == Topology::Quorum && task.nodes.is_none();
        summary.cells.iter().any(|cell| {
            wanted.matches(cell)
                && cell.rounds.len() >= rounds
                && (!is_quorum || cell.subject.nodes > 1)
        })
    }
}

/// The cell that a task becomes.
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

    /// What docs/performance.md is made of.
    fn committed() -> Summary {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        Summary::load(&docs.join("performance.json")).unwrap()
    }

    fn unmeasured(summary: &Summary) -> Vec<String> {
        let targets = Targets::committed().unwrap();
        let whole = Whole::committed().unwrap();
        whole.unmeasured(summary, &judge(&targets, summary))
    }

    #[test]
    fn the_committed_run_is_all_of_its_plan() {
        assert_eq!(unmeasured(&committed()), [""; 0]);
    }

    /// Whichever cell is gone, something of the plan is: no cell stands for another.
    #[test]
    fn a_cell_that_was_not_measured_is_missed() {
        let all = committed();
        let planned = Whole::committed().unwrap().tasks.len();
        assert_eq!(all.cells.len(), planned);
        for index in 0..planned {
            let mut less = all.clone();
            let gone = less.cells.remove(index).subject;
            let missed = unmeasured(&less);
            let about = |text: &&String| text.starts_with(&gone.scenario);
            assert_eq!(missed.iter().filter(about).count(), 1, "{missed:?}");
        }
        let mut short = all.clone();
        short.cells[0].rounds.pop();
        assert_eq!(unmeasured(&short).len(), 1);
    }

    #[test]
    fn a_figure_that_a_goal_asks_for_is_missed() {
        let mut less = committed();
        for cell in &mut less.cells {
            cell.figures.remove("commands");
        }
        let missed = unmeasured(&less);
        assert!(!missed.is_empty());
        let of_goals = |text: &String| text.starts_with("goal ") && text.contains("commands");
        assert!(missed.iter().all(of_goals), "{missed:?}");
    }
}
