//! Invented reports for tests and for work on the renderers.
//!
//! Nothing here was measured, and every report says so in its first note. The data comes from a
//! seeded generator and goes through the real [`crate::measure::record::Recorder`], so renderers
//! see the same as from a runner. No subcommand of the binary uses this module.

mod hot;
mod planned;
mod single;

use std::sync::LazyLock;

use crate::measure::model::{
    Environment, Harness, Pacing, Pinning, Provider, Report, Run, Server, Subject, Topology,
};
use crate::shared::random::Random;

pub use planned::planned;

/// The note that marks a report as invented.
pub const SYNTHETIC: &str = "SYNTHETIC DATA: invented by a seeded generator to exercise the \
    renderers. Nothing in this report was measured.";

/// A broad report: contention, scaling, clients by topologies, an open loop, a failover.
#[must_use]
pub fn report(seed: u64) -> Report {
    let mut random = Random::new(seed);
    let mut report = base(seed, "synthetic-full");
    report.note("Closed loop: workers ask again when they are done, so waits are understated.");
    for round in 0..3 {
        hot::contention(&mut report, round, &mut random);
        single::clients_by_topologies(&mut report, round, &mut random);
        hot::open_loop(&mut report, round, &mut random);
        hot::failover(&mut report, round, &mut random);
    }
    report.skip(
        "topology quorum, 5 nodes, client fred",
        "a second free core",
    );
    report.skip("provider container", "a container engine (none answered)");
    report
}

/// [`report`] of one seed, made once per process, because it takes seconds without optimisation.
#[must_use]
pub fn shared() -> &'static Report {
    static SHARED: LazyLock<Report> = LazyLock::new(|| report(7));
    &SHARED
}

/// The same run on another server, slower with one strategy: for comparisons.
#[must_use]
pub fn regressed() -> Report {
    let mut report = shared().clone();
    "synthetic-regressed".clone_into(&mut report.run.id);
    report.environment.pinning = Pinning::default();
    for cell in &mut report.cells {
        if let Some(server) = &mut cell.subject.server {
            "7.2.4".clone_into(&mut server.version);
        }
        if cell.subject.strategy == "locktopus" && cell.subject.scenario == "hot-lock" {
            for round in &mut cell.rounds {
                round.duration_ns = round.duration_ns * 13 / 10;
            }
        }
    }
    report.cells.pop();
    report
}

/// The report of a machine without any server.
#[must_use]
pub fn memory_only(seed: u64) -> Report {
    let mut random = Random::new(seed);
    let mut report = base(seed, "synthetic-memory");
    report.note("Memory only: no server binary on the path, no container engine, no URL given.");
    hot::memory(&mut report, &mut random);
    report.skip(
        "topology standalone",
        "redis-server or valkey-server on the path",
    );
    report
}

/// A run without measurements; renderers must survive it.
#[must_use]
pub fn empty() -> Report {
    base(1, "synthetic-empty")
}

fn base(seed: u64, id: &str) -> Report {
    let text = str::to_owned;
    let run = Run {
        id: text(id),
        started_at: text("2026-01-02T03:04:05Z"),
        seed,
        command_line: ["run", "--scenario", "synthetic", "--rounds", "3"]
            .map(text)
            .to_vec(),
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
        container_engine: None,
    };
    let mut report = Report::new(run, harness, environment);
    report.note(SYNTHETIC);
    report
}

fn subject(scenario: &str, strategy: &str) -> Subject {
    Subject {
        scenario: scenario.to_owned(),
        strategy: strategy.to_owned(),
        client: "redis-rs".to_owned(),
        topology: Topology::Standalone,
        nodes: 1,
        provider: Provider::Plain,
        server: Some(Server {
            flavour: "redis".to_owned(),
            version: "7.0.15".to_owned(),
        }),
        lock_kind: "mutex".to_owned(),
        workers: 1,
        processes: 1,
        locks: 1,
        pacing: Pacing::ClosedLoop,
        hold_ns: 0,
        through_proxy: false,
        options: std::collections::BTreeMap::new(),
    }
}
