//! `targets`: from a stored run to the page, and runs that become no page.

use crate::common;
use std::process::Output;

use crate::common::directory;
use bench_harness::measure::model::{self, Report};
use bench_harness::measure::synthetic;

fn targets(arguments: &[&str]) -> Output {
    common::ran(common::bench(&["targets"]).args(arguments))
}

/// A complete run of everything behind the page.
fn complete() -> Report {
    let mut report = synthetic::planned(include_str!("../../scenarios/targets.toml"));
    "targets".clone_into(&mut report.run.scenario);
    report
}

#[test]
fn a_run_becomes_a_page_that_can_be_made_again() {
    let directory = directory("targets");
    std::fs::write(directory.join("report.json"), model::to_json(&complete())).unwrap();
    let at = directory.to_str().unwrap();
    // A directory stands for the report in it.
    let written = targets(&[at, "--write", at]);
    // The page is written all the same, but a run with invented figures does not meet every target.
    assert_eq!(written.status.code(), Some(8), "{written:?}");
    let said = String::from_utf8(written.stdout).unwrap();
    for part in [": not met", "  in the way: ", "  tried: "] {
        assert!(said.contains(part), "{said}");
    }
    let page = directory.join("performance-goals.md");
    let text = std::fs::read_to_string(&page).unwrap();
    std::fs::write(&page, text.replace("not met", "met")).unwrap();
    let rendered = targets(&["--render", at]);
    assert_eq!(rendered.status.code(), Some(8));
    assert_eq!(String::from_utf8(rendered.stdout).unwrap(), said);
    assert_eq!(std::fs::read_to_string(&page).unwrap(), text);
}

/// Such a run is shown on the terminal. A page made from it would not show what is wrong.
#[test]
fn what_is_not_all_of_the_plan_or_failed_becomes_no_page() {
    type Change = fn(&mut Report);
    let directory = directory("targets-unfit");
    let at = directory.to_str().unwrap();
    let changes: [(&str, Change); 9] = [
        ("it ran targets-part, not all of targets", |report| {
            "targets-part".clone_into(&mut report.run.scenario);
        }),
        ("Redisson needs a JDK", |report| {
            report.skip("Redisson", "a JDK");
        }),
        ("load average of 1.01", |report| {
            report.environment.load_average_at_start = Some([1.01, 0.0, 0.0]);
        }),
        ("3 times \"timeout\"", |report| {
            let errors = &mut report.cells[0].rounds[0].errors;
            errors.insert("timeout".to_owned(), 3);
        }),
        ("4 of 5 rounds", |report| {
            report.cells[0].rounds.pop();
        }),
        ("nothing was granted", |report| {
            report.cells[0].rounds[1].acquisitions = 0;
        }),
        ("1 times two holders had one lock", |report| {
            let check = report.cells[0].rounds[0].overlap_check.as_mut();
            check.expect("it was looked for").overlaps = 1;
        }),
        ("goal contended, ", |report| {
            report.cells.retain(|cell| cell.subject.strategy != "bare");
        }),
        ("commands", |report| {
            let rounds = report.cells.iter_mut().flat_map(|cell| &mut cell.rounds);
            rounds.for_each(|round| round.server_cost = None);
        }),
    ];
    for (problem, change) in changes {
        let mut report = complete();
        change(&mut report);
        std::fs::write(directory.join("report.json"), model::to_json(&report)).unwrap();
        assert_eq!(targets(&[at]).status.code(), Some(8), "{problem}");
        let written = targets(&[at, "--write", at]);
        assert_eq!(written.status.code(), Some(3), "{written:?}");
        let said = String::from_utf8(written.stderr).unwrap();
        assert!(said.contains(problem), "{problem}: {said}");
        for name in [
            "performance.md",
            "performance-goals.md",
            "performance.json",
            "images",
        ] {
            assert!(!directory.join(name).exists(), "{name}");
        }
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    assert_eq!(targets(&[]).status.code(), Some(2));
    assert_eq!(targets(&["/nonexistent.json"]).status.code(), Some(3));
    let empty = directory("targets-empty");
    let missing = targets(&["--render", empty.to_str().unwrap()]);
    assert_eq!(missing.status.code(), Some(3));
    let said = String::from_utf8(missing.stderr).unwrap();
    assert!(said.contains("performance.json"), "{said}");
}
