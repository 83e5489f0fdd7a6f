//! Invented reports, for tests of the renderers.
//!
//! Nothing here was measured, and every report says so in its first note. No subcommand of the
//! binary uses this module.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hdrhistogram::Histogram;

use crate::measure::model::{
    ClientCost, Environment, Harness, Occupied, OverlapCheck, Pinning, Provider, Report, Round,
    Run, ScriptTimes, Server, ServerCost, StoredHistogram, Subject, Topology, op,
};
use crate::measure::plan::{Client, Filter, Scenario, ScenarioFile, Strategy, Task};

/// The note that marks a report as invented.
const SYNTHETIC: &str =
    "SYNTHETIC DATA: invented to exercise the renderers. Nothing in this report was measured.";

/// Contention at several loads, clients by topologies, an open loop, a distant server.
const BROAD: &str = r#"
rounds = 3
[[cell]]
scenario = "hot-lock"
strategies = ["locktopus", "bare", "r1", "rslock"]
clients = ["redis-rs"]
topologies = ["standalone"]
kinds = ["mutex"]
workers = [2]
processes = 2
[[cell]]
scenario = "hot-lock"
strategies = ["locktopus", "bare", "r1", "rslock"]
clients = ["redis-rs"]
topologies = ["standalone"]
kinds = ["mutex"]
workers = [8, 32, 128]
processes = 8
[[cell]]
scenario = "uncontended"
kinds = ["mutex"]
topologies = ["standalone", "sentinel", "cluster", "quorum"]
[[cell]]
scenario = "hot-lock"
clients = ["redis-rs"]
topologies = ["standalone"]
kinds = ["mutex"]
workers = [16]
processes = 4
arrivals_per_second = 3500
[[cell]]
scenario = "uncontended"
clients = ["redis-rs"]
topologies = ["standalone"]
kinds = ["mutex"]
round_trips = ["1ms"]
"#;

/// A broad report, made once per process.
#[must_use]
pub fn shared() -> &'static Report {
    static SHARED: LazyLock<Report> = LazyLock::new(|| planned(BROAD));
    &SHARED
}

/// The report of a machine without any server.
#[must_use]
pub fn memory_only() -> Report {
    let mut report = planned(
        "rounds = 3\n[[cell]]\nscenario = \"hot-lock\"\nclients = [\"memory\"]\nworkers = [8]",
    );
    report.skip(
        "topology standalone",
        "redis-server or valkey-server on the path",
    );
    report
}

/// A run without measurements; renderers must survive it.
#[must_use]
pub fn empty() -> Report {
    let text = str::to_owned;
    let run = Run {
        id: text("synthetic"),
        started_at: text("2026-01-02T03:04:05Z"),
        seed: 7,
        command_line: vec![text("run")],
        scenario: text("synthetic"),
        rounds: 3,
    };
    let harness = Harness {
        version: text("0.0.0-synthetic"),
        git_describe: None,
        rust_version: text("rustc 1.88.0"),
        build_profile: text("release"),
    };
    let environment = Environment {
        os: text("Example OS 1"),
        kernel: text("6.1.0-example"),
        arch: text("x86_64"),
        cpu_model: text("Example CPU @ 3.00GHz"),
        logical_cores: 2,
        memory_bytes: 8 << 30,
        load_average_at_start: Some([0.12, 0.08, 0.05]),
        pinning: Pinning {
            pinned: true,
            server_cores: vec![0],
            client_cores: vec![1],
        },
    };
    let mut report = Report::new(run, harness, environment);
    report.note(SYNTHETIC);
    report
}

/// A run of the whole plan, without a failure. A strategy has the same
/// figures in each cell. Histograms contain few values, because there are thousands of them.
///
/// # Panics
///
/// If the plan is invalid; plans come with the source.
#[must_use]
pub fn planned(plan: &str) -> Report {
    let file = ScenarioFile::parse(plan, "planned").expect("a plan");
    let tasks = file.tasks(&Filter::default()).expect("a plan");
    let mut report = empty();
    report.run.rounds = file.rounds;
    for task in &tasks {
        let latencies = latencies(slowness(task.strategy));
        let rounds = (0..task.rounds_of(file.rounds)).map(|index| round(task, index, &latencies));
        report.cell_mut(&subject(task)).rounds.extend(rounds);
    }
    report
}

/// How many times slower and dearer than ours a strategy is.
const fn slowness(strategy: Strategy) -> f64 {
    match strategy {
        Strategy::Locktopus => 1.0,
        Strategy::Bare => 0.8,
        Strategy::R1 => 3.0,
        Strategy::Rslock => 4.0,
        Strategy::Redisson => 5.0,
    }
}

fn latencies(slowness: f64) -> StoredHistogram {
    let mut histogram = Histogram::new(2).expect("two digits");
    for value in [50_000.0, 60_000.0, 70_000.0] {
        let value = (value * slowness) as u64;
        histogram.record(value).expect("room for it");
    }
    StoredHistogram::from_histogram(&histogram).expect("a small one")
}

/// A round with all figures except memory, which only some tasks ask for, and those of servers.
fn round(task: &Task, index: u32, latencies: &StoredHistogram) -> Round {
    let each = 1_000;
    let acquisitions = u64::from(task.workers) * each;
    let all = op::ORDER.map(|name| (name.to_owned(), latencies.clone()));
    let times = |per_lock: f64| (per_lock * slowness(task.strategy) * acquisitions as f64) as u64;
    let on_servers = task.client != Client::Memory;
    let asked = matches!(
        task.scenario,
        Scenario::HeldMemory | Scenario::WaitingMemory
    );
    Round {
        index,
        position: 0,
        duration_ns: task.duration.as_nanos() as u64,
        ping: on_servers.then(|| self::latencies(0.5)),
        operations: all.into_iter().collect(),
        acquisitions,
        acquisitions_per_worker: vec![each; task.workers as usize],
        errors: BTreeMap::new(),
        server_cost: on_servers.then(|| ServerCost {
            commands: times(2.0),
            commands_with_scripts: Some(times(9.0)),
            cpu_ns: Some(times(50_000.0)),
            scripts: Some(ScriptTimes {
                p50_ns: 20_000,
                p99_ns: 40_000,
            }),
            by_command: BTreeMap::new(),
        }),
        client_cost: Some(ClientCost {
            cpu_ns: times(30_000.0),
            memory: asked.then_some(Occupied {
                bytes: 5_000_000,
                by: 10_000,
            }),
        }),
        machine: None,
        overlap_check: Some(OverlapCheck {
            holds_checked: acquisitions,
            overlaps: 0,
            longest_overlap_ns: 0,
        }),
    }
}

fn subject(task: &Task) -> Subject {
    let in_memory = task.client == Client::Memory;
    Subject {
        provider: if in_memory {
            Provider::Memory
        } else {
            Provider::Plain
        },
        server: (!in_memory).then(|| Server {
            flavour: "redis".to_owned(),
            version: "7.0.15".to_owned(),
        }),
        nodes: match task.topology {
            Topology::InProcess => 0,
            Topology::Standalone => 1,
            _ => task.nodes.unwrap_or(5),
        },
        ..task.subject()
    }
}
