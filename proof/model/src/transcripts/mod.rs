//! Short sequences of calls of the shipped scripts with their results, as recorded in
//! `tests/transcripts`.
//!
//! `--test transcripts` plays them. They are in the library so that mutants can run against them
//! without a process for each.

pub mod course;
pub mod play;

use std::io;
use std::path::{Path, PathBuf};

/// Their folder.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// The text of each file, in the order of file names.
///
/// # Errors
///
/// If a file cannot be read.
pub fn texts() -> io::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder())?;
    let files: io::Result<Vec<_>> = entries.map(|entry| entry.map(|it| it.path())).collect();
    let mut files = files?;
    files.retain(|file| file.extension().is_some_and(|it| it == "txt"));
    files.sort();
    files.iter().map(std::fs::read_to_string).collect()
}
