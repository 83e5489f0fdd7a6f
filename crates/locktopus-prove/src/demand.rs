//! What a result must have to count: as many cases as were asked for, and every change on purpose noticed or explained. It is asked
//! when a level was run, and again of what is kept of it.

use std::path::Path;

use crate::failover;
use crate::level::{How, Level};
use crate::outcome::Outcome;

/// Survivors that are explained, of the scripts and of the Rust.
const OF_SCRIPTS: &str = "crates/locktopus-mutants/survivors";
const OF_RUST: &str = "crates/locktopus-mutants/survivors-rust";
const REVERTS: &str = "crates/locktopus-reverts/table";
/// Acquisitions a second, of which a soak must reach so many hundredths: as in its own check.
const RATE: u64 = 10_000;
const REACHED: u64 = 99;

/// How many cases are enough.
#[derive(Debug)]
enum Cases {
    AtLeast(u64),
    Exactly(u64),
}

/// What must have become of changes on purpose.
#[derive(Debug)]
enum Mutants {
    /// There are none.
    None,
    /// Every one was noticed, and there were some.
    Noticed,
    /// They are the cases, and every one was noticed.
    Cases,
    /// They are the cases, and no more survived than are explained.
    Explained { at_most: u64 },
    /// They are the cases, and as many survived as are explained.
    AllExplained(u64),
}

/// Why a result without violations is no proof, if it is none.
///
/// # Errors
///
/// If what it is compared with cannot be read.
pub(crate) fn refused(
    root: &Path,
    level: &Level,
    outcome: &Outcome,
) -> Result<Option<String>, String> {
    let (cases, mutants) = demands(root, level)?;
    let ran = outcome.cases;
    let why = match cases {
        Cases::AtLeast(enough) if ran < enough => {
            Some(format!("{ran} cases, of at least {enough}"))
        }
        Cases::Exactly(asked) if ran != asked => Some(format!("{ran} cases, and not {asked}")),
        _ => None,
    };
    let exclusion = (outcome.exclusive == Some(0))
        .then(|| "two holders would have broken a promise in none of the cases".to_owned());
    Ok(why.or_else(|| of_mutants(&mutants, outcome)).or(exclusion))
}

fn of_mutants(mutants: &Mutants, outcome: &Outcome) -> Option<String> {
    let (killed, survived) = match (outcome.killed, outcome.survived, mutants) {
        (None, None, Mutants::None) => return None,
        (Some(killed), Some(survived), _) => (killed, survived),
        _ => return Some("it does not say how many mutants were noticed".to_owned()),
    };
    let all = killed + survived == outcome.cases;
    let fine = killed > 0
        && match mutants {
            Mutants::None => false,
            Mutants::Noticed => survived == 0,
            Mutants::Cases => all && survived == 0,
            Mutants::Explained { at_most } => all && survived <= *at_most,
            Mutants::AllExplained(explained) => all && survived == *explained,
        };
    (!fine).then(|| format!("{killed} mutants noticed and {survived} not, of {mutants:?}"))
}

fn demands(root: &Path, level: &Level) -> Result<(Cases, Mutants), String> {
    Ok(match level.how {
        How::Tests(targets) => (Cases::AtLeast(targets.len() as u64), Mutants::None),
        How::Schedules(asked) => (Cases::AtLeast(asked), Mutants::Noticed),
        How::Simulation(_, asked) => (Cases::Exactly(asked), Mutants::Noticed),
        How::Protocols => (Cases::AtLeast(1), Mutants::Noticed),
        How::Mutants(arguments) => {
            let explained = lines(&root.join(OF_SCRIPTS), |line| line.starts_with("'''"))?;
            let sample = argument(arguments, "--sample");
            match sample {
                Some(number) => (
                    Cases::Exactly(number),
                    Mutants::Explained { at_most: explained },
                ),
                None => (Cases::AtLeast(1), Mutants::AllExplained(explained)),
            }
        }
        How::RustMutants => {
            let said = |line: &str| !line.is_empty() && !line.starts_with('#');
            let explained = lines(&root.join(OF_RUST), said)?;
            (Cases::AtLeast(1), Mutants::AllExplained(explained))
        }
        How::Reverts => {
            let all = lines(&root.join(REVERTS), |line| line == "[[revert]]")?;
            (Cases::Exactly(all), Mutants::Cases)
        }
        How::Soak(arguments) => {
            let minutes = argument(arguments, "--minutes").unwrap_or(0);
            let enough = minutes * 60 * RATE * REACHED / 100;
            (Cases::AtLeast(enough.max(1)), Mutants::None)
        }
        How::Nemesis => {
            let planned = failover::planned(root, "nemesis.toml")?;
            (Cases::AtLeast(planned), Mutants::Noticed)
        }
        How::Failover => {
            let planned = failover::planned(root, "committed.toml")?;
            (Cases::AtLeast(planned), Mutants::Noticed)
        }
        How::Performance => (Cases::AtLeast(1), Mutants::None),
    })
}

/// The number behind an argument.
fn argument(arguments: &[&str], name: &str) -> Option<u64> {
    let at = arguments.iter().position(|argument| *argument == name)?;
    arguments.get(at + 1)?.parse().ok()
}

/// How many lines of a file, or of all files of a folder, are of this kind.
fn lines(path: &Path, wanted: impl Fn(&str) -> bool) -> Result<u64, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(failed)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        files = paths.collect::<Result<_, _>>().map_err(failed)?;
    }
    let mut number = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(failed)?;
        number += text.lines().filter(|line| wanted(line.trim())).count() as u64;
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use super::*;
    use crate::levels::{LEVELS, named};

    fn root() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// What is just enough.
    fn enough(level: &Level) -> Outcome {
        let (cases, mutants) = demands(&root(), level).unwrap();
        let (Cases::AtLeast(cases) | Cases::Exactly(cases)) = cases;
        let (cases, survived) = match mutants {
            Mutants::None => (cases, None),
            Mutants::Noticed | Mutants::Cases => (cases, Some(0)),
            Mutants::Explained { at_most: some } | Mutants::AllExplained(some) => {
                (cases.max(some + 1), Some(some))
            }
        };
        Outcome {
            cases,
            killed: survived.map(|survived| cases - survived),
            survived,
            ..Outcome::default()
        }
    }

    #[test]
    fn too_little_is_refused_of_every_level() {
        let root = root();
        for level in LEVELS {
            let fine = enough(level);
            let refused = |outcome: &Outcome| refused(&root, level, outcome).unwrap();
            assert_eq!(refused(&fine), None, "{}", level.name);
            let told = |change: fn(&mut Outcome)| {
                let mut outcome = fine.clone();
                change(&mut outcome);
                assert!(refused(&outcome).is_some(), "{}: {outcome:?}", level.name);
            };
            told(|outcome| outcome.cases = 0);
            told(|outcome| outcome.killed = Some(0));
            told(|outcome| outcome.survived = Some(999));
            told(|outcome| outcome.exclusive = Some(0));
            if fine.killed.is_some() {
                told(|outcome| outcome.killed = None);
                told(|outcome| outcome.survived = None);
            }
        }
    }

    /// A number that says how much was asked for is none that fits everything.
    #[test]
    fn what_was_asked_for_is_counted() {
        let enough = |name: &str| enough(named(name).unwrap());
        assert_eq!(enough("simulation").cases, 20_000);
        assert_eq!(enough("model").cases, 100_000);
        assert_eq!(enough("soak").cases, 11_880_000);
        assert_eq!(enough("nemesis").cases, 3_100);
        assert!(enough("failover").cases > 1_000);
        assert!(enough("reverts").cases > 100);
        assert!(enough("mutants").survived > Some(100));
        assert!(enough("mutants-rust").survived > Some(10));
    }
}
