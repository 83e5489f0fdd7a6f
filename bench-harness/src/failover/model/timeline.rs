//! A stretch of a cell, to be drawn.

use serde::{Deserialize, Serialize};

/// What happened around one fault on one deployment. Times are nanoseconds since its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// How long it is.
    pub span_ns: u64,
    /// Names of the locks, without what they have in common.
    pub locks: Vec<String>,
    /// Worker processes.
    pub processes: Vec<String>,
    /// Grants, in the order in which they came.
    pub grants: Vec<Grant>,
    /// Faults and what followed.
    pub marks: Vec<Mark>,
}

/// A grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Which lock.
    pub lock: usize,
    /// To which process.
    pub process: usize,
    /// When it was received.
    pub from_ns: u64,
    /// Until when its holder used it.
    pub used_until_ns: u64,
    /// Until when its holder believed in it.
    pub valid_until_ns: u64,
    /// Whether it began while another holder believed.
    pub double: bool,
}

/// Something that was done, or was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// When.
    pub at_ns: u64,
    /// What.
    pub what: String,
    /// To whom.
    pub target: String,
    /// Whether it was a fault, rather than what followed from it.
    pub fault: bool,
}
