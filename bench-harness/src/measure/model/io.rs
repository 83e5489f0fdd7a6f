//! Reads and writes the model as a file.

use std::path::Path;

use super::{Report, SCHEMA_VERSION};
use crate::shared::file::{self, FileError};

/// Reads a report from a file and checks it.
///
/// # Errors
///
/// [`FileError`], also if a histogram in it is damaged.
pub fn read(path: &Path) -> Result<Report, FileError> {
    read_str(&file::text(path)?, &path.display().to_string())
}

/// Reads a report from text; errors show `name` as the source.
///
/// # Errors
///
/// As [`read()`].
pub fn read_str(text: &str, name: &str) -> Result<Report, FileError> {
    let report: Report = file::stored(text, name, ("schema_version", SCHEMA_VERSION))?;
    check_histograms(&report).map_err(|problem| FileError::of(name, problem))?;
    Ok(report)
}

/// The report as indented JSON with a final newline.
#[must_use]
pub fn to_json(report: &Report) -> String {
    file::to_json(report)
}

fn check_histograms(report: &Report) -> Result<(), String> {
    for (cell_at, cell) in report.cells.iter().enumerate() {
        for (round_at, round) in cell.rounds.iter().enumerate() {
            let named = round.operations.iter();
            let named = named.map(|(name, stored)| (name.as_str(), stored));
            for (what, stored) in named.chain(round.ping.as_ref().map(|ping| ("ping", ping))) {
                stored.decode().map_err(|source| {
                    format!("cell {cell_at}, round {round_at}, {what}: {source}")
                })?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of the first release, as long as [`SCHEMA_VERSION`] is 1.
    #[test]
    fn stored_files_of_this_version_still_load() {
        let text = include_str!("../../../tests/data/report-v1.json");
        assert!(!read_str(text, "report-v1.json").unwrap().cells.is_empty());
    }
}
