//! Subscriptions that end up on a replica, and distant servers, in short runs.

use crate::common;
use bench_harness::failover::model::CellReport;

/// Runs the only cell of the default plan that these flags select.
fn cell(name: &str, flags: &[&str]) -> CellReport {
    let out = common::directory(name);
    let output = common::ran(common::bench(&["failover", "--out"]).arg(&out).args(flags));
    let (code, mut report, told) = common::plans::reported(&output, &out);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(report.cells.len(), 1, "{told}");
    report.cells.remove(0)
}

/// Subscribers on the replica hear of grants that no server made, and must not believe them.
#[test]
fn nobody_believes_what_is_heard_from_a_replica() {
    for client in ["redis-rs", "fred"] {
        let name = format!("misled-{client}");
        let scenario = [
            "--scenario",
            "mislead-subscriptions",
            "--mode",
            "plain",
            "--client",
            client,
        ];
        let cell = cell(&name, &scenario);
        assert!(cell.trouble.is_empty(), "{cell:#?}");
        assert!(cell.broken_promises.is_empty(), "{cell:#?}");
    }
}
