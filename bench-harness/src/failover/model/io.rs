//! Reads and writes the model as a file.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{FailoverReport, SCHEMA_VERSION};

/// Why a stored report could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The text is not such a report.
    #[error(
        "{path}: not a failover report: {source}; pass the .json file that `failover` wrote",
        path = .path.display()
    )]
    Parse {
        /// The file.
        path: PathBuf,
        /// The place and cause of the parse error.
        source: serde_json::Error,
    },
    /// A different version of the harness wrote the report.
    #[error(
        "{path}: failover schema version {found}, this binary reads {SCHEMA_VERSION}; \
         use the harness that wrote it",
        path = .path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
    },
}

/// Just enough to see the version before the rest is trusted.
#[derive(Deserialize)]
struct Versioned {
    failover_schema_version: u32,
}

/// Reads a report from a file.
///
/// # Errors
///
/// [`ReadError`].
pub fn read(path: &Path) -> Result<FailoverReport, ReadError> {
    let path = path.to_owned();
    let text = std::fs::read_to_string(&path).map_err(|source| ReadError::Io {
        path: path.clone(),
        source,
    })?;
    let parse = |source| ReadError::Parse {
        path: path.clone(),
        source,
    };
    let Versioned {
        failover_schema_version: found,
    } = serde_json::from_str(&text).map_err(parse)?;
    if found != SCHEMA_VERSION {
        return Err(ReadError::Version { path, found });
    }
    serde_json::from_str(&text).map_err(parse)
}

/// The report as indented JSON with a final newline.
#[must_use]
pub fn to_json(report: &FailoverReport) -> String {
    // The model has only string keys and no serialiser that fails; the first reader would notice an
    // empty document.
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}
