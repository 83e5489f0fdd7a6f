//! Examples of violations; all are counted, and the worst are kept.

use std::cmp::Reverse;
use std::fmt;

use serde::Serialize;

use crate::event::AttemptId;

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Offence {
    /// Name of the lock.
    pub lock: String,
    /// When, in nanoseconds on the clock of the history.
    pub at_ns: u64,
    /// How long it lasted, in nanoseconds; 0 if it has no length.
    pub length_ns: u64,
    /// The attempt that suffered it, or did it.
    pub first: AttemptId,
    /// The other one, if two are involved.
    pub second: Option<AttemptId>,
    /// Facts that the numbers do not show.
    pub note: String,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} at {} ns for {} ns: {}",
            self.lock, self.at_ns, self.length_ns, self.first
        )?;
        if let Some(second) = self.second {
            write!(f, ", {second}")?;
        }
        if !self.note.is_empty() {
            write!(f, ": {}", self.note)?;
        }
        Ok(())
    }
}

/// Keeps the longest offences, up to a limit, in little memory.
#[derive(Debug)]
pub(super) struct Worst {
    limit: usize,
    kept: Vec<Offence>,
}

impl Worst {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, offence: Offence) {
        if self.limit == 0 {
            return;
        }
        self.kept.push(offence);
        // Only now and then, so that each addition is cheap on average.
        if self.kept.len() >= self.limit.saturating_mul(4).max(64) {
            self.cut();
        }
    }

    /// The longest first; the earliest first among those of one length.
    pub(super) fn into_list(mut self) -> Vec<Offence> {
        self.cut();
        self.kept
    }

    fn cut(&mut self) {
        self.kept
            .sort_by_key(|offence| (Reverse(offence.length_ns), offence.at_ns));
        self.kept.truncate(self.limit);
    }
}
