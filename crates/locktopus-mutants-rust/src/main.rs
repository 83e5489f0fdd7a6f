//! Tries mutants that cargo-mutants lists, and writes down what came of each.
//!
//! Built one at a time, a thousand mutants take a night. So all that can are put into one build, where a variable chooses one while
//! the tests run; those that do not compile there, or cannot stand there, are built by themselves. `scripts/mutants-rust` runs it.
//! Layers, lowest first: text, mutant, weave, ledger, copy, trial, campaign.

mod campaign;
mod copy;
mod ledger;
mod mutant;
mod text;
mod trial;
mod weave;

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::campaign::{Again, Campaign};
use crate::copy::Copy;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("mutants-rust: {what}");
            ExitCode::FAILURE
        }
    }
}

/// What the script says: pairs of a name and a value.
fn run() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let options: HashMap<_, _> = words
        .chunks_exact(2)
        .map(|pair| (pair[0].as_str(), pair[1].as_str()))
        .collect();
    let value = |name: &str| {
        options
            .get(name)
            .copied()
            .ok_or_else(|| format!("no {name}"))
    };
    let number = |name: &str| -> Result<u64, String> {
        let given = value(name)?;
        given.parse().map_err(|_| format!("{name}: {given}"))
    };
    let root = PathBuf::from(value("root")?);
    let package = value("package")?;
    let folder = root.join("target/mutants-rust").join(package);
    let tests: Vec<_> = value("tests")?
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let again = match value("again")? {
        "" => Again::Untried,
        "survivors" => Again::Survivors,
        "all" => Again::All,
        what => return Err(format!("again: {what}")),
    };
    let campaign = Campaign {
        copy: Copy {
            root: &root,
            folder: folder.join("tree"),
            package,
            tests: &tests,
        },
        aside: folder.join("programs"),
        tried: root.join(value("tried")?),
        at_once: usize::try_from(number("jobs")?).map_err(|error| error.to_string())?,
        until: Instant::now() + Duration::from_secs(60 * number("minutes")?),
        again,
    };
    campaign.run(mutant::read(&PathBuf::from(value("list")?))?)
}
