//! Exit codes and files of the binary.

use crate::common;
use std::path::Path;
use std::process::Output;

use crate::common::directory;
use bench_harness::measure::{model, synthetic};

fn bench(arguments: &[&str]) -> Output {
    common::ran(&mut common::bench(arguments))
}

fn stored(directory: &Path, name: &str, report: &model::Report) -> String {
    let path = directory.join(name);
    model::write(report, &path).expect("a writable target directory");
    path.display().to_string()
}

#[test]
fn report_writes_every_format() {
    let directory = directory("formats");
    let file = stored(&directory, "in.json", synthetic::shared());
    let out = directory.join("out");
    let formats = "table,json,csv,hgrm,html";
    let output = bench(&[
        "report",
        &file,
        "--format",
        formats,
        "--out",
        out.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{output:?}");
    for extension in ["txt", "json", "csv", "html"] {
        let path = out.join(format!("synthetic-full.{extension}"));
        assert!(path.metadata().unwrap().len() > 1_000, "{extension}");
    }
    let hgrm = std::fs::read_dir(out.join("synthetic-full.hgrm"))
        .unwrap()
        .count();
    assert!(hgrm > 40, "{hgrm}");
    let again = model::read(&out.join("synthetic-full.json")).unwrap();
    assert_eq!(&again, synthetic::shared());
}

/// A run in which nothing failed.
fn complete(mut report: model::Report) -> model::Report {
    for round in report.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
        round.errors.clear();
    }
    report
}

#[test]
fn compare_fails_only_when_asked() {
    let directory = directory("compare");
    let before = stored(&directory, "a.json", &complete(synthetic::shared().clone()));
    let after = stored(&directory, "b.json", &complete(synthetic::regressed()));
    let plain = bench(&["compare", &before, &after]);
    assert_eq!(plain.status.code(), Some(0));
    let text = String::from_utf8(plain.stdout).unwrap();
    assert!(text.contains("NOT made under the same conditions"));
    assert!(!text.contains('\u{1b}'));
    let gated = bench(&["compare", &before, &after, "--fail-above", "10"]);
    assert_eq!(gated.status.code(), Some(1));
    assert!(
        String::from_utf8(gated.stderr)
            .unwrap()
            .contains("acquisitions/s")
    );
    let same = bench(&["compare", &before, &before, "--fail-above", "0"]);
    assert_eq!(same.status.code(), Some(0));
}

/// The gate fails if there is nothing to compare, or a run failed. A comparison without a gate
/// shows such runs.
#[test]
fn compare_guards_nothing_with_a_run_that_is_incomplete() {
    let directory = directory("compare-incomplete");
    let whole = complete(synthetic::shared().clone());
    let mut hollow = whole.clone();
    for cell in &mut hollow.cells {
        cell.rounds.clear();
    }
    let mut failing = whole.clone();
    for round in failing.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
        round.errors.insert("timeout".to_owned(), 500);
    }
    let whole = stored(&directory, "whole.json", &whole);
    for (name, bad, words) in [
        ("hollow.json", &hollow, "0 of 3 rounds"),
        ("failing.json", &failing, "500 times \"timeout\""),
    ] {
        let bad = stored(&directory, name, bad);
        for (before, after, which) in [(&whole, &bad, "second"), (&bad, &whole, "first")] {
            assert_eq!(bench(&["compare", before, after]).status.code(), Some(0));
            let gated = bench(&["compare", before, after, "--fail-above", "99"]);
            assert_eq!(gated.status.code(), Some(3), "{gated:?}");
            let said = String::from_utf8(gated.stderr).unwrap();
            let which = format!("FAILED: the {which} run is incomplete: hot-lock");
            assert!(said.contains(&which) && said.contains(words), "{said}");
        }
    }
}

#[test]
fn bad_input_and_bad_usage_have_their_own_codes() {
    let directory = directory("bad");
    let broken = directory.join("broken.json");
    std::fs::write(&broken, "{\"schema_version\": 1}").unwrap();
    assert_eq!(
        bench(&["report", broken.to_str().unwrap()]).status.code(),
        Some(3)
    );
    assert_eq!(
        bench(&["report", "/nonexistent.json"]).status.code(),
        Some(3)
    );
    assert_eq!(bench(&["report"]).status.code(), Some(2));
    let file = stored(&directory, "in.json", &synthetic::empty());
    assert_eq!(
        bench(&["report", &file, "--format", "hgrm"]).status.code(),
        Some(2)
    );
    assert_eq!(
        bench(&["compare", &file, &file, "--fail-above=-1"])
            .status
            .code(),
        Some(2)
    );
    // A directory cannot be created below a file.
    let output = bench(&["report", &file, "--out", &format!("{file}/x")]);
    assert_eq!(output.status.code(), Some(4));
}
