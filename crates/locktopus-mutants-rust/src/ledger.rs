//! What came of the mutants of one file: kept, so that a run goes on where the last one stopped. `scripts/mutants-rust` reads it too.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::mutant::Mutant;

/// What came of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Noticed,
    Survives,
    /// It does not compile.
    Unviable,
    Untried,
}

const STATES: [(State, &str); 4] = [
    (State::Noticed, "noticed"),
    (State::Survives, "survives"),
    (State::Unviable, "unviable"),
    (State::Untried, "untried"),
];

impl State {
    pub(crate) fn name(self) -> &'static str {
        STATES
            .iter()
            .find(|(state, _)| *state == self)
            .map_or("", |(_, name)| name)
    }

    fn read(name: &str) -> Option<Self> {
        STATES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(state, _)| *state)
    }
}

/// What came of the mutants of one file, by their numbers.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    digest: String,
    pub(crate) states: HashMap<usize, State>,
}

impl Ledger {
    /// The one in this folder of the file that has this text and these mutants.
    pub(crate) fn read(folder: &Path, file: &str, source: &str, mutants: &[Mutant]) -> Self {
        let name = file.strip_prefix("crates/").unwrap_or(file);
        let path = folder.join(format!("{name}.txt"));
        let digest = digest(source);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut lines = text.lines();
        let same = lines.next() == Some(&format!("digest {digest}"));
        let known: Option<Vec<_>> = lines.map(|line| known(line)).collect();
        let known = known.filter(|known| {
            let names = known.iter().map(|(_, name)| *name);
            same && names.eq(mutants.iter().map(|mutant| mutant.name.as_str()))
        });
        let states = mutants.iter().enumerate().map(|(at, mutant)| {
            let state = known.as_ref().map_or(State::Untried, |known| known[at].0);
            (mutant.number, state)
        });
        let states = states.collect();
        Self {
            path,
            digest,
            states,
        }
    }

    pub(crate) fn write(&self, mutants: &[Mutant]) -> Result<(), String> {
        let mut text = format!("digest {}\n", self.digest);
        for mutant in mutants {
            let state = self.states.get(&mutant.number).copied();
            let state = state.unwrap_or(State::Untried).name();
            writeln!(text, "{state} {}", mutant.name).map_err(|error| error.to_string())?;
        }
        let folder = self.path.parent().unwrap_or(&self.path);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&self.path, text))
            .map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

fn known(line: &str) -> Option<(State, &str)> {
    let (state, name) = line.split_once(' ')?;
    Some((State::read(state)?, name))
}

/// Of the lines before the unit tests that are not empty: who writes a test, and be it the first one, changes no mutant.
fn digest(source: &str) -> String {
    let mut sha = sha1_smol::Sha1::new();
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" && lines.peek().is_some_and(|next| next.starts_with("mod ")) {
            break;
        }
        if !line.is_empty() {
            sha.update(line.as_bytes());
            sha.update(b"\n");
        }
    }
    sha.digest().to_string()
}
