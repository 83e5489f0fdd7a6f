//! Faults without anything to act on: they are errors of their cells, and do not count as done.

use crate::common::plans;
use bench_harness::failover::model::CellReport;

const MEASUREMENT: Option<i32> = Some(6);

/// One worker has the lock to itself: there are no waiters, so there are no subscriptions.
const PLAN: &str = r#"
seed = 3

[mode.plain]

[[scenario]]
name = "nothing-to-do"
about = "what is to be taken away is not there"
topologies = ["PLACE"]
modes = ["plain"]
clients = ["redis-rs"]
fault = "FAULT"
MORE
faults = 1
lasts = "200ms"
pause = ["50ms", "50ms"]
servers = { down_after = "10m" }
lock_group = [{ name = "alone", workers = 1, hold = ["20ms", "20ms"], lease = "2s", target = true }]
"#;

/// The only cell of this plan, which must fail the run, and its trouble.
fn cell(place: &str, fault: &str, more: &str) -> (CellReport, String) {
    let plan = PLAN.replace("PLACE", place).replace("FAULT", fault);
    let name = format!("no-{fault}");
    let (code, mut report, said) = plans::run(&name, &plan.replace("MORE", more));
    assert_eq!(code, MEASUREMENT, "{said}");
    assert_eq!(report.cells.len(), 1, "{said}");
    let cell = report.cells.remove(0);
    assert!(cell.figures.granted > 0, "{cell:#?}");
    let [trouble] = cell.trouble.as_slice() else {
        panic!("{cell:#?}\n{said}");
    };
    let begin = "stopped after 0 of 1 faults: ";
    let words = trouble.strip_prefix(begin).expect(trouble).to_owned();
    (cell, words)
}

#[test]
fn connections_that_are_not_there_cannot_be_closed() {
    let (cell, trouble) = cell("standalone", "kill-subscriptions", "");
    let named = "connections for messages to take away not reached";
    assert!(trouble.contains(named), "{trouble}");
    assert_eq!(cell.figures.faults, 0);
}

/// Even if the turn's other faults have an effect.
#[test]
fn a_nemesis_does_each_of_its_faults() {
    let more = r#"
combines = ["kill-subscriptions", "flush-scripts"]
at_once = [2, 2]"#;
    let (cell, trouble) = cell("standalone", "nemesis", more);
    let named = "connections for messages to take away not reached";
    assert!(trouble.contains(named), "{trouble}");
    let done = |what: &str| cell.happened.contains_key(what);
    assert!(
        done("flush-scripts") && !done("kill-subscriptions"),
        "{:?}",
        cell.happened
    );
}

#[test]
fn nobody_is_misled_who_does_not_listen() {
    let (cell, trouble) = cell("vip", "mislead-subscriptions", "");
    let named = "subscriptions on the primary not reached";
    assert!(trouble.contains(named), "{trouble}");
    assert_eq!(cell.figures.faults, 0);
}

/// The clients of every second process should look for the primary; here is only one process.
#[test]
fn two_primaries_are_none_where_everybody_stays() {
    let (cell, trouble) = cell("sentinel", "two-primaries", "");
    let named = "connections of every second process not reached";
    assert!(trouble.contains(named), "{trouble}");
    assert_eq!(cell.figures.faults, 0);
}
