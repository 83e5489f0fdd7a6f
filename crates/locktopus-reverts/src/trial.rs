//! Each revert in turn: without it its test passes, with it the test fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::cargo::{self, Outcome, Program};
use crate::copy::Copy;
use crate::table::{Fault, Revert, Target, TestName};

/// Tries the reverts of the faults named, or of all.
///
/// # Errors
///
/// Nothing was tried, a test failed without a revert, or a revert was not noticed.
pub(crate) fn run(root: &Path, faults: &[Fault], only: &[u32]) -> Result<(), String> {
    let wanted: Vec<_> = faults
        .iter()
        .filter(|fault| only.is_empty() || only.contains(&fault.number))
        .flat_map(|fault| fault.reverts.iter().map(move |revert| (fault, revert)))
        .collect();
    if wanted.is_empty() {
        return Err("nothing to try".to_owned());
    }
    let target_dir =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let place = target_dir.join("reverts");
    let mut trials = Trials {
        copy: Copy::of(root, place.join("sources"))?,
        target_dir,
        place,
    };
    let tests: BTreeSet<_> = wanted.iter().map(|(_, revert)| &revert.test).collect();
    println!("{} tests as they are", tests.len());
    let without = trials.as_they_are(&tests)?;
    let mut bad = 0;
    for (at, (fault, revert)) in wanted.iter().enumerate() {
        let log = format!("{:02}-{}.log", fault.number, at + 1);
        let verdict = match &without[&revert.test] {
            Outcome::Passed => trials.one(revert, &log),
            Outcome::Failed => Err("FAILS WITHOUT THE REVERT".to_owned()),
            Outcome::Neither(what) => Err(format!("NOT TRIED ({what})")),
        };
        trials.copy.restore()?;
        let verdict = verdict.unwrap_or_else(|what| {
            bad += 1;
            what
        });
        let target = &revert.test.target;
        println!(
            "{:>2}  {verdict}  {}\n    {}/{}/{}",
            fault.number, revert.mend, target.package, target.name, revert.test.name
        );
    }
    println!("{} reverts tried, {bad} not noticed", wanted.len());
    match bad {
        0 => Ok(()),
        _ => Err(format!(
            "what the tests said is in {}",
            trials.place.display()
        )),
    }
}

struct Trials {
    copy: Copy,
    target_dir: PathBuf,
    place: PathBuf,
}

impl Trials {
    /// What the tests say without any revert.
    fn as_they_are(
        &self,
        tests: &BTreeSet<&TestName>,
    ) -> Result<BTreeMap<TestName, Outcome>, String> {
        let mut outcomes = BTreeMap::new();
        // In their order, those of one program come together.
        let mut built: Option<(&Target, Program)> = None;
        for (at, test) in tests.iter().enumerate() {
            let program = match built.take() {
                Some((target, program)) if *target == test.target => program,
                _ => self.build(&test.target)?,
            };
            let outcome = self.run(&program, test, &format!("without-{}.log", at + 1))?;
            outcomes.insert((*test).clone(), outcome);
            built = Some((&test.target, program));
        }
        Ok(outcomes)
    }

    /// One revert: "died", or what is wrong.
    fn one(&mut self, revert: &Revert, log: &str) -> Result<String, String> {
        self.copy.change(&revert.change)?;
        let program = self.build(&revert.test.target)?;
        match self.run(&program, &revert.test, log)? {
            Outcome::Failed => Ok("died    ".to_owned()),
            Outcome::Passed => Err("SURVIVED".to_owned()),
            Outcome::Neither(what) => Err(format!("NEITHER ({what})")),
        }
    }

    fn build(&self, target: &Target) -> Result<Program, String> {
        let built = cargo::build(self.copy.root(), &self.target_dir, target);
        built.map_err(|error| {
            let words: Vec<_> = error.lines().take(8).collect();
            format!("DOES NOT COMPILE\n{}\n", words.join("\n"))
        })
    }

    fn run(&self, program: &Program, test: &TestName, log: &str) -> Result<Outcome, String> {
        cargo::run(program, test, &self.place.join(log))
    }
}
