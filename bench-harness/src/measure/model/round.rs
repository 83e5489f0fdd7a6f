//! One repetition of a cell.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::shared::stall::MachineStall;

use super::{ClientCost, OverlapCheck, ServerCost, StoredHistogram};

/// One repetition of a cell: the raw results behind every figure of a report. Files of earlier
/// builds have a field more, which is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Number of the round within the run, from 0. Cells of one round were measured together.
    pub index: u32,
    /// Position of this cell within its round, from 0; the order is reversed in every other round,
    /// to expose drift.
    pub position: u32,
    /// Length of the measured part, without warm-up.
    pub duration_ns: u64,
    /// Round trips of PING over the same client and connection; their median is the RTT.
    pub ping: Option<StoredHistogram>,
    /// Latencies by operation name; see [`super::op`].
    pub operations: BTreeMap<String, StoredHistogram>,
    /// Grants within the measured part.
    pub acquisitions: u64,
    /// Grants by worker, in the order of worker numbers; a starved worker is a 0.
    pub acquisitions_per_worker: Vec<u64>,
    /// Failed operations by kind, such as `timeout` or `lost`.
    pub errors: BTreeMap<String, u64>,
    /// Work of the servers; absent without a server or without permission to ask.
    pub server_cost: Option<ServerCost>,
    /// Work of the processes that locked; absent where they did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cost: Option<ClientCost>,
    /// Stalls of the machine meanwhile; absent in files that are older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineStall>,
    /// Whether holds overlapped; absent where they may overlap or were not recorded.
    pub overlap_check: Option<OverlapCheck>,
}
