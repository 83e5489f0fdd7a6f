//! The results, in docs/testing.json.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

const FILE: &str = "docs/testing.json";

/// The results.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    /// Of each level the last.
    pub(crate) levels: BTreeMap<String, Entry>,
}

/// One result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// On which commit it was run.
    pub(crate) commit: String,
    /// The digest of the sources that it is about.
    pub(crate) about: String,
}

impl Kept {
    /// Reads them; none, if there is no file.
    ///
    /// # Errors
    ///
    /// If the file is none of these.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let text = match std::fs::read_to_string(root.join(FILE)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            text => text.map_err(|error| format!("{FILE}: {error}"))?,
        };
        let kept: Self = serde_json::from_str(&text).map_err(|error| format!("{FILE}: {error}"))?;
        // A level that is there twice would be read as the second one, and a field that nobody knows not at all.
        match kept.text()? == text {
            true => Ok(kept),
            false => Err(format!(
                "{FILE} is not as scripts/prove writes it: a level twice, a field too many, or a change by hand"
            )),
        }
    }

    fn text(&self) -> Result<String, String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        Ok(text + "\n")
    }

    /// Writes them.
    ///
    /// # Errors
    ///
    /// If it cannot.
    pub(crate) fn write(&self, root: &Path) -> Result<(), String> {
        let written = std::fs::write(root.join(FILE), self.text()?);
        written.map_err(|error| format!("{FILE}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use super::*;
    use crate::repository::Repository;

    #[test]
    fn only_what_was_written_is_read() {
        let repository = Repository::new("kept");
        let entry = Entry {
            outcome: Outcome {
                cases: 7,
                ..Outcome::default()
            },
            commit: "0123456789".to_owned(),
            about: "abcdef".to_owned(),
        };
        let kept = Kept {
            levels: [("unit".to_owned(), entry)].into(),
        };
        std::fs::create_dir_all(repository.root.join("docs")).unwrap();
        kept.write(&repository.root).unwrap();
        assert_eq!(Kept::read(&repository.root).unwrap().levels.len(), 1);
        let text = kept.text().unwrap();
        let level = text.split_once("\"unit\"").unwrap().1;
        let level = format!("\"unit\"{}", level.rsplit_once("\n  }\n}").unwrap().0);
        for changed in [
            text.replace(&level, &format!("{level},\n    {level}")),
            text.replace("\"cases\": 7", "\"cases\": 7,\n      \"skipped\": 7"),
            text.replace("  ", " "),
        ] {
            assert_ne!(changed, text);
            std::fs::write(repository.root.join(FILE), &changed).unwrap();
            let told = Kept::read(&repository.root).unwrap_err();
            assert!(told.contains("by hand"), "{changed}: {told}");
        }
    }
}
