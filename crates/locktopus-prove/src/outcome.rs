//! What a run of a level says, read from what it prints.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What came of a level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// How much was run.
    pub(crate) cases: u64,
    /// How often something was wrong.
    pub(crate) violations: u64,
    /// Changes on purpose that were noticed, where there are any.
    pub(crate) killed: Option<u64>,
    /// And those that were not.
    pub(crate) survived: Option<u64>,
    /// In how many of the cases two holders at once would break a promise, where that is not so in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exclusive: Option<u64>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cases, {} violations", self.cases, self.violations)?;
        if let Some(exclusive) = self.exclusive {
            write!(f, ", exclusion required in {exclusive}")?;
        }
        if let (Some(killed), Some(survived)) = (self.killed, self.survived) {
            write!(f, ", {killed} mutants noticed, {survived} not")?;
        }
        Ok(())
    }
}

/// The tests that passed and failed: lines `test result: ok. 12 passed; 0 failed; ...`.
///
/// # Errors
///
/// If none ran.
pub(crate) fn of_tests(said: &str) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    for line in said
        .lines()
        .filter(|line| line.starts_with("test result: "))
    {
        outcome.cases += number_before(line, " passed").ok_or("a result without a number")?;
        let failed = number_before(line, " failed").ok_or("a result without a number")?;
        outcome.cases += failed;
        outcome.violations += failed;
    }
    match outcome.cases {
        0 => Err("no test ran".to_owned()),
        _ => Ok(outcome),
    }
}

/// How many programs ran a test at all.
pub(crate) fn programs_that_ran_tests(said: &str) -> usize {
    let results = said
        .lines()
        .filter(|line| line.starts_with("test result: "));
    let ran = |line: &&str| {
        let of = |what| number_before(line, what).unwrap_or(0);
        of(" passed") + of(" failed") > 0
    };
    results.filter(ran).count()
}

/// The mutants of the model's own table: lines `name: seed 7, Exclusion` of those that were noticed.
pub(crate) fn model_mutants(said: &str) -> u64 {
    let noticed = said.lines().filter(|line| {
        let rest = line.split_once(": seed ").map(|(_, rest)| rest);
        rest.and_then(|rest| rest.split_once(", "))
            .is_some_and(|(seed, _)| seed.parse::<u64>().is_ok())
    });
    noticed.count() as u64
}

/// What the simulator ran.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Simulated {
    pub(crate) schedules: u64,
    pub(crate) failed: u64,
    /// In how many exclusion was required to the end; it does not say so where some failed.
    pub(crate) exclusive: Option<u64>,
}

/// How many schedules the simulator ran and how many failed: `300 schedules, 9000 s of their time, exclusion required in 240,
/// until a fault in 60`, or `2 of 300 schedules failed`.
///
/// # Errors
///
/// If it says neither, or ran none.
pub(crate) fn of_simulation(said: &str) -> Result<Simulated, String> {
    let run = said.lines().find_map(|line| {
        if line.contains(" s of their time") {
            return Some(Simulated {
                schedules: number_before(line, " schedules, ")?,
                failed: 0,
                exclusive: Some(number_before(line, ", until a fault in")?),
            });
        }
        Some(Simulated {
            schedules: number_before(line, " schedules failed")?,
            failed: number_before(line, " of ")?,
            exclusive: None,
        })
    });
    match run {
        None | Some(Simulated { schedules: 0, .. }) => {
            Err("it does not say how many schedules ran".to_owned())
        }
        Some(run) => Ok(run),
    }
}

/// The last row of the table of scripts/mutants: `| all | 7 | 7 | 3 | 1 | 0 | 2 | 1 | 0 | 14.3 % |`, of which the first number is
/// that of all mutants and the seventh that of survivors.
///
/// # Errors
///
/// If there is none, or some were left out.
pub(crate) fn of_script_mutants(said: &str) -> Result<Outcome, String> {
    if said.contains("LEFT OUT") {
        return Err("mutants were left out".to_owned());
    }
    let row = said.lines().rfind(|line| line.starts_with("| all |"));
    let cells = row.unwrap_or_default().split('|').map(str::trim);
    let numbers: Vec<u64> = cells.filter_map(|cell| cell.parse().ok()).collect();
    let [all, _, _, _, _, _, survived, _] = numbers[..] else {
        return Err("there is no table".to_owned());
    };
    let unknown = said
        .lines()
        .filter(|line| line.starts_with("survives, and is not in the table"));
    Ok(Outcome {
        cases: all,
        violations: unknown.count() as u64,
        killed: Some(all - survived),
        survived: Some(survived),
        ..Outcome::default()
    })
}

/// What scripts/mutants-rust says last: `mutants of the Rust: 780 noticed, 21 survives, 272 unviable`.
///
/// # Errors
///
/// If it says nothing of the kind, or some are untried.
pub(crate) fn of_rust_mutants(said: &str) -> Result<Outcome, String> {
    let line = said
        .lines()
        .rfind(|line| line.starts_with("mutants of the Rust: "));
    let line = line.ok_or("it does not say what is known of the mutants")?;
    let number = |what| number_before(line, what).unwrap_or(0);
    let (killed, survived) = (number(" noticed"), number(" survives"));
    match (killed + survived, number(" untried")) {
        (0, _) => Err("no mutant ran".to_owned()),
        (cases, 0) => Ok(Outcome {
            cases,
            violations: 0,
            killed: Some(killed),
            survived: Some(survived),
            ..Outcome::default()
        }),
        (_, untried) => Err(format!("{untried} mutants are untried")),
    }
}

/// What scripts/soak says last: `soak: 12000000 acquisitions, 0 of 15 checks failed`.
///
/// # Errors
///
/// If it does not say so, or nothing was acquired.
pub(crate) fn of_soak(said: &str) -> Result<Outcome, String> {
    let line = said.lines().rfind(|line| line.starts_with("soak: "));
    let line = line.ok_or("it does not say how it ended")?;
    let number = |before: &str| number_before(line, before);
    match (number(" acquisitions"), number(" of ")) {
        (None | Some(0), _) => Err("nothing was acquired".to_owned()),
        (_, None) => Err("it does not say what failed".to_owned()),
        (Some(cases), Some(violations)) => Ok(Outcome {
            cases,
            violations,
            ..Outcome::default()
        }),
    }
}

/// What scripts/reverts says last: `120 reverts tried, 0 not noticed`.
///
/// # Errors
///
/// If it says nothing of the kind.
pub(crate) fn of_reverts(said: &str) -> Result<Outcome, String> {
    let line = said
        .lines()
        .rfind(|line| line.contains(" reverts tried, "))
        .ok_or("no revert was tried")?;
    let tried = number_before(line, " reverts tried").ok_or("a line without a number")?;
    let survived = number_before(line, " not noticed").ok_or("a line without a number")?;
    Ok(Outcome {
        cases: tried,
        violations: survived,
        killed: Some(tried - survived),
        survived: Some(survived),
        ..Outcome::default()
    })
}

/// States and counterexamples of the tables that the test of the protocols has just found to be true.
///
/// # Errors
///
/// If there are none.
pub(crate) fn of_protocols(page: &str) -> Result<Outcome, String> {
    let (begin, end) = (
        "<!-- locktopus-proofs --write: begin -->",
        "<!-- locktopus-proofs --write: end -->",
    );
    let tables = page
        .split_once(begin)
        .and_then(|(_, rest)| rest.split_once(end))
        .ok_or("the page has no such tables")?
        .0;
    let (whole, broken) = tables
        .split_once("What breaks when one rule is left out")
        .ok_or("one table is missing")?;
    // At night others are visited too, which this run did not do.
    let rows = |text: &'static str, table: &str| -> Vec<Vec<String>> {
        let rows = table.lines().filter(|line| line.starts_with("| "));
        let rows = rows.filter(|line| !line.contains("at night") && !line.starts_with(text));
        rows.map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect())
            .collect()
    };
    let states = rows("| as shipped", whole);
    let states = states
        .iter()
        .filter_map(|row| row.get(3)?.parse::<u64>().ok());
    let broken = rows("| model", broken).len() as u64;
    match states.sum::<u64>() {
        0 => Err("no states".to_owned()),
        cases => Ok(Outcome {
            cases,
            violations: 0,
            killed: Some(broken),
            survived: Some(0),
            ..Outcome::default()
        }),
    }
}

fn number_before(line: &str, what: &str) -> Option<u64> {
    let (before, _) = line.split_once(what)?;
    before.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use super::*;

    #[test]
    fn schedules_that_failed_are_counted_and_none_at_all_is_no_result() {
        let of = |schedules, failed, exclusive| {
            Ok(Simulated {
                schedules,
                failed,
                exclusive,
            })
        };
        let went_well = "running 2 tests\n300 schedules, 9321 s of their time, exclusion required in 240, until a fault in 60: {\n\
                         \"ASK\": 3,\n}\nexclusion required until this fault: {\n    \"plain, kill\": 60,\n}";
        assert_eq!(of_simulation(went_well), of(300, 0, Some(240)));
        let failed =
            "seed 7: [\n2 of 300 schedules failed: [7, 9]\nLOCKTOPUS_SIM_SEED=7 breaks a rule";
        assert_eq!(of_simulation(failed), of(300, 2, None));
        assert!(of_simulation("300 schedules, 9 s of their time: {}").is_err());
        let none =
            "0 schedules, 0 s of their time, exclusion required in 0, until a fault in 0: {}";
        assert!(of_simulation(none).is_err());
        assert!(of_simulation("test result: ok. 3 passed").is_err());
    }

    #[test]
    fn failed_tests_are_violations_and_none_at_all_is_no_result() {
        let said = "test result: ok. 12 passed; 0 failed; 1 ignored\n\
                    test result: FAILED. 3 passed; 2 failed; 0 ignored";
        let outcome = of_tests(said).unwrap();
        assert_eq!((outcome.cases, outcome.violations), (17, 2));
        assert!(of_tests("test result: ok. 0 passed; 0 failed; 0 ignored").is_err());
    }

    #[test]
    fn a_soak_says_how_much_it_did_and_what_failed() {
        let said = |line: &str| of_soak(&format!("a table\n{line}\n"));
        let fine = said("soak: 12000 acquisitions, 2 of 15 checks failed").unwrap();
        assert_eq!((fine.cases, fine.violations), (12_000, 2));
        assert!(said("soak: 0 acquisitions, 0 of 15 checks failed").is_err());
        assert!(said("soak: 7 acquisitions").is_err());
        assert!(said("nothing").is_err());
    }

    #[test]
    fn mutants_are_read_from_the_last_row_unless_some_are_missing() {
        let said = "| all | 7 | 7 | 3 | 1 | 0 | 2 | 1 | 0 | 14.3 % |\nsurvives, and is not in the table: x";
        let outcome = of_script_mutants(said).unwrap();
        assert_eq!(
            outcome.to_string(),
            "7 cases, 1 violations, 6 mutants noticed, 1 not"
        );
        assert!(of_script_mutants(&format!("{said}\nLEFT OUT: 3 mutants")).is_err());
        assert!(of_script_mutants("nothing").is_err());
        assert_eq!(
            model_mutants("a: seed 7, Exclusion\nseed 7\nb: seed x, y"),
            1
        );
    }

    #[test]
    fn mutants_of_the_rust_are_no_result_while_some_are_untried() {
        let said = |rest: &str| of_rust_mutants(&format!("a\nmutants of the Rust: {rest}\n"));
        let outcome = said("780 noticed, 21 survives, 272 unviable").unwrap();
        assert_eq!((outcome.cases, outcome.violations), (801, 0));
        assert_eq!((outcome.killed, outcome.survived), (Some(780), Some(21)));
        assert_eq!(said("7 noticed").unwrap().survived, Some(0));
        assert!(said("633 noticed, 11 survives, 204 untried, 225 unviable").is_err());
        assert!(said("225 unviable").is_err());
        assert!(of_rust_mutants("nothing").is_err());
    }

    #[test]
    fn reverts_and_protocols_are_read() {
        let outcome = of_reverts("120 reverts tried, 2 not noticed").unwrap();
        assert_eq!((outcome.killed, outcome.survived), (Some(118), Some(2)));
        let page = "<!-- locktopus-proofs --write: begin -->\n\
                    | as shipped | within | states | steps |\n|---|---|---|---|\n\
                    | quorum | 5 nodes | 100 | 200 |\n| quorum | 9 nodes, at night | 1000 | 1 |\n\
                    What breaks when one rule is left out:\n| model | left out |\n|---|---|\n\
                    | quorum | one |\n| quorum | two |\n\
                    <!-- locktopus-proofs --write: end -->";
        let outcome = of_protocols(page).unwrap();
        assert_eq!((outcome.cases, outcome.killed), (100, Some(2)));
        assert!(of_protocols("").is_err());
    }
}
