//! A level: what it generates, which shipped sources it speaks about, and how it is run.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::outcome::{self, Outcome};
use crate::{build, environment, failover, nemesis, performance, sources};

/// One level.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) name: &'static str,
    pub(crate) generates: &'static str,
    /// What its cases are.
    pub(crate) cases: &'static str,
    /// Sources that its result is about, and those that made it: files and folders. When they are others, it says nothing.
    pub(crate) about: &'static [&'static str],
    pub(crate) how: How,
}

/// How it is run.
#[derive(Debug)]
pub(crate) enum How {
    /// Tests of these targets; their number is that of the cases.
    Tests(&'static [&'static str]),
    /// The model, with so many schedules.
    Schedules(u64),
    /// Tests of these targets; so many schedules of the simulator are the cases.
    Simulation(&'static [&'static str], u64),
    Protocols,
    /// scripts/mutants, with this.
    Mutants(&'static [&'static str]),
    /// What is kept of the mutants of the Rust: to try all of them takes hours.
    RustMutants,
    Reverts,
    /// scripts/soak, with this.
    Soak(&'static [&'static str]),
    /// scripts/failover with random faults that overlap.
    Nemesis,
    /// Runs that are kept: they take hours, some of them in containers.
    Failover,
    /// A measurement that is kept: it needs a machine that is idle.
    Performance,
}

impl Level {
    /// The commit that its result is about: this one, or that of the build whose runs are kept.
    ///
    /// # Errors
    ///
    /// If its sources are not as they were committed there.
    pub(crate) fn commit(&self, root: &Path) -> Result<String, String> {
        match self.how {
            How::Failover => self.of_build(root, &failover::kept(root)?),
            How::Performance => self.of_build(root, &[performance::kept(root)?]),
            _ => sources::commit(root, self.about),
        }
    }

    /// Whether nothing is run but files read that are not among its sources, so that they may be others than they were.
    pub(crate) const fn is_of_files(&self) -> bool {
        matches!(self.how, How::Failover | How::Performance)
    }

    /// The commit of the build that made what is kept, if its sources are those that there are.
    fn of_build(&self, root: &Path, runs: &[String]) -> Result<String, String> {
        let build = build::of(runs)?;
        sources::unchanged_since(root, &build, self.about)?;
        Ok(build)
    }

    /// Runs it: what it said, and whether it passed.
    pub(crate) fn run(&self, root: &Path) -> Result<(String, bool), String> {
        match self.how {
            How::Failover => {
                let runs = failover::kept(root)?;
                failover::is_all_of_the_plans(root, &runs)?;
                return Ok((runs.join("\n"), true));
            }
            How::Performance => {
                let kept = performance::kept(root)?;
                performance::is_all_of_the_plan(root, &kept)?;
                return Ok((kept, true));
            }
            How::Nemesis => return nemesis::run(root),
            _ => {}
        }
        let report = root.join("target/prove-schedules");
        // Before anything runs that would take long and then have nowhere to say so.
        std::fs::create_dir_all(root.join("target"))
            .and_then(|()| std::fs::write(&report, ""))
            .map_err(|error| format!("{}: {error}", report.display()))?;
        let (program, arguments): (&str, Vec<&str>) = match self.how {
            How::Tests(targets) => ("cargo", [TESTS, targets].concat()),
            How::Simulation(targets, _) => ("cargo", [TESTS, targets].concat()),
            How::Schedules(_) => ("cargo", [TESTS, &["--test=model"]].concat()),
            How::Protocols => ("cargo", [TESTS, &["--test=proofs"]].concat()),
            How::Mutants(arguments) => ("scripts/mutants", arguments.to_vec()),
            How::RustMutants => ("scripts/mutants-rust", vec!["--check"]),
            How::Reverts => ("scripts/reverts", Vec::new()),
            How::Soak(arguments) => ("scripts/soak", arguments.to_vec()),
            How::Failover | How::Performance | How::Nemesis => {
                unreachable!("it is seen to above")
            }
        };
        let mut command = Command::new(program);
        command.args(&arguments).current_dir(root);
        environment::as_the_level_says(&mut command);
        if let How::Schedules(number) = self.how {
            command.args(["--", "--show-output"]);
            command.env("LOCKTOPUS_MODEL_SCHEDULES", number.to_string());
            // Tests run in the folder of their crate.
            command.env("LOCKTOPUS_MODEL_REPORT", absolute(&report)?);
        }
        if let How::Simulation(_, number) = self.how {
            command.args(["--", "--show-output"]);
            command.env("LOCKTOPUS_SIM_SCHEDULES", number.to_string());
        }
        command.stdin(Stdio::null()).stderr(Stdio::inherit());
        let failed = |error: std::io::Error| format!("{program}: {error}");
        let output = command.output().map_err(failed)?;
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        if let How::Schedules(_) = self.how {
            let ran = std::fs::read_to_string(&report).map_err(failed)?;
            ran.lines()
                .for_each(|line| said.push_str(&format!("schedules: {line}\n")));
        }
        if let How::Protocols = self.how {
            let page = root.join("docs/testing.md");
            said.push_str(&std::fs::read_to_string(page).map_err(failed)?);
        }
        Ok((said, output.status.success()))
    }

    /// What a run came to. One that failed without saying what was wrong is no result.
    pub(crate) fn read(&self, said: &str, passed: bool) -> Result<Outcome, String> {
        let outcome = match self.how {
            How::Tests(targets) => of_all(targets, said)?,
            How::Schedules(_) => schedules(said)?,
            How::Simulation(targets, _) => simulated(targets, said)?,
            How::Protocols if passed => {
                // The page is what was found only if somebody compared it.
                outcome::of_tests(said)?;
                outcome::of_protocols(said)?
            }
            How::Protocols => return Err("a protocol is broken, or the page is another".to_owned()),
            How::Mutants(_) => outcome::of_script_mutants(said)?,
            How::RustMutants => outcome::of_rust_mutants(said)?,
            How::Reverts => outcome::of_reverts(said)?,
            How::Soak(_) => outcome::of_soak(said)?,
            How::Nemesis => {
                let mut outcome = failover::outcome(said)?;
                outcome.violations += failover::skipped(said)?;
                // What failed it may be faults that were not done or errors that nothing explains, which its cells do not
                // call broken. Half an hour is no reason to say nothing of that.
                if !passed {
                    outcome.violations = outcome.violations.max(1);
                }
                outcome
            }
            How::Failover => failover::outcome(said)?,
            How::Performance => performance::outcome(said)?,
        };
        match passed || outcome.violations > 0 {
            true => Ok(outcome),
            false => Err("it failed, and does not say of what".to_owned()),
        }
    }
}

#[cfg(test)]
impl Level {
    /// One that no table shows.
    pub(crate) const fn of_test(
        name: &'static str,
        about: &'static [&'static str],
        how: How,
    ) -> Self {
        Self {
            name,
            generates: "",
            cases: "",
            about,
            how,
        }
    }
}

const TESTS: &[&str] = &[
    "test",
    "--locked",
    "--workspace",
    "--all-features",
    "--no-fail-fast",
];

/// The tests of all of these targets. Of one that has none cargo says that all is well.
fn of_all(targets: &[&str], said: &str) -> Result<Outcome, String> {
    let ran = outcome::programs_that_ran_tests(said);
    match ran < targets.len() {
        true => Err(format!(
            "{ran} test programs ran a test, of the targets {}",
            targets.join(", ")
        )),
        false => outcome::of_tests(said),
    }
}

fn schedules(said: &str) -> Result<Outcome, String> {
    let tests = outcome::of_tests(said)?;
    let ran = said.lines().filter_map(|line| {
        let number = line.strip_prefix("schedules: ")?.split(' ').next()?;
        number.parse::<u64>().ok()
    });
    Ok(Outcome {
        cases: ran.sum(),
        violations: tests.violations,
        killed: Some(outcome::model_mutants(said)),
        // One that is not noticed fails the test, which is a violation.
        survived: (tests.violations == 0).then_some(0),
        ..Outcome::default()
    })
}

fn simulated(targets: &[&str], said: &str) -> Result<Outcome, String> {
    let tests = of_all(targets, said)?;
    let ran = outcome::of_simulation(said)?;
    Ok(Outcome {
        cases: ran.schedules,
        violations: ran.failed.max(tests.violations),
        killed: Some(outcome::model_mutants(said)),
        survived: (tests.violations == 0).then_some(0),
        exclusive: ran.exclusive,
    })
}

fn absolute(path: &Path) -> Result<std::path::PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use super::*;
    use crate::repository::Repository;

    /// What is kept takes hours, or a machine that is idle, to be made anew. It is refused all the same.
    #[test]
    fn what_is_kept_is_of_the_sources_that_there_are() {
        let kept = [
            (How::Failover, "bench-harness/failover/run-1.json"),
            (How::Performance, "docs/performance.json"),
        ];
        for (how, file) in kept {
            let repository = Repository::new(&file.replace('/', "-"));
            let root = &repository.root;
            let level = Level::of_test("kept", &["crates"], how);
            let build = repository.commit(&[("crates/one", "1")]);
            let made = format!(
                r#"{{"harness": {{"git_describe": "{build}", "build_profile": "release"}}, "cells": []}}"#
            );
            // The page is committed after what it is about, and so are other things.
            repository.commit(&[(file, &made), ("docs/other", "1")]);
            assert_eq!(level.commit(root).unwrap(), build);

            repository.commit(&[("crates/one", "2")]);
            let told = level.commit(root).unwrap_err();
            assert!(
                told.contains(&build) && told.contains("crates/one"),
                "{told}"
            );
        }
    }
}
