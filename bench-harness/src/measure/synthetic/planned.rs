//! Every cell of a plan, with the same figures in each.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::subject;
use crate::measure::model::{
    ClientCost, Occupied, OverlapCheck, Report, Round, ScriptTimes, ServerCost, StoredHistogram,
    Subject, Topology, op,
};
use crate::measure::plan::{Filter, Scenario, ScenarioFile, Strategy, Task};

/// A run of everything that this plan asks for. Every cell has the same figures, and nothing
/// failed. Its histograms contain few values, because there are thousands of them.
///
/// # Panics
///
/// If the plan is invalid; plans come with the source.
#[must_use]
pub fn planned(plan: &str) -> Report {
    let file = ScenarioFile::parse(plan, "planned").expect("a plan");
    let tasks = file.tasks(&Filter::default()).expect("a plan");
    let mut report = super::base(7, "synthetic-planned");
    report.run.rounds = file.rounds;
    let latencies = latencies();
    for task in &tasks {
        let rounds = (0..task.rounds_of(file.rounds)).map(|index| round(task, index, &latencies));
        report.cell_mut(&of(task)).rounds.extend(rounds);
    }
    report
}

fn latencies() -> StoredHistogram {
    let mut histogram = Histogram::new(2).expect("two digits");
    for value in [50_000, 60_000, 70_000] {
        histogram.saturating_record(value);
    }
    StoredHistogram::from_histogram(&histogram).expect("a small one")
}

/// A round with all figures except memory, which only some tasks ask for.
fn round(task: &Task, index: u32, latencies: &StoredHistogram) -> Round {
    let workers = task.workers as usize;
    let each = 1_000;
    let acquisitions = u64::from(task.workers) * each;
    let all = op::ORDER.map(|name| (name.to_owned(), latencies.clone()));
    let memory = Occupied {
        bytes: 5_000_000,
        by: 10_000,
    };
    let asked = matches!(
        task.scenario,
        Scenario::HeldMemory | Scenario::WaitingMemory
    );
    Round {
        index,
        position: 0,
        duration_ns: task.duration.as_nanos() as u64,
        ping: Some(latencies.clone()),
        operations: all.into_iter().collect(),
        acquisitions,
        acquisitions_per_worker: vec![each; workers],
        errors: BTreeMap::new(),
        server_cost: Some(ServerCost {
            commands: 2 * acquisitions,
            commands_with_scripts: Some(9 * acquisitions),
            cpu_ns: Some(50_000 * acquisitions),
            scripts: Some(ScriptTimes {
                p50_ns: 20_000,
                p99_ns: 40_000,
            }),
            by_command: BTreeMap::new(),
        }),
        client_cost: Some(ClientCost {
            cpu_ns: 30_000 * acquisitions,
            memory: asked.then_some(memory),
        }),
        machine: None,
        overlap_check: Some(OverlapCheck {
            holds_checked: acquisitions,
            overlaps: 0,
            longest_overlap_ns: 0,
        }),
        time_series: None,
    }
}

fn of(task: &Task) -> Subject {
    let mut cell = subject(task.scenario.name(), task.strategy.name());
    let time = |time| humantime::format_duration(time).to_string();
    let kind = match task.strategy {
        Strategy::Locktopus | Strategy::Redisson => task.kind.name(),
        Strategy::R1 => "lock",
        Strategy::Bare | Strategy::Rslock => "mutex",
    };
    kind.clone_into(&mut cell.lock_kind);
    task.client.name().clone_into(&mut cell.client);
    cell.topology = task.topology;
    cell.nodes = match task.topology {
        Topology::Standalone => 1,
        _ => task.nodes.unwrap_or(5),
    };
    (cell.workers, cell.processes) = (task.workers, task.processes);
    (cell.locks, cell.pacing) = (task.locks, task.pacing());
    cell.hold_ns = u64::try_from(task.hold.as_nanos()).unwrap_or(u64::MAX);
    cell.through_proxy = task.round_trip.is_some();
    let threads = Some(task.threads).filter(|&threads| threads > 1);
    let kept = Some(task.lease_cache).filter(|kept| !kept.is_zero());
    let lease = (task.scenario == Scenario::Renewal).then_some(task.lease);
    let warm_up = (task.strategy == Strategy::Redisson).then_some(task.warm_up);
    let options = [
        ("lease", lease.map(time)),
        ("JIT warm-up", warm_up.map(time)),
        ("threads", threads.map(|threads| threads.to_string())),
        ("turns", task.turns.map(|turns| turns.to_string())),
        ("lease cache", kept.map(time)),
        ("rounds", task.rounds.map(|rounds| rounds.to_string())),
        ("round trip", task.round_trip.map(time)),
        ("safety", task.safety.clone()),
    ];
    let options = options.into_iter();
    cell.options = options
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
    cell
}
