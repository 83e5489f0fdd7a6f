//! The list of mutants that survive, each with a reason.
//!
//! A survivor that is not in the list is a failure, and so is a listed mutant that a test notices.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;

use super::mutants::Mutant;

/// The folder of the list, from the root of the repository.
pub const FOLDER: &str = "proof/gate/survivors";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The file whose mutants it lists.
    file: String,
    #[serde(default)]
    survives: Vec<Group>,
}

/// Mutants that survive for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    why: String,
    /// Each with its id, a space, and its change, for readers.
    mutants: Vec<String>,
}

/// The list.
#[derive(Debug, Default)]
pub struct Survivors {
    /// Why each mutant survives, by its id.
    pub reasons: BTreeMap<String, String>,
}

impl Survivors {
    /// Whether the list has a mutant.
    #[must_use]
    pub fn has(&self, mutant: &Mutant) -> bool {
        self.reasons.contains_key(&mutant.id)
    }
}

/// Reads the list.
///
/// # Errors
///
/// If a file cannot be read, or lists a mutant twice or one that does not exist.
pub fn read(root: &Path, mutants: &[Mutant]) -> Result<Survivors, String> {
    let folder = root.join(FOLDER);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut survivors = Survivors::default();
    let mut wrong = Vec::new();
    let entries = match std::fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(survivors),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        let file: File =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if !mutants.iter().any(|mutant| mutant.file == file.file) {
            wrong.push(format!("{}: there is no {}", path.display(), file.file));
        }
        for group in file.survives {
            for line in group.mutants {
                let (id, what) = line.split_once(' ').unwrap_or((line.as_str(), ""));
                match mutants.iter().find(|mutant| mutant.id == id) {
                    Some(mutant) if mutant.what == what => {}
                    _ => wrong.push(format!("{}: there is no mutant {line}", path.display())),
                }
                if survivors
                    .reasons
                    .insert(id.to_owned(), group.why.clone())
                    .is_some()
                {
                    wrong.push(format!("{}: {id} is there twice", path.display()));
                }
            }
        }
    }
    match wrong.is_empty() {
        true => Ok(survivors),
        false => Err(wrong.join("\n")),
    }
}
