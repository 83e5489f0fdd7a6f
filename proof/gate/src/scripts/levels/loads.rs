//! The scripts that each test of a program runs, so that a mutant meets only the tests it concerns.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::tests;
use crate::scripts::mutants::Mutant;

/// The variable that makes a test program record its loads (`lua/loaded.rs` of the model).
const VARIABLE: &str = "LOCKTOPUS_MODEL_LOADED";

/// The loads of each program, by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loads(BTreeMap<String, Program>);

/// The scripts that each test of a program loads, by its name. Of scripts with the same text only
/// one is listed.
type Program = BTreeMap<String, BTreeSet<String>>;

impl Loads {
    /// Runs every program with the shipped scripts, and reads what each of its tests loads.
    ///
    /// # Errors
    ///
    /// If a program cannot be run, or fails.
    pub fn of(programs: &[PathBuf]) -> Result<Self, String> {
        let mut loads = BTreeMap::new();
        for program in programs {
            let said = said_by(program)?;
            loads.insert(tests::name(program), parse(&said.0, &said.1));
        }
        Ok(Self(loads))
    }

    /// Reads them from a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn read(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
        let loads = text.and_then(|text| serde_json::from_str(&text).map_err(|it| it.to_string()));
        loads.map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Writes them to a file.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), String> {
        let text = serde_json::to_string(self).map_err(|error| error.to_string())?;
        std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// The tests of a program that run a script with this mutant.
    ///
    /// # Errors
    ///
    /// If the loads of this program are unknown.
    pub fn about(&self, program: &str, mutant: &Mutant) -> Result<Vec<&str>, String> {
        let known = self.0.get(program);
        let known = known.ok_or_else(|| format!("it is not known what {program} loads"))?;
        let tests = known.iter().filter(|(_, scripts)| {
            let changed = |script: &String| mutant.scripts.contains(script);
            scripts.iter().any(changed)
        });
        Ok(tests.map(|(test, _)| test.as_str()).collect())
    }
}

/// The names of a program's tests, one per line, and what they load.
fn said_by(program: &Path) -> Result<(String, String), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let list = Command::new(program)
        .args(["--list", "--format", "terse"])
        .output()
        .map_err(failed)?;
    let file = std::env::temp_dir().join(format!("locktopus-loads-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    // With one thread, tests would run in the main thread, which has no test's name.
    let run = Command::new(program)
        .args(["--skip", tests::MUTANTS, "--test-threads", "2"])
        .env(VARIABLE, &file)
        .output()
        .map_err(failed)?;
    let loaded = std::fs::read_to_string(&file);
    let _ = std::fs::remove_file(&file);
    if !list.status.success() || !run.status.success() {
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        return Err(format!(
            "{} complains about the scripts as they are: {said}",
            program.display()
        ));
    }
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    Ok((list, loaded.map_err(failed)?))
}

/// A thread without a test's name may belong to any test, so its loads count for all.
fn parse(list: &str, loaded: &str) -> Program {
    let names = list
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .filter(|name| !name.contains(tests::MUTANTS));
    let mut program: Program = names
        .map(|name| (name.to_owned(), BTreeSet::new()))
        .collect();
    for line in loaded.lines() {
        let (thread, script) = line.split_once('\t').unwrap_or(("", line));
        match program.get_mut(thread) {
            Some(scripts) => {
                scripts.insert(script.to_owned());
            }
            None => program.values_mut().for_each(|scripts| {
                scripts.insert(script.to_owned());
            }),
        }
    }
    program
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_test_loads_what_its_thread_loads_and_what_nobody_else_does() {
        let list = "a: test\nb: test\nevery_mutant_is_noticed: test\n3 tests, 0 benchmarks\n";
        let loads = parse(list, "a\tlock_acquire\na\tlock_acquire\n\tclassify\n");
        let scripts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let expected = [
            ("a".to_owned(), scripts(&["lock_acquire", "classify"])),
            ("b".to_owned(), scripts(&["classify"])),
        ];
        assert_eq!(loads, BTreeMap::from(expected));
    }
}
