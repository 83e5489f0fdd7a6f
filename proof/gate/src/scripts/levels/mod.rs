//! The tests that each mutant meets, the cheapest first.
//!
//! There are two rounds. The transcripts notice most mutants, in milliseconds; the other tests get
//! the rest.

mod conformance;
mod loads;
mod tests;
mod transcripts;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use locktopus_conformance::Flavour;
use locktopus_core::SafetyMode;
use locktopus_model::lua::{Replaced, replace};
use serde::{Deserialize, Serialize};

pub use conformance::{NOT_MODELLED, suite};
pub use loads::Loads;

use super::mutants::Mutant;
use super::verdict::Verdict;

/// The tests of the second round.
#[derive(Debug, Clone)]
pub struct Effort {
    /// Programs with other tests of the model.
    pub tests: Vec<PathBuf>,
    /// Which of their tests runs which script.
    pub loads: Loads,
}

/// The parts of the levels that concern a mutant.
#[derive(Debug)]
struct Subject {
    flavours: Vec<Flavour>,
    quarantine: bool,
}

/// Longer than any lease in a case.
const QUARANTINE: SafetyMode = SafetyMode::Quarantine {
    max_lease: Duration::from_secs(2 * 24 * 60 * 60),
};

/// The levels that a mutant meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Round {
    /// The recorded transcripts.
    Transcripts,
    /// All other levels.
    Others,
}

impl Round {
    /// In their order.
    pub const ALL: [Self; 2] = [Self::Transcripts, Self::Others];

    /// Whether this is the next round for a mutant with this verdict so far.
    #[must_use]
    pub fn follows(self, known: Option<&Verdict>) -> bool {
        match known {
            None => self == Self::Transcripts,
            Some(Verdict::Unseen) => self == Self::Others,
            Some(_) => false,
        }
    }
}

/// The level that noticed a mutant, and how.
type Noticed = Option<(&'static str, String)>;

/// The verdict on a mutant in a round. `as_shipped` runs the levels on the shipped scripts, where
/// none may fail.
///
/// # Errors
///
/// If a level could not run, which says nothing about the mutant.
pub fn judge(
    mutant: &Mutant,
    as_shipped: bool,
    round: Round,
    effort: &Effort,
) -> Result<Verdict, String> {
    let subject = Subject::of(mutant);
    let file = (!as_shipped).then(|| mutant.replaced());
    replace(file.clone());
    let noticed = match round {
        Round::Transcripts => transcripts::run(mutant),
        Round::Others => others(mutant, &subject, file.as_ref(), effort),
    };
    replace(None);
    Ok(match (noticed?, round) {
        (Some((level, how)), _) => Verdict::Noticed {
            level: level.to_owned(),
            how,
        },
        (None, Round::Transcripts) => Verdict::Unseen,
        (None, Round::Others) => Verdict::Survives,
    })
}

/// The levels of a round in order, up to the first that notices.
type Levels<'a> = Vec<Box<dyn Fn() -> Result<Noticed, String> + 'a>>;

fn first_of(levels: Levels<'_>) -> Result<Noticed, String> {
    for level in levels {
        let noticed = level()?;
        if noticed.is_some() {
            return Ok(noticed);
        }
    }
    Ok(None)
}

fn others(
    mutant: &Mutant,
    subject: &Subject,
    file: Option<&Replaced>,
    effort: &Effort,
) -> Result<Noticed, String> {
    let run = |names: &'static [&str]| programs(mutant, file, effort, |it| names.contains(&it));
    first_of(vec![
        Box::new(|| run(&["direct", "edges", "precise"])),
        Box::new(|| run(&["multitude", "queue_life", "neighbours"])),
        Box::new(|| {
            let outcome = conformance::run(&subject.flavours, SafetyMode::Plain);
            named("conformance", outcome)
        }),
        Box::new(|| {
            let outcome = match subject.quarantine {
                true => conformance::run(&subject.flavours, QUARANTINE),
                false => Ok(()),
            };
            named("conformance, quarantine", outcome)
        }),
        Box::new(|| run(&["executed", "deaf"])),
    ])
}

fn named(level: &'static str, outcome: Result<(), String>) -> Result<Noticed, String> {
    Ok(outcome.err().map(|how| (level, how)))
}

/// Runs the tests that a mutant concerns, in the programs with a `wanted` name.
fn programs(
    mutant: &Mutant,
    file: Option<&Replaced>,
    effort: &Effort,
    wanted: impl Fn(&str) -> bool,
) -> Result<Noticed, String> {
    for program in &effort.tests {
        let name = tests::name(program);
        if !wanted(&name) {
            continue;
        }
        let about = effort.loads.about(&name, mutant)?;
        if !about.is_empty() {
            let noticed = tests::run(program, &about, file)?;
            if noticed.is_some() {
                return Ok(noticed);
            }
        }
    }
    Ok(None)
}

impl Subject {
    fn of(mutant: &Mutant) -> Self {
        let names = mutant.scripts.iter().map(String::as_str);
        let names: BTreeSet<_> = names
            .map(|name| name.strip_prefix("quarantined_").unwrap_or(name))
            .collect();
        let mut flavours = Vec::new();
        for flavour in names.iter().flat_map(|name| flavours_of(name)) {
            if !flavours.contains(flavour) {
                flavours.push(*flavour);
            }
        }
        Self {
            flavours,
            quarantine: mutant.file.contains("quarantine"),
        }
    }
}

fn flavours_of(script: &str) -> &'static [Flavour] {
    use Flavour::{
        Fair, Latch, Lock, Mutex, Permits, RateLimiter, ReadWrite, Semaphore, SingleKey,
    };
    let flavours: [(&str, &[Flavour]); 15] = [
        ("lock_linger", &[Lock, Fair]),
        ("lock_", &[Lock]),
        ("mutex_", &[Mutex, SingleKey]),
        ("notifying_", &[Mutex]),
        ("fair_lock_", &[Fair]),
        ("read_lock_", &[ReadWrite]),
        ("write_lock_", &[ReadWrite]),
        ("semaphore_", &[Semaphore]),
        ("permits_", &[Permits]),
        ("permit_semaphore_", &[Permits]),
        ("rate_", &[RateLimiter]),
        ("latch", &[Latch]),
        ("classify", &Flavour::ALL),
        ("group_", &[Lock, Mutex]),
        ("", &[Lock]),
    ];
    let found = flavours.iter().find(|(start, _)| script.starts_with(start));
    found.map_or(&[], |(_, flavours)| flavours)
}
