//! Other tests of the model, each program in a process of its own, which reads the mutant from a
//! file.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use locktopus_model::lua::Replaced;

use super::Noticed;

/// The names of tests that have mutants of their own contain this.
pub(super) const MUTANTS: &str = "every_mutant";

/// Signals that end a process from outside, also when the system is out of memory. No test sends
/// them.
const FROM_OUTSIDE: [i32; 4] = [1, 2, 9, 15];

/// The name of a test program, without the dash and the digits that cargo appends.
pub(super) fn name(program: &Path) -> String {
    let file = program.file_name().unwrap_or_default().to_string_lossy();
    file.split('-').next().unwrap_or_default().to_owned()
}

/// Runs these tests of a program. Returns the level and its output if a test failed.
///
/// # Errors
///
/// If it could not run, or a signal from outside ended it: that says nothing about the mutant.
pub(super) fn run(
    program: &Path,
    tests: &[&str],
    replaced: Option<&Replaced>,
) -> Result<Noticed, String> {
    let level = match name(program).as_str() {
        "executed" => "executed",
        "deaf" => "deaf",
        "direct" => "direct",
        "edges" => "edges",
        "precise" => "precise",
        "neighbours" => "neighbours",
        "queue_life" => "queue_life",
        "multitude" => "multitude",
        _ => "tests",
    };
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let mut command = Command::new(program);
    command.args(["--test-threads", "1", "--exact"]).args(tests);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let file = std::env::temp_dir().join(format!("locktopus-mutant-{}", std::process::id()));
    if let Some(replaced) = replaced {
        std::fs::write(&file, replaced.to_file()).map_err(failed)?;
        command.env("LOCKTOPUS_MODEL_REPLACED", &file);
    }
    let output = command.output();
    let _ = std::fs::remove_file(&file);
    let output = output.map_err(failed)?;
    let said = String::from_utf8_lossy(&output.stdout);
    noticed(output.status, &said)
        .map(|how| how.map(|how| (level, how)))
        .map_err(|what| format!("{}: {what}", program.display()))
}

/// How a test program noticed something, from its exit status and its output.
fn noticed(status: ExitStatus, said: &str) -> Result<Option<String>, String> {
    if status.success() {
        let passed = said.contains("test result: ok.") && !said.contains("ok. 0 passed");
        return match passed {
            true => Ok(None),
            false => Err("it ran no tests".to_owned()),
        };
    }
    if let Some(signal) = signal(status) {
        return match FROM_OUTSIDE.contains(&signal) {
            true => Err(format!("somebody ended it, with signal {signal}")),
            false => Ok(Some(format!("it ended with signal {signal}"))),
        };
    }
    let lines = said
        .lines()
        .filter(|line| line.ends_with("FAILED") || line.contains("panicked"));
    let lines: Vec<_> = lines.collect();
    match lines.is_empty() {
        true => Err(format!("it ended with {status} and named no test")),
        false => Ok(Some(lines.join("\n"))),
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal()
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

#[cfg(all(test, unix))]
mod unit {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn only_a_test_that_fails_notices() {
        let ended = |code: i32| ExitStatus::from_raw(code << 8);
        assert_eq!(noticed(ended(0), "test result: ok. 3 passed"), Ok(None));
        let how = noticed(ended(101), "test a ... FAILED\nother");
        assert_eq!(how, Ok(Some("test a ... FAILED".to_owned())));
        assert!(noticed(ended(0), "").is_err());
        assert!(noticed(ended(0), "test result: ok. 0 passed; 0 failed").is_err());
        assert!(noticed(ended(127), "cannot load").is_err());
        assert!(noticed(ExitStatus::from_raw(9), "test a ... FAILED").is_err());
        assert!(matches!(noticed(ExitStatus::from_raw(6), ""), Ok(Some(_))));
    }

    #[test]
    fn a_program_that_is_not_there_notices_nothing() {
        assert!(run(Path::new("/no/such/direct-0"), &["a"], None).is_err());
    }
}
