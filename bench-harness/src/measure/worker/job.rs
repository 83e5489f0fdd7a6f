//! The messages between parent and child.

use serde::{Deserialize, Serialize};

use crate::measure::model::{ClientCost, StoredHistogram};
use crate::measure::plan::{Client, Kind, Scenario, Strategy};
use crate::measure::record::WireRecorder;

/// The job of a child.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The workload.
    pub scenario: Scenario,
    /// The library or reference that does the locking.
    pub strategy: Strategy,
    /// The client library.
    pub client: Client,
    /// The server.
    pub url: String,
    /// The other servers of a quorum.
    pub more_urls: Vec<String>,
    /// Kind of lock.
    pub kind: Kind,
    /// Unique start of every lock name of this round.
    pub prefix: String,
    /// Number of this process's first worker.
    pub first_worker: u32,
    /// How many workers this process has.
    pub workers: u32,
    /// Threads of its runtime.
    pub threads: u32,
    /// How often a lock is passed on inside the process before it returns to the server; the
    /// library's default if `None`.
    pub turns: Option<u32>,
    /// How long it keeps an unwanted lease after the release.
    pub lease_cache_ns: u64,
    /// Whether servers may grant nothing for a while after they were started.
    pub reluctant: bool,
    /// Whether its worker competes with those of another process, whose waits are not of interest.
    pub remote: bool,
    /// How many locks this process holds in the renewal scenario.
    pub locks: u32,
    /// How long to keep the lock.
    pub hold_ns: u64,
    /// How long to measure.
    pub duration_ns: u64,
    /// Arrivals per second for this process; `None` for a closed loop.
    pub arrivals_per_second: Option<u64>,
    /// Lease of locks that are held throughout.
    pub lease_ms: u64,
    /// How many round trips of PING to time before the start.
    pub pings: u32,
    /// Core to run on.
    pub core: Option<u32>,
    /// How long to run the workload before it counts; for workers in Java.
    pub warm_up_ns: u64,
}

/// The starting signal.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Start {
    /// When to start, on the machine's monotonic clock.
    pub at_ns: u64,
}

/// A child's message.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Connected, pinged, ready to start.
    Ready,
    /// Finished, except for the locks that it releases when the harness closes the conversation.
    Done {
        /// All records, with times since the start.
        recorder: Box<WireRecorder>,
        /// Round trips of PING.
        ping: Option<StoredHistogram>,
        /// The cost for this process, if it reports one.
        #[serde(default)]
        cost: Option<ClientCost>,
    },
    /// Could not do it.
    Failed {
        /// Why.
        reason: String,
    },
}
