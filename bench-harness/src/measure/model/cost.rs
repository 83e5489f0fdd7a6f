//! What a round cost the server, and whether its locks excluded each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Work the servers did during one round, as differences of their own counters.
///
/// Totals are stored; "per acquisition" is derived, so that a reader may choose the divisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ServerCost {
    /// Commands that clients sent, without those the harness itself sent to look.
    pub commands: u64,
    /// The same with the commands that scripts called; a script that does much is not hidden.
    pub commands_with_scripts: Option<u64>,
    /// Processor time of all server processes, user and system.
    pub cpu_ns: Option<u64>,
    /// How long scripts kept a server busy, as it says itself; of the busiest server if there are
    /// several. Absent where its statistics could not be started afresh for the round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<ScriptTimes>,
    /// Calls by command name, from `INFO commandstats`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_command: BTreeMap<String, u64>,
}

/// Time that single scripts took inside a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScriptTimes {
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
}

/// What a round cost the processes that locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClientCost {
    /// Processor time of all of them, the harness's own bookkeeping included.
    pub cpu_ns: u64,
    /// What held locks or waiters occupy in their memory; absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Occupied>,
}

/// Memory that many things of one kind occupy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Occupied {
    /// Growth of the resident set while they came.
    pub bytes: u64,
    /// How many came.
    pub by: u64,
}

/// Result of replaying recorded holds; see [`crate::measure::record::check_overlaps`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OverlapCheck {
    /// Holds that were replayed.
    pub holds_checked: u64,
    /// Holds that began while as many others as permitted were still in force.
    pub overlaps: u64,
    /// Longest time during which more holders were active than permitted.
    pub longest_overlap_ns: u64,
}
