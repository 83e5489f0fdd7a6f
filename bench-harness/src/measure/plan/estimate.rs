//! Estimates in advance how long a plan takes.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Scenario, Strategy, Task};
use crate::measure::model::Topology;

/// Starting the processes of a cell, connecting, and PING.
const EACH: Duration = Duration::from_millis(450);
/// One more process.
const PROCESS: Duration = Duration::from_millis(15);
/// A JVM, with Redisson's pools connected.
const JAVA: Duration = Duration::from_millis(1_800);
/// One lock to take before the measured part and to release after it.
const HELD: Duration = Duration::from_micros(80);
/// Round trips for connecting to distant servers and closing again.
const EXCHANGES: u32 = 12;

impl Task {
    /// The number of its rounds in a run of `rounds`.
    #[must_use]
    pub fn rounds_of(&self, rounds: u32) -> u32 {
        self.rounds.map_or(rounds, |most| most.min(rounds))
    }

    /// How long one of its rounds takes, with everything around it.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        let java = self.strategy == Strategy::Redisson;
        let held = match self.scenario {
            Scenario::Renewal | Scenario::HeldMemory => self.locks,
            Scenario::WaitingMemory => self.locks + self.workers,
            _ => 0,
        };
        let process = if java { JAVA } else { PROCESS };
        let far = self.round_trip.unwrap_or_default();
        EACH + process * self.processes
            + self.warm_up
            + self.duration
            + HELD * held
            + far * EXCHANGES
    }
}

/// How long the servers of a topology take to start and to stop.
fn servers(topology: Topology) -> Duration {
    Duration::from_secs(match topology {
        Topology::InProcess => 0,
        Topology::Standalone | Topology::Replicated => 1,
        Topology::Quorum => 2,
        Topology::Sentinel => 8,
        Topology::Cluster => 10,
    })
}

/// The whole of a plan.
#[must_use]
pub fn whole(tasks: &[Task], rounds: u32) -> Duration {
    let mut places: Vec<(Topology, bool)> = Vec::new();
    for task in tasks {
        let place = (task.topology, task.round_trip.is_some());
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let starts: Duration = places.iter().map(|(topology, _)| servers(*topology)).sum();
    let cells: Duration = tasks
        .iter()
        .map(|task| task.estimate() * task.rounds_of(rounds))
        .sum();
    starts + cells
}

/// A line for each cell, and the total.
#[must_use]
pub fn list(tasks: &[Task], rounds: u32) -> String {
    let mut out = String::new();
    for task in tasks {
        let (times, each) = (task.rounds_of(rounds), task.estimate());
        let group = task.group.as_deref().unwrap_or("-");
        let seconds = (each * times).as_secs_f64();
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{seconds:>5.0} s = {times} x {:>4.1} s  {group}: {}",
            each.as_secs_f64(),
            task.describe()
        );
    }
    let cells = tasks.len();
    let minutes = in_words(whole(tasks, rounds));
    let _ = writeln!(out, "{cells} cells, {rounds} rounds: {minutes}");
    out
}

/// Rounded, because no estimate is exact to the second.
#[must_use]
pub fn in_words(length: Duration) -> String {
    match length.as_secs() {
        seconds if seconds < 90 => format!("about {seconds} seconds"),
        seconds => format!("about {} minutes", (seconds + 30) / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::plan::{Filter, ScenarioFile};

    /// The run behind the page must be short enough to wait for.
    #[test]
    fn the_run_of_the_targets_takes_no_longer_than_a_coffee() {
        let text = include_str!("../../../scenarios/targets.toml");
        let file = ScenarioFile::parse(text, "targets").unwrap();
        let tasks = file.tasks(&Filter::default()).unwrap();
        let whole = whole(&tasks, file.rounds);
        assert!(file.rounds >= 5, "bounds need rounds");
        assert!(whole < Duration::from_secs(25 * 60), "{}", in_words(whole));
        assert!(list(&tasks, file.rounds).ends_with("minutes\n"));
    }

    #[test]
    fn what_is_measured_once_counts_once() {
        let text = "rounds = 5\n[[cell]]\nscenario = \"uncontended\"\nrounds = 1\n\
            clients = [\"fred\"]\ntopologies = [\"standalone\"]\nround_trips = [\"1ms\", \"20ms\"]";
        let file = ScenarioFile::parse(text, "x.toml").unwrap();
        let tasks = file.tasks(&Filter::default()).unwrap();
        assert_eq!((tasks.len(), tasks[0].rounds_of(5)), (2, 1));
        assert!(tasks[1].estimate() > tasks[0].estimate());
        let cells: Duration = tasks.iter().map(Task::estimate).sum();
        assert_eq!(whole(&tasks, 5), cells + servers(Topology::Standalone));
    }
}
