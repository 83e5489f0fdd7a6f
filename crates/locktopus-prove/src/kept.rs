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
        serde_json::from_str(&text).map_err(|error| format!("{FILE}: {error}"))
    }

    /// Writes them.
    ///
    /// # Errors
    ///
    /// If it cannot.
    pub(crate) fn write(&self, root: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        let written = std::fs::write(root.join(FILE), text + "\n");
        written.map_err(|error| format!("{FILE}: {error}"))
    }
}
