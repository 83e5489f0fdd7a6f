//! The time that an open loop spends between two requests is not counted as the lock's.

use crate::common;
use crate::common::{directory, told};
use bench_harness::measure::model;

const SCENARIOS: &str = r#"
rounds = 1

[[cell]]
scenario = "uncontended"
clients = ["memory"]
kinds = ["lock"]
arrivals_per_second = 200
duration = "2s"
"#;

/// A request is due every five milliseconds and takes a fraction of one. A loop that spins until it
/// is due, if only for the last two milliseconds, uses twice the CPU time that the test allows. A
/// busy machine does not increase CPU time. (On a machine that gives this process less than a fifth
/// of a CPU the test would miss a spin.)
#[test]
fn waiting_until_a_request_is_due_keeps_no_processor_busy() {
    let out = directory("open-loop");
    let file = out.join("scenarios.toml");
    std::fs::write(&file, SCENARIOS).unwrap();
    let mut command = common::bench(&["run", "--provider", "memory", "--file"]);
    let output = common::ran(command.arg(&file).arg("--out").arg(&out));
    let said = told(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let report = model::read(&out.join("report.json")).unwrap();
    let round = &report.cells[0].rounds[0];
    assert_eq!(round.acquisitions, 400, "{:?}", round.errors);
    let used = round.client_cost.unwrap().cpu_ns;
    assert!(
        used < round.duration_ns / 5,
        "{used} ns of CPU in {} ns",
        round.duration_ns
    );
}
