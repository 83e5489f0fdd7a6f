//! A short soak keeps every limit, and each planted fault breaks its limit, which the output names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const UNMET: Option<i32> = Some(8);

/// Runs a soak and returns the exit code, the output, and the failed checks.
fn soak(name: &str, arguments: &[&str]) -> (Option<i32>, String, BTreeSet<String>) {
    let out: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&out);
    let output = Command::new(env!("CARGO_BIN_EXE_locktopus-bench"))
        .arg("soak")
        .args(arguments)
        .arg("--out")
        .arg(&out)
        .env("NO_COLOR", "1")
        .output()
        .expect("the binary starts");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let text = std::fs::read_to_string(out.join("soak.json")).expect(&said);
    let report: serde_json::Value = serde_json::from_str(&text).expect("a report");
    let checks = report["checks"].as_array().expect("checks");
    assert!(checks.len() > 10, "{text}");
    let failed = checks.iter().filter(|check| check["kept"] == false);
    let failed = failed.map(|check| check["what"].as_str().expect("a name").to_owned());
    (output.status.code(), said, failed.collect())
}

#[test]
fn a_moment_leaves_nothing_behind() {
    let (code, said, failed) = soak("soak-smoke", &["--smoke"]);
    assert_eq!(failed, BTreeSet::new(), "{said}");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn what_is_planted_is_found() {
    let leaks = "key,waiter,channel,pattern,file,task,memory,held,overlap,rate,crowd,error,restart";
    let form = [
        "--lasts",
        "12s",
        "--held",
        "100",
        "--waiters",
        "20",
        "--rate",
        "100",
    ];
    let (code, said, failed) = soak("soak-planted", &[&form[..], &["--leak", leaks]].concat());
    assert_eq!(code, UNMET, "{said}");
    let expected = [
        "acquisitions per second",
        "channels left",
        "connections left",
        "errors outside of restarts",
        "keys left, except kept ones",
        "locks held throughout",
        "memory grown by",
        "open files",
        "patterns left",
        "places in queues left",
        "restarts of the server",
        "tasks alive",
        "two holders at once",
        "waiters of a crowd served",
    ];
    assert_eq!(failed, expected.map(str::to_owned).into(), "{said}");
    for what in expected {
        assert!(said.contains(what), "{what}: {said}");
    }
}
