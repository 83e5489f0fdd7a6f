//! Files that people pass: reports, plans, summaries, kept histories.

use std::fmt::Display;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {problem}")]
pub struct FileError {
    /// Which file or folder.
    pub name: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Why there is nothing to run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The plan cannot be read, or is bad.
    #[error("bad plan {0}")]
    File(#[from] FileError),
    /// The flags select nothing from it.
    #[error("nothing to do: no cell of the plan passes the flags given; --list shows all cells")]
    Nothing,
}

impl FileError {
    /// The error about a file at this path.
    pub(crate) fn at(path: &Path, problem: impl Display) -> Self {
        Self::of(&path.display().to_string(), problem)
    }

    /// The error about a file of this name.
    pub(crate) fn of(name: &str, problem: impl Display) -> Self {
        Self {
            name: name.to_owned(),
            problem: problem.to_string(),
        }
    }
}

/// The text of a file.
pub(crate) fn text(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).map_err(|error| FileError::at(path, error))
}

/// A stored report, once `field` shows that this program knows its version.
pub(crate) fn stored<T: DeserializeOwned>(
    text: &str,
    name: &str,
    (field, known): (&str, u32),
) -> Result<T, FileError> {
    let bad = |problem: String| FileError::of(name, problem);
    let wrong = |error| {
        bad(format!(
            "not a report with a {field}: {error}; pass the .json file that a run wrote"
        ))
    };
    let any: serde_json::Value = serde_json::from_str(text).map_err(wrong)?;
    match any.get(field).and_then(serde_json::Value::as_u64) {
        Some(found) if found != u64::from(known) => Err(bad(format!(
            "{field} {found}, this program reads {known}; use the one that wrote it"
        ))),
        _ => serde_json::from_str(text).map_err(wrong),
    }
}

/// A report as indented JSON with a final newline.
pub(crate) fn to_json(report: &impl Serialize) -> String {
    // The models have only string keys and no serialiser that fails; the first reader would notice
    // an empty document.
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_and_other_files_are_refused_by_name() {
        let read = |text| stored::<Vec<u32>>(text, "x.json", ("version", 3)).unwrap_err();
        for (text, problem) in [
            (
                r#"{"version": 99, "new": true}"#,
                "x.json: version 99, this program reads 3",
            ),
            (r#"{"version": 3}"#, "x.json: not a report with a version"),
            ("nothing", "x.json: not a report"),
        ] {
            let error = read(text).to_string();
            assert!(error.starts_with(problem), "{error}");
        }
    }
}
