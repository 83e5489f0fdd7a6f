//! The cost of a round for the servers, and whether its locks excluded each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Work of the servers during one round, as differences of their own counters.
///
/// Totals are stored, and the value per acquisition is derived, so that a reader may choose the
/// divisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerCost {
    /// Commands that clients sent, without those of the harness itself.
    pub commands: u64,
    /// The same, including the commands that scripts called, so that a script cannot hide its work.
    pub commands_with_scripts: Option<u64>,
    /// CPU time of all server processes, user and system.
    pub cpu_ns: Option<u64>,
    /// How long scripts kept the server busy, by its own account; with several servers, the busiest
    /// one. Absent where its statistics could not be reset for the round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<ScriptTimes>,
    /// Calls by command name, from `INFO commandstats`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_command: BTreeMap<String, u64>,
}

/// Time of single scripts inside a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptTimes {
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
}

/// The cost of a round for the processes that locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCost {
    /// CPU time of all of them, including the harness's own bookkeeping.
    pub cpu_ns: u64,
    /// The memory of held locks or waiters there; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Occupied>,
}

/// Memory that many things of one kind occupy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Occupied {
    /// Growth of the resident set while they arrived.
    pub bytes: u64,
    /// How many arrived.
    pub by: u64,
}

/// Result of replaying recorded holds; see [`crate::measure::record::check_overlaps`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverlapCheck {
    /// Holds that were replayed.
    pub holds_checked: u64,
    /// Holds that began while the permitted number of others was still in force.
    pub overlaps: u64,
    /// Longest time during which more holders were active than permitted.
    pub longest_overlap_ns: u64,
}
