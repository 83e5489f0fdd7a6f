//! Short sequences of calls of the shipped scripts, and what came of each, as they are written down
//! in `tests/transcripts`.
//!
//! `--test transcripts` plays them. They are here so that mutants can be shown to them without a
//! process for each.

pub mod course;
pub mod play;

use std::io;
use std::path::{Path, PathBuf};

/// Where they are.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// The text of every file, in the order of their names.
///
/// # Errors
///
/// If one cannot be read.
pub fn texts() -> io::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder())?;
    let files: io::Result<Vec<_>> = entries.map(|entry| entry.map(|it| it.path())).collect();
    let mut files = files?;
    files.retain(|file| file.extension().is_some_and(|it| it == "txt"));
    files.sort();
    files.iter().map(std::fs::read_to_string).collect()
}
