//! A stretch of a cell, to draw.

use serde::{Deserialize, Serialize};

/// The events around one fault on one deployment. Times are nanoseconds from its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// How long it is.
    pub span_ns: u64,
    /// Names of the locks, without their common prefix.
    pub locks: Vec<String>,
    /// Worker processes.
    pub processes: Vec<String>,
    /// Grants, in the order of their arrival.
    pub grants: Vec<Grant>,
    /// Faults and their consequences.
    pub marks: Vec<Mark>,
}

/// A grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Which lock.
    pub lock: usize,
    /// The process that got it.
    pub process: usize,
    /// When the process received it.
    pub from_ns: u64,
    /// Until when the holder used it.
    pub used_until_ns: u64,
    /// Until when the holder believed in it.
    pub valid_until_ns: u64,
    /// Whether it began while another holder believed.
    pub double: bool,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// When.
    pub at_ns: u64,
    /// The event, in words.
    pub what: String,
    /// The server or process concerned.
    pub target: String,
    /// Whether it was a fault rather than a consequence of one.
    pub fault: bool,
}
