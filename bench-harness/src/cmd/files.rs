//! Writing results, with errors that name the file.

use std::path::Path;

use super::CommandError;

/// Writes a file, replacing an existing one.
pub(super) fn save(path: &Path, text: &str) -> Result<(), CommandError> {
    std::fs::write(path, text).map_err(|source| failed(path, source))
}

/// Creates a directory and its parents.
pub(super) fn create(directory: &Path) -> Result<(), CommandError> {
    std::fs::create_dir_all(directory).map_err(|source| failed(directory, source))
}

fn failed(path: &Path, source: std::io::Error) -> CommandError {
    CommandError::Write {
        path: path.to_owned(),
        source,
    }
}
