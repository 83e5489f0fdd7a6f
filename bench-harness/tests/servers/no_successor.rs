//! Servers without a successor: where their own rule prevents one, the rule is off, or the run
//! shows their log lines.

use crate::common;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use crate::common::{directory, settings, told};
use bench_harness::failover::model::{self, CellReport};

const BROKEN: Option<i32> = Some(5);
const MEASUREMENT: Option<i32> = Some(6);

const PLAN: &str = r#"
seed = 5

[mode.plain]

[[scenario]]
name = "one"
about = "x"
topologies = ["PLACE"]
modes = ["plain"]
clients = ["redis-rs"]
fault = "kill-primary"
cut_replication = CUT
faults = 1
pause = ["100ms", "200ms"]
servers = { node_timeout = "600ms", down_after = "500ms", failover_timeout = "1500ms", args = [ARGS] }
lock_group = [{ name = "long", workers = 3, hold = ["100ms", "200ms"], lease = "1s", target = true }]
"#;

/// Starts the harness with this plan, after the changes.
fn start(name: &str, changes: &[(&str, &str)]) -> (Child, PathBuf) {
    let out = directory(name);
    let file = out.join("plan.toml");
    let plan = changes
        .iter()
        .fold(PLAN.to_owned(), |plan, (from, to)| plan.replace(from, to));
    std::fs::write(&file, plan).unwrap();
    let mut command = common::bench(&["failover", "--file"]);
    let command = command.arg(&file).arg("--out").arg(&out);
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    (piped.spawn().expect("the binary starts"), out)
}

/// The output of the harness, and its only cell.
fn ended(harness: Child, out: &Path) -> (Output, CellReport) {
    let output = harness.wait_with_output().expect("it ends");
    let said = told(&output);
    let report = model::read(&out.join("report.json"));
    let mut report = report.unwrap_or_else(|error| panic!("{error}\n{said}"));
    assert!(
        report.failed.is_empty() && report.cells.len() == 1,
        "{said}"
    );
    (output, report.cells.remove(0))
}

/// A replica that was cut off for too long does not stand for election. With short timeouts on a
/// busy machine "too long" is not long, so cells that cut replicas off turn the rule off.
#[test]
fn replicas_that_were_cut_off_may_take_over() {
    let changes = [("PLACE", "cluster"), ("CUT", "true"), ("ARGS", "")];
    let (mut harness, out) = start("cut-off", &changes);
    // Three primaries, each with its replica.
    for settings in settings(&mut harness, 6) {
        let is_off = settings.contains("--cluster-replica-validity-factor 0");
        assert!(is_off, "{settings}");
    }
    let (output, cell) = ended(harness, &out);
    assert!(output.status.success(), "{}", told(&output));
    assert_eq!(cell.figures.faults, 1, "{cell:#?}");
    let happened = &cell.happened;
    for what in ["cut off from replicas", "kill-primary", "promoted"] {
        assert!(happened.contains_key(what), "{happened:?}");
    }
}

/// The servers are told that no replica may take over: the cell ends early, quotes their log, and
/// keeps its results.
#[test]
fn servers_of_which_none_takes_over_say_why() {
    let args = "\"--replica-priority\", \"0\"";
    let changes = [("PLACE", "sentinel"), ("CUT", "false"), ("ARGS", args)];
    let (harness, out) = start("no-successor", &changes);
    let (output, cell) = ended(harness, &out);
    let said = told(&output);
    // Whether it also counts as an outage depends on the stalls of the machine.
    let failed = [BROKEN, MEASUREMENT].contains(&output.status.code());
    assert!(failed, "{:?}: {said}", output.status);
    let [trouble] = cell.trouble.as_slice() else {
        panic!("{cell:#?}\n{said}");
    };
    for words in [
        "stopped after 0 of 1 faults: ",
        "the servers' logs: ",
        "-failover-abort-no-good-slave",
    ] {
        assert!(trouble.contains(words), "{words}: {trouble}");
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(
        cell.figures.granted > 0 && cell.figures.faults == 1,
        "{cell:#?}"
    );
}
