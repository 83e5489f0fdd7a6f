//! `targets`: from stored runs to the page, and whether a page matches its summary.

use crate::common;
use std::process::Output;

use crate::common::directory;
use bench_harness::measure::model::{self, Report};
use bench_harness::measure::summary::Summary;
use bench_harness::measure::synthetic;

fn targets(arguments: &[&str]) -> Output {
    common::ran(common::bench(&["targets"]).args(arguments))
}

/// A complete run of everything behind the page.
fn complete() -> Report {
    synthetic::planned(include_str!("../../scenarios/targets.toml"))
}

#[test]
fn a_run_becomes_a_page_that_is_checked() {
    let directory = directory("targets");
    let run = directory.join("report.json");
    model::write(&complete(), &run).unwrap();
    let at = directory.to_str().unwrap();
    // A directory stands for the report in it.
    let written = targets(&[at, "--write", at]);
    // The page is written all the same, but a run with invented figures does not meet every target.
    assert_eq!(written.status.code(), Some(8), "{written:?}");
    let said = String::from_utf8(written.stdout).unwrap();
    assert!(
        said.contains(": not met") && !said.contains("not measured"),
        "{said}"
    );

    let page = directory.join("performance.md");
    let text = std::fs::read_to_string(&page).unwrap();
    std::fs::write(&page, text.replace("not met", "met")).unwrap();
    // The table is printed again, with the obstacles.
    let rendered = targets(&["--render", at]);
    assert_eq!(rendered.status.code(), Some(8));
    let again = String::from_utf8(rendered.stdout).unwrap();
    assert_eq!(again, said);
    assert!(
        again.contains("  in the way: ") && again.contains("  tried: "),
        "{again}"
    );
    assert_eq!(std::fs::read_to_string(&page).unwrap(), text);
}

/// A part of the plan, or one run given twice, gets a table at most, and no page.
#[test]
fn a_part_of_the_plan_is_refused_for_the_page() {
    let directory = directory("targets-partial");
    let at = directory.to_str().unwrap();
    let run = directory.join("report.json");
    let all = complete().cells.len();
    for cells in [2, all - 1] {
        let mut report = complete();
        report.cells.truncate(cells);
        model::write(&report, &run).unwrap();
        assert_eq!(targets(&[at]).status.code(), Some(8));
        let written = targets(&[at, "--write", at]);
        assert_eq!(written.status.code(), Some(3), "{written:?}");
        let said = String::from_utf8(written.stderr).unwrap();
        // The last cell of the plan is one of these, too.
        assert!(
            said.contains("cannot become a page") && said.contains("uncontended"),
            "{said}"
        );
    }
    model::write(&complete(), &run).unwrap();
    let copy = directory.join("copy.json");
    std::fs::copy(&run, &copy).unwrap();
    for more in [&[][..], &["--write", at]] {
        let both = [&[at, copy.to_str().unwrap()][..], more].concat();
        let twice = targets(&both);
        assert_eq!(twice.status.code(), Some(3), "{twice:?}");
        let said = String::from_utf8(twice.stderr).unwrap();
        assert!(
            said.contains("run synthetic-planned was given twice"),
            "{said}"
        );
    }
    for name in ["performance.md", "performance.json", "images"] {
        assert!(!directory.join(name).exists(), "{name}");
    }
}

/// As if someone had cut performance.json.
#[test]
fn a_part_of_what_was_kept_is_not_rendered() {
    let directory = directory("targets-cut");
    let at = directory.to_str().unwrap();
    let mut summary = Summary::of(&[complete()]).unwrap();
    let kept = directory.join("performance.json");
    std::fs::write(&kept, summary.to_json()).unwrap();
    assert_eq!(targets(&["--render", at]).status.code(), Some(8));
    let page = directory.join("performance.md");
    std::fs::remove_file(&page).unwrap();
    summary.cells.truncate(20);
    std::fs::write(&kept, summary.to_json()).unwrap();
    let cut = targets(&["--render", at]);
    assert_eq!(cut.status.code(), Some(3), "{cut:?}");
    let said = String::from_utf8(cut.stderr).unwrap();
    assert!(
        said.contains("cannot become a page") && said.contains("missing"),
        "{said}"
    );
    assert!(!page.exists());
}

/// A run with `--duration` is judged on the terminal, and becomes no page.
#[test]
fn rounds_that_were_shortened_become_no_page() {
    let directory = directory("targets-shortened");
    let at = directory.to_str().unwrap();
    let mut report = complete();
    let mut last = report.cells.pop().unwrap();
    last.rounds[1].duration_ns = 100_000_000;
    model::write(&report, &directory.join("report.json")).unwrap();
    // In another run than most.
    report.cells = vec![last];
    report.run.id.push_str("-2");
    let other = directory.join("other.json");
    model::write(&report, &other).unwrap();
    let runs = [at, other.to_str().unwrap()];
    assert_eq!(targets(&runs).status.code(), Some(8));
    let written = targets(&[&runs[..], &["--write", at]].concat());
    assert_eq!(written.status.code(), Some(3), "{written:?}");
    let said = String::from_utf8(written.stderr).unwrap();
    assert!(said.contains("a round of 100ms, planned are"), "{said}");
    assert!(!directory.join("performance.md").exists());
}

/// A run that began on a busy machine is judged on the terminal, and becomes no page.
#[test]
fn a_run_that_began_on_a_busy_machine_is_refused_for_the_page() {
    let directory = directory("targets-busy");
    let at = directory.to_str().unwrap();
    for (load, code) in [(1.0, 8), (1.01, 3)] {
        let mut report = complete();
        report.environment.load_average_at_start = Some([load, 0.0, 0.0]);
        model::write(&report, &directory.join("report.json")).unwrap();
        assert_eq!(targets(&[at]).status.code(), Some(8));
        let written = targets(&[at, "--write", at]);
        assert_eq!(written.status.code(), Some(code), "{written:?}");
        let said = String::from_utf8(written.stderr).unwrap();
        assert_eq!(said.contains("load average of 1.01"), load > 1.0, "{said}");
    }
}

/// A failed run leaves its report, and a page made from it would not show the failure.
#[test]
fn a_run_that_failed_is_refused_for_the_page() {
    type Change = fn(&mut Report);
    let directory = directory("targets-failed");
    let at = directory.to_str().unwrap();
    let changes: [(&str, Change); 4] = [
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
    ];
    for (problem, change) in changes {
        let mut report = complete();
        change(&mut report);
        model::write(&report, &directory.join("report.json")).unwrap();
        let written = targets(&[at, "--write", at]);
        assert_eq!(written.status.code(), Some(3), "{written:?}");
        let said = String::from_utf8(written.stderr).unwrap();
        assert!(said.contains(problem), "{problem}: {said}");
        assert!(!directory.join("performance.md").exists());
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
