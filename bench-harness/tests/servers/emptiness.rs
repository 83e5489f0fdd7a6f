//! Runs that grant nothing, or lose a part, must not look like runs without a problem.

use crate::common;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::common::{address, asked, directory, settings, started, told};
use bench_harness::failover::model;
use locktopus_servers::topology::{self, Knobs, ProviderKind, Spec, TopologyKind};

const MEASUREMENT: Option<i32> = Some(6);

fn bench(arguments: &[&str], out: &Path) -> Command {
    let mut command = common::bench(arguments);
    command.arg("--out").arg(out);
    command
}

const RESTART: [&str; 6] = [
    "failover",
    "--smoke",
    "--scenario",
    "restart",
    "--topology",
    "standalone",
];

#[test]
fn servers_that_do_not_start_fail_the_run() {
    let out = directory("no-servers");
    let output = bench(&RESTART, &out)
        .env("LOCKTOPUS_SERVER_BIN", "/bin/true")
        .output()
        .expect("the binary starts");
    assert_eq!(output.status.code(), MEASUREMENT, "{}", told(&output));
    let report = model::read(&out.join("report.json")).unwrap();
    assert!(
        report.cells.is_empty() && report.skipped.is_empty(),
        "{report:?}"
    );
    assert!(!report.failed.is_empty());
    assert!(
        told(&output).contains("FAILED: no cell was run"),
        "{}",
        told(&output)
    );
}

#[test]
fn a_worker_that_dies_fails_the_run() {
    let out = directory("dead-worker");
    let mut harness = spawned(bench(&RESTART, &out));
    let worker = started(&mut harness, "failover-worker", 1)[0];
    let output = ended_without(worker, harness);
    assert_eq!(output.status.code(), MEASUREMENT, "{}", told(&output));
    let report = model::read(&out.join("report.json")).unwrap();
    assert!(report.skipped.is_empty(), "{:?}", report.skipped);
    assert!(!bench_harness::failover::completeness::missing(&report).is_empty());
}

/// Even if the other processes measured meanwhile, the cell has no result.
#[test]
fn a_worker_that_dies_fails_the_measurement() {
    let out = directory("dead-measurer");
    let arguments = [
        &["run", "--smoke", "--provider", "plain"][..],
        &["--scenario", "hot-lock", "--topology", "standalone"],
        &["--strategy", "locktopus", "--client", "redis-rs"],
        &["--kind", "lock", "--workers", "4", "--processes", "2"],
        &["--duration", "10s"],
    ];
    let mut harness = spawned(bench(&arguments.concat(), &out));
    let workers = started(&mut harness, "worker", 2);
    let server = address(&settings(&mut harness, 1)[0]);
    // Only workers run scripts, and they wait for the starting signal.
    common::until("a hundred scripts", || {
        let statistics = asked(&server, "INFO commandstats");
        let calls = statistics.split("cmdstat_evalsha:calls=").nth(1);
        let calls = calls.and_then(|rest| rest.split(',').next()?.parse().ok());
        calls.unwrap_or(0) >= 100
    });
    let output = ended_without(workers[1], harness);
    let said = told(&output);
    assert_eq!(output.status.code(), MEASUREMENT, "{said}");
    assert!(said.contains("a worker ended without a message"), "{said}");
    assert!(said.contains("hot-lock"), "which cell: {said}");
}

fn spawned(mut command: Command) -> Child {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().expect("the binary starts")
}

/// Kills this process of the harness, and returns how the harness ends.
fn ended_without(worker: u32, harness: Child) -> Output {
    common::kill(worker);
    harness.wait_with_output().expect("it ends")
}

#[tokio::test]
async fn locks_that_nobody_gets_fail_the_run() {
    let spec = Spec::new(TopologyKind::Standalone).with_knobs(Knobs {
        users: vec!["app on >secret ~* &* +@all -eval -evalsha".to_owned()],
        ..Knobs::default()
    });
    let servers = topology::start(ProviderKind::Plain, &spec).await.unwrap();
    let url = servers.urls()[0].replacen("://", "://app:secret@", 1);
    let out = directory("no-grants");
    let arguments = [
        "run",
        "--smoke",
        "--scenario",
        "uncontended",
        "--strategy",
        "locktopus",
        "--client",
        "redis-rs",
        "--url",
        &url,
    ];
    let mut command = bench(&arguments, &out);
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap();
    let output = output.expect("the binary starts");
    assert_eq!(output.status.code(), MEASUREMENT, "{}", told(&output));
    assert!(
        told(&output).contains("nothing was granted"),
        "{}",
        told(&output)
    );
    servers.stop().await.unwrap();
}

/// A skip is fine only if the user asked for it. A user who asks for servers of any kind did not
/// ask to skip them.
#[test]
fn servers_that_cannot_be_had_are_no_skip() {
    let out = directory("no-places");
    let run = |arguments: &[&str]| {
        let mut all = vec!["run", "--smoke", "--scenario", "uncontended"];
        all.extend(arguments);
        bench(&all, &out)
            .env("LOCKTOPUS_SERVER_BIN", "/bin/true")
            // No containers either.
            .env("DOCKER_HOST", "tcp://127.0.0.1:1")
            .output()
            .expect("the binary starts")
    };
    let output = run(&[]);
    assert_eq!(output.status.code(), MEASUREMENT, "{}", told(&output));
    assert!(
        told(&output).contains("FAILED: standalone: needs a server program"),
        "{}",
        told(&output)
    );
    let output = run(&["--provider", "memory"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}
