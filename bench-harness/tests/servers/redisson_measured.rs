//! Redisson's worker follows the same conversation as the others, on the same clock.
//!
//! Without a JDK, Maven or Maven's downloads, all these tests except one skip themselves with a
//! loud message; in CI that is a failure. If a machine should have no JDK, set `LOCKTOPUS_SKIP_JDK`
//! to the reason.

use crate::common;
use std::process::Command;

use bench_harness::measure::model::{self, Report, op};
use bench_harness::measure::worker::monotonic_ns;
use locktopus_servers::peers::redisson::{Jar, Redisson, jar_or_skip};
use locktopus_servers::topology::{ProviderKind, Spec, TopologyKind, start};

/// Two JVMs for the hot lock, and one for the rest.
const SCENARIOS: &str = r#"
rounds = 1

[[cell]]
scenario = "hot-lock"
strategies = ["redisson"]
clients = ["redisson"]
kinds = ["lock", "fair-lock", "write-lock"]
topologies = ["standalone"]
workers = [4]
processes = 2
hold = "5ms"
duration = "400ms"
warm_up = "200ms"

# Who spins looks ever more seldom, and whoever gave the lock back takes it again first: a change of holder is rare.
[[cell]]
scenario = "hot-lock"
strategies = ["redisson"]
clients = ["redisson"]
kinds = ["spin-lock"]
topologies = ["standalone"]
workers = [4]
processes = 2
hold = "1ms"
duration = "2s"
warm_up = "200ms"

[[cell]]
scenario = "many-locks"
strategies = ["redisson"]
clients = ["redisson"]
topologies = ["cluster"]
workers = [4]
duration = "300ms"
warm_up = "0s"
"#;

async fn jar() -> Option<Jar> {
    let jar = jar_or_skip().await;
    jar.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs the scenarios above and reads the report; `code` is the expected exit code.
fn measured(name: &str, code: i32, change: impl FnOnce(&mut Command)) -> (Report, String) {
    let directory = common::directory(name);
    let file = directory.join("scenarios.toml");
    std::fs::write(&file, SCENARIOS).expect("a writable target directory");
    let mut command = common::bench(&["run", "--provider", "plain", "--file"]);
    command.arg(&file).arg("--out").arg(&directory);
    change(&mut command);
    let output = common::ran(&mut command);
    let said = common::told(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    let report = model::read(&directory.join("report.json")).expect("a readable report");
    (report, said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_workload_is_recorded() {
    if jar().await.is_none() {
        return;
    }
    let (report, _) = measured("redisson", 0, |_| ());
    assert_eq!(report.cells.len(), 5, "{:?}", report.skipped);
    assert!(
        report
            .notes
            .iter()
            .any(|n| n.starts_with("Redisson is version 4.")),
        "{:?}",
        report.notes
    );
    for cell in &report.cells {
        let subject = &cell.subject;
        let what = format!("{} {}", subject.scenario, subject.lock_kind);
        assert_eq!(
            (&*subject.strategy, &*subject.client),
            ("redisson", "redisson")
        );
        assert!(subject.options.contains_key("JIT warm-up"), "{what}");
        let [round] = &cell.rounds[..] else {
            panic!("{what}: {} rounds", cell.rounds.len());
        };
        assert!(round.errors.is_empty(), "{what}: {:?}", round.errors);
        assert_eq!(round.acquisitions_per_worker.len(), 4, "{what}");
        let check = round.overlap_check.unwrap();
        assert_eq!(
            (check.holds_checked, check.overlaps),
            (round.acquisitions, 0),
            "{what}"
        );
        let cost = round.server_cost.as_ref().unwrap();
        // At least one to take it and two to release it.
        assert!(cost.commands >= 3 * round.acquisitions, "{what}: {cost:?}");
        assert!(
            round.ping.as_ref().unwrap().summary.p50_ns > 1_000,
            "{what}"
        );

        let hot = subject.scenario == "hot-lock";
        let last = if hot { op::HAND_OFF } else { op::PAIR };
        for name in [op::ACQUIRE, op::RELEASE, last] {
            let found = round.operations.get(name);
            assert!(found.is_some_and(|h| h.summary.count > 0), "{what}: {name}");
        }
        if hot {
            // One holder at a time for 5 ms each, or 1 ms of 2 s, plus the last one of each worker.
            let spins = subject.lock_kind == "spin-lock";
            let most = if spins { 2_004 } else { 84 };
            assert!(
                (4..=most).contains(&round.acquisitions),
                "{what}: {}",
                round.acquisitions
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn java_reads_the_same_clock() {
    let Some(jar) = jar().await else { return };
    let place = start(ProviderKind::Plain, &Spec::new(TopologyKind::Standalone))
        .await
        .unwrap();
    let java = Redisson::start(&jar, &place.url()).await.unwrap();
    let mut thread = java.thread();
    for _ in 0..10 {
        let before = monotonic_ns();
        let there = thread
            .ask(&["self", "clock"])
            .await
            .unwrap()
            .number()
            .unwrap();
        let after = monotonic_ns();
        let there = u64::try_from(there).unwrap();
        assert!(
            (before..=after).contains(&there),
            "{before} {there} {after}"
        );
    }
    java.exit().await.unwrap();
    place.stop().await.unwrap();
}

#[test]
fn without_java_it_is_left_out_with_a_word() {
    // Nothing else was asked for, so nothing was measured, which is a failure.
    let (report, said) = measured("no-java", 6, |command| {
        command.env("JAVA_HOME", "/nonexistent").env_remove("CI");
    });
    assert!(report.cells.is_empty());
    let [skipped] = &report.skipped[..] else {
        panic!("{:?}", report.skipped);
    };
    assert_eq!(skipped.what, "Redisson");
    assert!(skipped.needs.contains("JDK"), "{}", skipped.needs);
    assert!(
        said.contains("Redisson left out") && said.contains("no JDK"),
        "{said}"
    );
}
