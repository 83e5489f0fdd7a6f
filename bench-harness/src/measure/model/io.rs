//! Reads and writes the model as a file.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{HistogramError, Report, SCHEMA_VERSION};

/// Why a stored report could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read or written.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The text is not a report.
    #[error("{name}: not a locktopus-bench report: {source}; pass the .json file that `run` wrote")]
    Parse {
        /// The file.
        name: String,
        /// The place and cause of the parse error.
        source: serde_json::Error,
    },
    /// A different version of the harness wrote the report.
    #[error(
        "{name}: schema version {found}, this binary reads {SCHEMA_VERSION}; \
         render it with the harness that wrote it"
    )]
    Version {
        /// The file.
        name: String,
        /// Version found in it.
        found: u32,
    },
    /// A histogram inside is damaged.
    #[error("{name}: cell {cell}, round {round}, {what}: {source}")]
    Histogram {
        /// The file.
        name: String,
        /// Index of the cell.
        cell: usize,
        /// Index of the round.
        round: usize,
        /// Operation name, or `ping`.
        what: String,
        /// What is wrong with it.
        source: HistogramError,
    },
}

/// Just enough of a report to see its version before the rest is trusted.
#[derive(Deserialize)]
struct Versioned {
    schema_version: u32,
}

/// Reads a report from a file and checks it.
///
/// # Errors
///
/// Any [`LoadError`].
pub fn read(path: &Path) -> Result<Report, LoadError> {
    let text = std::fs::read_to_string(path).map_err(|source| LoadError::Io {
        path: path.to_owned(),
        source,
    })?;
    read_str(&text, &path.display().to_string())
}

/// Reads a report from text; errors show `name` as the source.
///
/// # Errors
///
/// Any [`LoadError`] except `Io`.
pub fn read_str(text: &str, name: &str) -> Result<Report, LoadError> {
    let parse = |source| LoadError::Parse {
        name: name.to_owned(),
        source,
    };
    let Versioned {
        schema_version: found,
    } = serde_json::from_str(text).map_err(parse)?;
    if found != SCHEMA_VERSION {
        return Err(LoadError::Version {
            name: name.to_owned(),
            found,
        });
    }
    let report: Report = serde_json::from_str(text).map_err(parse)?;
    check_histograms(&report, name)?;
    Ok(report)
}

/// The report as indented JSON with a final newline.
#[must_use]
pub fn to_json(report: &Report) -> String {
    // The model has only string keys and no custom serialiser, so this cannot fail; the first
    // reader would notice an empty document.
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}

/// Writes the report as JSON.
///
/// # Errors
///
/// [`LoadError::Io`] when the file cannot be written.
pub fn write(report: &Report, path: &Path) -> Result<(), LoadError> {
    std::fs::write(path, to_json(report)).map_err(|source| LoadError::Io {
        path: path.to_owned(),
        source,
    })
}

fn check_histograms(report: &Report, name: &str) -> Result<(), LoadError> {
    for (cell_at, cell) in report.cells.iter().enumerate() {
        for (round_at, round) in cell.rounds.iter().enumerate() {
            let named = round
                .operations
                .iter()
                .map(|(name, stored)| (name.as_str(), stored));
            for (what, stored) in named.chain(round.ping.as_ref().map(|ping| ("ping", ping))) {
                stored.decode().map_err(|source| LoadError::Histogram {
                    name: name.to_owned(),
                    cell: cell_at,
                    round: round_at,
                    what: what.to_owned(),
                    source,
                })?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_are_refused_before_anything_else_is_parsed() {
        let error = read_str(r#"{"schema_version": 99, "new": true}"#, "x.json").unwrap_err();
        assert!(
            matches!(error, LoadError::Version { found: 99, .. }),
            "{error}"
        );
    }

    #[test]
    fn other_files_are_named() {
        let error = read_str("[]", "x.json").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("x.json: not a locktopus-bench report"),
            "{error}"
        );
    }
}
