//! Building and running one test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::table::{Target, TestName};

/// A test that runs for so long hangs.
const PATIENCE: Duration = Duration::from_secs(600);

/// What came of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// Neither, for this reason.
    Neither(String),
}

/// A test program.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    /// Cargo runs the tests of a package in its folder.
    folder: PathBuf,
}

/// Builds a target of the sources at `root`.
///
/// # Errors
///
/// It does not compile: the compiler's first words.
pub(crate) fn build(root: &Path, target_dir: &Path, target: &Target) -> Result<Program, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--locked", "--all-features", "--no-run", "--quiet"]);
    cargo.args(["--message-format", "json"]);
    match target.name.as_str() {
        "lib" => cargo.args(["--lib", "--package", &target.package]),
        // The whole workspace's features, so that third parties' crates are built once.
        name => cargo.args(["--workspace", "--test", name]),
    };
    let output = cargo
        .arg("--target-dir")
        .arg(target_dir)
        .current_dir(root)
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    if !output.status.success() {
        let error = messages
            .iter()
            .find(|it| it["message"]["level"] == "error")
            .and_then(|it| it["message"]["rendered"].as_str());
        return Err(error.unwrap_or("cargo failed").to_owned());
    }
    let folder = target.folder(root);
    let path = messages
        .iter()
        .filter(|it| it["reason"] == "compiler-artifact" && it["profile"]["test"] == true)
        .filter(|it| {
            let manifest = it["manifest_path"].as_str().map(Path::new);
            manifest.and_then(Path::parent) == Some(&folder)
        })
        .find_map(|it| it["executable"].as_str());
    match path {
        Some(path) => Ok(Program {
            path: path.into(),
            folder,
        }),
        None => Err(format!("{} has no tests {}", target.package, target.name)),
    }
}

/// Runs one test, and leaves what it says in the file.
#[allow(
    clippy::disallowed_methods,
    reason = "nothing here is asynchronous, so a thread that sleeps keeps nobody waiting"
)]
pub(crate) fn run(program: &Program, test: &TestName, log: &Path) -> Result<Outcome, String> {
    let said = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = said.try_clone().map_err(|error| error.to_string())?;
    let mut child = Command::new(&program.path)
        .args(["--exact", &test.name, "--nocapture"])
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .stdin(Stdio::null())
        .stdout(said)
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("{}: {error}", program.path.display()))?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(Outcome::Neither("hangs".to_owned()));
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let text = std::fs::read(log).map_err(|error| format!("{}: {error}", log.display()))?;
    Ok(judge(status.code(), &String::from_utf8_lossy(&text)))
}

/// What a test program said at its end.
fn judge(code: Option<i32>, said: &str) -> Outcome {
    let result = said.lines().find(|line| line.starts_with("test result:"));
    let ran = |what: &str| result.is_some_and(|line| line.contains(what));
    if said.contains("SKIPPED, NOT PASSED") {
        Outcome::Neither("skipped itself".to_owned())
    } else if code == Some(0) && ran(" 1 passed; 0 failed;") {
        Outcome::Passed
    } else if code == Some(101) && ran(" 0 passed; 1 failed;") {
        Outcome::Failed
    } else if code == Some(0) {
        Outcome::Neither("no such test".to_owned())
    } else {
        Outcome::Neither(format!("ended without a result, with code {code:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, judge};

    #[test]
    fn only_a_test_that_failed_has_failed() {
        let of = |passed, failed| {
            format!("x\ntest result: y. {passed} passed; {failed} failed; 0 ignored\n")
        };
        assert_eq!(judge(Some(0), &of(1, 0)), Outcome::Passed);
        assert_eq!(judge(Some(101), &of(0, 1)), Outcome::Failed);
        for (code, said) in [
            (Some(0), of(0, 0)),
            (Some(101), String::new()),
            (None, of(0, 1)),
            (
                Some(0),
                format!("SKIPPED, NOT PASSED: no server\n{}", of(1, 0)),
            ),
        ] {
            assert!(matches!(judge(code, &said), Outcome::Neither(_)), "{said}");
        }
    }
}
