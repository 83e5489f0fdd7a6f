//! Files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Done;
use crate::shell::Shell;

/// The files below a folder whose names end like this, sorted.
pub(crate) fn below(folder: &Path, end: &str) -> Done<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if entry.file_name().to_string_lossy().ends_with(end) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The `src` folders of all crates except examples.
pub(crate) fn source_folders(sh: &Shell) -> Done<Vec<PathBuf>> {
    let mut found = vec![sh.root.join("bench-harness/src"), sh.root.join("scripts/xtask/src")];
    for parent in ["crates", "testing", "proof"] {
        for entry in fs::read_dir(sh.root.join(parent))? {
            found.push(entry?.path().join("src"));
        }
    }
    found.retain(|folder| folder.is_dir());
    found.sort();
    Ok(found)
}

/// A path for messages: relative to the top of the repository.
pub(crate) fn shown<'a>(sh: &Shell, file: &'a Path) -> std::path::Display<'a> {
    file.strip_prefix(&sh.root).unwrap_or(file).display()
}

/// The lines of a source before its unit tests: up to `#[cfg(test)]` followed by `mod`.
pub(crate) fn without_tests(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
        let after =
            lines.last().is_some_and(|last: &&str| last.trim_start().starts_with("#[cfg(test)]"));
        if after && words.next() == Some("mod") {
            lines.pop();
            break;
        }
        lines.push(line);
    }
    lines
}
