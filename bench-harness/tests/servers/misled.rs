//! Subscriptions that end up on a replica, and servers that are far away: real servers, short.

use crate::common;
use bench_harness::failover::model::CellReport;

/// Runs the only cell of a scenario of the default plan that these flags leave.
fn cell(name: &str, flags: &[&str]) -> CellReport {
    let out = common::directory(name);
    let output = common::ran(common::bench(&["failover", "--out"]).arg(&out).args(flags));
    let (code, mut report, told) = common::plans::reported(&output, &out);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(report.cells.len(), 1, "{told}");
    report.cells.remove(0)
}

/// Those who listen on the replica hear of grants that nobody made, and must not believe in them.
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
