//! The verdict on a mutant.

use serde::{Deserialize, Serialize};

/// The verdict on a mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A test noticed.
    Noticed {
        /// The level of that test.
        level: String,
        /// Its output.
        how: String,
    },
    /// No transcript noticed. The other tests have not run yet.
    Unseen,
    /// No test noticed.
    Survives,
}
