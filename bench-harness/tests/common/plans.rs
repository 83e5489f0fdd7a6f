//! Fault plans as tests run them.

use std::path::Path;
use std::process::{Command, Output};

use bench_harness::failover::model::{self, FailoverReport};

/// The command that runs a plan, and writes into this directory.
pub fn command(plan: &str, out: &Path) -> Command {
    let file = out.join("plan.toml");
    std::fs::write(&file, plan).expect("a writable directory");
    let mut command = super::bench(&["failover", "--file"]);
    command.arg(&file).arg("--out").arg(out);
    command
}

/// Runs a plan, and returns the exit code, the report, and standard error.
pub fn run(name: &str, plan: &str) -> (Option<i32>, FailoverReport, String) {
    let out = super::directory(name);
    let output = super::ran(&mut command(plan, &out));
    reported(&output, &out)
}

/// The exit code of a run, the report, and standard error.
pub fn reported(output: &Output, out: &Path) -> (Option<i32>, FailoverReport, String) {
    let said = super::told(output);
    let report = model::read(&out.join("report.json"));
    let report = report.unwrap_or_else(|error| panic!("{error}\n{said}"));
    (output.status.code(), report, said)
}
