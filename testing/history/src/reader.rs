//! Reads the files of all workers as one history.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::event::Record;

/// Why a history could not be read at all.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the history {path}: {source}")]
#[non_exhaustive]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    pub source: std::io::Error,
}

/// A line that is not a record, or is out of order: one process writes one file, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}, line {line}: {what}", path.display())]
#[non_exhaustive]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Number of the line, starting at 1.
    pub line: usize,
    /// Whether it is the end of a file whose writer was killed while writing. That is no fault of
    /// the history.
    pub torn: bool,
    /// What is wrong with the line.
    pub what: String,
}

/// Records of all workers, in the order of their recording.
#[derive(Clone, Debug, Default)]
pub struct History {
    records: Vec<Record>,
    damage: Vec<Damage>,
}

impl History {
    /// Reads and merges the files of all processes.
    ///
    /// Lines that are not records are left out, and listed by [`damage`](Self::damage).
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn read(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, ReadError> {
        let mut records = Vec::new();
        let mut damage = Vec::new();
        for path in paths {
            let path = path.as_ref();
            let bytes = fs::read(path).map_err(|source| ReadError {
                path: path.to_owned(),
                source,
            })?;
            parse(path, &bytes, &mut records, &mut damage);
        }
        let mut history = Self::from_records(records);
        history.damage = damage;
        Ok(history)
    }

    /// Makes a history from records in any order. Those of one instant keep their order.
    #[must_use]
    pub fn from_records(mut records: Vec<Record>) -> Self {
        records.sort_by_key(|record| record.at);
        Self {
            records,
            damage: Vec::new(),
        }
    }

    /// The records, earliest first, for example to draw a timeline.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Lines that are not records.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }
}

fn parse(path: &Path, bytes: &[u8], records: &mut Vec<Record>, damage: &mut Vec<Damage>) {
    let mut latest = 0;
    let mut note = |index, torn, what| {
        damage.push(Damage {
            path: path.to_owned(),
            line: index + 1,
            torn,
            what,
        });
    };
    let mut lines = bytes.split(|&byte| byte == b'\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        // Only the end of the file may be empty.
        let last = lines.peek().is_none();
        if line.is_empty() && last {
            continue;
        }
        match serde_json::from_slice::<Record>(line) {
            Ok(record) => {
                if record.at < latest {
                    let what = format!("{} ns, after {latest} ns", record.at);
                    note(index, false, what);
                }
                latest = record.at;
                records.push(record);
            }
            Err(error) => note(index, last, error.to_string()),
        }
    }
}
