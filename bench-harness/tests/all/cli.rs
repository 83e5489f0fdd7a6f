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
    std::fs::write(&path, model::to_json(report)).expect("a writable target directory");
    path.display().to_string()
}

#[test]
fn report_writes_every_format() {
    let directory = directory("formats");
    let file = stored(&directory, "in.json", synthetic::shared());
    let out = directory.join("out");
    let output = bench(&["report", &file, "--out", out.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    for extension in ["txt", "json", "html"] {
        let path = out.join(format!("report.{extension}"));
        assert!(path.metadata().unwrap().len() > 1_000, "{extension}");
    }
    let again = model::read(&out.join("report.json")).unwrap();
    assert_eq!(&again, synthetic::shared());
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
    // A directory cannot be created below a file.
    let output = bench(&["report", &file, "--out", &format!("{file}/x")]);
    assert_eq!(output.status.code(), Some(4));
}
