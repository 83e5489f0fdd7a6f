//! Reverts fixes, one at a time, in a copy of the last commit, and checks that the test that guards
//! each fix notices.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::Value;

/// The path of the list, from the root of the repository.
const LIST: &str = "proof/gate/reverts.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(rename = "revert")]
    reverts: Vec<Revert>,
}

/// A fix to revert.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Revert {
    mend: String,
    /// The test that must notice: `package/target/test`.
    test: String,
    change: Vec<Change>,
}

/// A change of one place, whose text occurs in the file exactly once.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    file: String,
    find: String,
    replace: String,
}

/// The outcome of a test.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Neither(String),
}

/// Tries the reverts whose fix contains these words, or all.
///
/// # Errors
///
/// If there is no such revert, one does not fit the sources, a test fails without a revert, or no
/// test notices one.
pub fn run(root: &Path, only: Option<&str>) -> Result<(), String> {
    let text =
        std::fs::read_to_string(root.join(LIST)).map_err(|error| format!("{LIST}: {error}"))?;
    let list: List = toml::from_str(&text).map_err(|error| format!("{LIST}: {error}"))?;
    let wanted = |revert: &&Revert| only.is_none_or(|words| revert.mend.contains(words));
    let reverts: Vec<_> = list.reverts.iter().filter(wanted).collect();
    if reverts.is_empty() {
        return Err("there is no such revert".to_owned());
    }
    let copy = Copy::of(root)?;
    let tests: BTreeSet<&str> = reverts.iter().map(|revert| revert.test.as_str()).collect();
    println!("{} tests as they are", tests.len());
    let mut as_they_are = BTreeMap::new();
    for test in tests {
        as_they_are.insert(test, copy.test(test)?);
    }
    let mut bad = 0;
    for revert in &reverts {
        let verdict = match &as_they_are[revert.test.as_str()] {
            Outcome::Passed => copy.with(revert)?,
            Outcome::Failed => Err("FAILS WITHOUT THE REVERT".to_owned()),
            Outcome::Neither(what) => Err(format!("NOT TRIED: {what}")),
        };
        bad += u32::from(verdict.is_err());
        let said = verdict.err().unwrap_or_else(|| "noticed".to_owned());
        println!("{said}: {}\n    {}", revert.mend, revert.test);
    }
    println!("{} reverts tried, {bad} not noticed", reverts.len());
    match bad {
        0 => Ok(()),
        _ => Err(format!("{bad} of {} reverts", reverts.len())),
    }
}

/// A work tree of the last commit.
struct Copy {
    folder: PathBuf,
    target: PathBuf,
}

impl Copy {
    fn of(root: &Path) -> Result<Self, String> {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let folder = target.join("reverts");
        if folder.exists() {
            said_by(
                Command::new("git")
                    .current_dir(&folder)
                    .args(["checkout", "--quiet", "--force", "--detach"])
                    .arg(head(root)?),
            )?;
        } else {
            let mut git = Command::new("git");
            git.current_dir(root)
                .args(["worktree", "add", "--quiet", "--force", "--detach"])
                .arg(&folder);
            said_by(&mut git)?;
        }
        Ok(Self { folder, target })
    }

    /// Tries one revert. The inner `Err` says why no test noticed it.
    fn with(&self, revert: &Revert) -> Result<Result<(), String>, String> {
        for change in &revert.change {
            let path = self.folder.join(&change.file);
            let failed = |error: std::io::Error| format!("{}: {error}", path.display());
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            if text.matches(&change.find).count() != 1 {
                self.restore()?;
                return Ok(Err(format!("DOES NOT FIT {}", change.file)));
            }
            std::fs::write(&path, text.replacen(&change.find, &change.replace, 1))
                .map_err(failed)?;
        }
        let outcome = self.test(&revert.test);
        self.restore()?;
        Ok(match outcome? {
            Outcome::Failed => Ok(()),
            Outcome::Passed => Err("SURVIVES".to_owned()),
            Outcome::Neither(what) => Err(format!("NOT TRIED: {what}")),
        })
    }

    fn restore(&self) -> Result<(), String> {
        said_by(
            Command::new("git")
                .current_dir(&self.folder)
                .args(["checkout", "--quiet", "--", "."]),
        )
        .map(drop)
    }

    /// Builds and runs one test.
    fn test(&self, test: &str) -> Result<Outcome, String> {
        let parts: Vec<_> = test.split('/').collect();
        let [package, target, name] = parts[..] else {
            return Err(format!("{test}: not package/target/test"));
        };
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.target)
            .stderr(Stdio::null());
        cargo.args([
            "test",
            "--locked",
            "--all-features",
            "--message-format",
            "json",
            "--package",
            package,
        ]);
        if package == "locktopus-proofs" {
            cargo.args(["--manifest-path", "proof/Cargo.toml"]);
        }
        cargo.args(["--test", target, "--", "--exact", name]);
        let output = cargo.output().map_err(|error| format!("cargo: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        Ok(judge(output.status.code(), &said))
    }
}

fn head(root: &Path) -> Result<String, String> {
    said_by(
        Command::new("git")
            .current_dir(root)
            .args(["rev-parse", "HEAD"]),
    )
}

fn said_by(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// The outcome of a test, from the output of cargo and of the test program.
fn judge(code: Option<i32>, said: &str) -> Outcome {
    let error = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let error = error
        .filter(|it| it["message"]["level"] == "error")
        .find_map(|it| it["message"]["rendered"].as_str().map(str::to_owned));
    let result = said.lines().find(|line| line.starts_with("test result:"));
    let ran = |what: &str| result.is_some_and(|line| line.contains(what));
    if let Some(error) = error {
        Outcome::Neither(format!("it does not compile: {error}"))
    } else if said.contains("SKIPPED, NOT PASSED") {
        Outcome::Neither("the test skipped itself".to_owned())
    } else if code == Some(0) && ran(" 1 passed; 0 failed;") {
        Outcome::Passed
    } else if code == Some(101) && ran(" 0 passed; 1 failed;") {
        Outcome::Failed
    } else if code == Some(0) {
        Outcome::Neither("there is no such test".to_owned())
    } else {
        Outcome::Neither(format!("it ended without a result, with code {code:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, judge};

    #[test]
    fn only_a_test_that_failed_has_failed() {
        let of = |passed, failed| {
            format!("test result: x. {passed} passed; {failed} failed; 0 ignored\n")
        };
        assert_eq!(judge(Some(0), &of(1, 0)), Outcome::Passed);
        assert_eq!(judge(Some(101), &of(0, 1)), Outcome::Failed);
        let skipped = format!("SKIPPED, NOT PASSED: no server\n{}", of(1, 0));
        let broken = r#"{"message":{"level":"error","rendered":"no such type"}}"#.to_owned();
        for (code, said) in [
            (Some(0), of(0, 0)),
            (Some(101), String::new()),
            (None, of(0, 1)),
            (Some(0), skipped),
            (Some(101), broken),
        ] {
            assert!(matches!(judge(code, &said), Outcome::Neither(_)), "{said}");
        }
    }
}
