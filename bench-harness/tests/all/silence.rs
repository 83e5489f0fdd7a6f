//! Every form of a report of faults names what was unjudged, skipped or broken: on a terminal, and
//! on the page.

use bench_harness::failover::model::FailoverReport;
use bench_harness::failover::page;
use bench_harness::failover::plan::Subject;
use bench_harness::failover::report::terminal;
use bench_harness::failover::run::kept;
use bench_harness::shared::render::table::Style;
use locktopus_history::{Outcome, Property};

const SUMMARY: &str = include_str!("../data/failover-summary.json");

/// A run in which nothing is missing.
fn complete() -> FailoverReport {
    let mut report: FailoverReport = serde_json::from_str(SUMMARY).unwrap();
    for cell in &mut report.cells {
        cell.trouble.clear();
        cell.errors.clear();
        cell.broken_promises.clear();
        cell.planned_faults = cell.figures.faults;
    }
    report
}

/// The report in every form, each with its name; wrapped lines are joined.
fn forms(report: &FailoverReport) -> [(&'static str, String); 2] {
    let style = Style {
        width: 250,
        colour: false,
    };
    let markers = format!("{}\n{}", page::BEGIN, page::END);
    let page = page::with_table(&markers, std::slice::from_ref(report)).unwrap();
    [
        ("terminal", terminal::render(report, style)),
        ("page", page),
    ]
}

/// Checks that every form contains each of these words after the change, and none before.
fn told(change: impl FnOnce(&mut FailoverReport), words: &[&str]) {
    let before = forms(&complete());
    let mut report = complete();
    change(&mut report);
    for ((form, now), (_, before)) in forms(&report).iter().zip(&before) {
        for word in words {
            assert!(!before.contains(word), "{form} always says {word}");
            assert!(now.contains(word), "{form}, {word}:\n{now}");
        }
    }
}

#[test]
fn properties_that_were_not_judged() {
    told(
        |report| report.cells[0].not_required = vec!["use: servers forgot locks".to_owned()],
        &["use (1): servers forgot locks"],
    );
}

#[test]
fn shares_of_too_few_updates() {
    told(
        |report| report.cells[0].figures.lost_unchecked.done = 29,
        &["redis-rs: 29 updates"],
    );
    let mut report = complete();
    let row = "| kill-primary | sentinel | plain | redis-rs |";
    let rows = |report: &FailoverReport| forms(report)[1].1.matches(row).count();
    assert_eq!(rows(&report), 1);
    report.cells[0].figures.lost_unchecked.done = 29;
    assert_eq!(rows(&report), 0);
}

#[test]
fn promises_that_were_not_kept() {
    let broken = "validity: 3 pairs of holders valid at once";
    told(
        |report| report.cells[0].broken_promises = vec![broken.to_owned()],
        &[broken],
    );
}

#[test]
fn cells_that_stopped_early_or_did_less_than_was_planned() {
    let stopped = "stopped after 1 of 2 faults";
    told(
        |report| report.cells[0].trouble = vec![stopped.to_owned()],
        &[stopped],
    );
    told(
        |report| report.cells[0].planned_faults += 1,
        &["faults were done"],
    );
}

#[test]
fn cells_that_were_not_run_at_all() {
    told(
        |report| report.fail("restart on standalone", "a worker process failed"),
        &["restart on standalone", "a worker process failed"],
    );
    told(
        |report| report.skip("step-clock on standalone", "libfaketime"),
        &["step-clock on standalone", "libfaketime"],
    );
}

#[test]
fn locks_that_are_broken_on_purpose_and_were_not_caught() {
    told(
        |report| {
            report.cells[0].subject = Subject::BrokenRelease;
            report.cells[0].caught.clear();
        },
        &["a lock that is broken on purpose was not caught"],
    );
}

#[test]
fn locks_that_are_broken_on_purpose_and_were_caught_by_something_else() {
    told(
        |report| {
            report.cells[0].subject = Subject::BrokenTwins;
            report.cells[0].caught = vec!["outage: 1".to_owned()];
        },
        &["was not caught by what it breaks (tokens unique), but by outage: 1"],
    );
}

#[test]
fn properties_that_were_not_judged_though_there_were_grants() {
    let judged = |of_tokens| {
        let outcomes = Property::ALL.into_iter().map(move |property| {
            let outcome = match property {
                Property::DuplicateTokens => of_tokens,
                _ => Outcome::Passed,
            };
            (property.to_string(), kept::word(outcome).to_owned())
        });
        outcomes.collect()
    };
    told(
        |report| report.cells[0].outcomes = judged(Outcome::NotJudged),
        &["tokens unique was not judged, though there were grants"],
    );
    let mut fine = complete();
    fine.cells[0].outcomes = judged(Outcome::Passed);
    assert_eq!(
        bench_harness::failover::completeness::missing(&fine),
        Vec::<String>::new()
    );
}
