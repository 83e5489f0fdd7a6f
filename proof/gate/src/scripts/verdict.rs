//! What became of a mutant.

use serde::{Deserialize, Serialize};

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A test noticed.
    Noticed {
        /// Which one.
        level: String,
        /// What it said.
        how: String,
    },
    /// No transcript did. What other tests say is not known yet.
    Unseen,
    /// No test did.
    Survives,
}
