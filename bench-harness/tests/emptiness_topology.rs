//! Runs that grant nothing, or lose a part, must not look like runs in which nothing went wrong.

mod common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bench_harness::failover::model;
use common::{directory, told};
use locktopus_testbed::topology::{self, Knobs, ProviderKind, Spec, TopologyKind};

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

#[tokio::test]
async fn a_worker_that_dies_fails_the_run() {
    let out = directory("dead-worker");
    let mut harness = bench(&RESTART, &out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let worker = worker_of(&mut harness).await;
    // By its number, which nobody else has while its parent, the harness, has not waited for it.
    let killed = Command::new("kill")
        .args(["-9", &worker.to_string()])
        .status();
    assert!(killed.expect("kill is there").success());
    let output = tokio::task::spawn_blocking(|| harness.wait_with_output());
    let output = output.await.unwrap().expect("it ends");
    assert_eq!(output.status.code(), MEASUREMENT, "{}", told(&output));
    let report = model::read(&out.join("report.json")).unwrap();
    assert!(report.skipped.is_empty(), "{:?}", report.skipped);
    assert!(!bench_harness::failover::completeness::missing(&report).is_empty());
}

/// The number of a worker process that has begun to write down what it does.
async fn worker_of(harness: &mut Child) -> u32 {
    let children = format!("/proc/{0}/task/{0}/children", harness.id());
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        // Threads of the runtime may have started it, so every one is asked.
        let threads = std::fs::read_dir(format!("/proc/{}/task", harness.id())).expect("it runs");
        for thread in threads.flatten() {
            let started =
                std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            for child in started.split_whitespace() {
                let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                if line.windows(15).any(|part| part == b"failover-worker") {
                    return child.parse().expect("a process number");
                }
            }
        }
        assert!(
            harness.try_wait().expect("a child").is_none(),
            "it ended: {children}"
        );
        assert!(Instant::now() < deadline, "it started no worker");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
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

/// A skip is what was asked for. Who asks for servers, and does not say which, has not asked to do without.
#[test]
fn servers_that_cannot_be_had_are_no_skip() {
    let out = directory("no-places");
    let run = |arguments: &[&str]| {
        let mut all = vec!["run", "--smoke", "--scenario", "uncontended"];
        all.extend(arguments);
        bench(&all, &out)
            .env("LOCKTOPUS_SERVER_BIN", "/bin/true")
            // Nor containers.
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
