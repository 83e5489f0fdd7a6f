//! What became of a mutant.

use serde::{Deserialize, Serialize};

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A test noticed.
    Killed {
        /// Which one.
        level: String,
        /// What it said.
        how: String,
    },
    /// None did, though a call has another answer, or leaves something else on the server.
    Observable {
        /// The first difference.
        how: String,
    },
    /// No transcript did. What other tests say is not known yet.
    Unseen,
    /// None of the first round did. What the second says is not known yet.
    Unnoticed,
    /// Nothing that was looked at was different.
    Alike,
    /// None did, and none of the random calls is of a script that is changed.
    NotCalled,
}

impl Verdict {
    /// Whether this is the last word.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Unseen | Self::Unnoticed)
    }

    /// Whether no test noticed.
    #[must_use]
    pub fn survived(&self) -> bool {
        !matches!(self, Self::Killed { .. })
    }
}
