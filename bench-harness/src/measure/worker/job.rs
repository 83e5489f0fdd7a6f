//! What parent and child say to each other.

use serde::{Deserialize, Serialize};

use crate::measure::model::{ClientCost, StoredHistogram};
use crate::measure::plan::{Client, Kind, Scenario, Strategy};
use crate::measure::record::WireRecorder;

/// What a child is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// What the workers do.
    pub scenario: Scenario,
    /// Whose way of locking.
    pub strategy: Strategy,
    /// Through which library.
    pub client: Client,
    /// Where.
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
    /// How often a lock is passed on inside it before it goes back; the library's default without.
    pub turns: Option<u32>,
    /// How long it keeps a lease that nobody wants after the release.
    pub lease_cache_ns: u64,
    /// Whether servers may grant nothing for a while after they were started.
    pub reluctant: bool,
    /// Whether its worker waits beside those of another process, whose waits are not the question.
    pub remote: bool,
    /// How many locks this process holds in the renewal scenario.
    pub locks: u32,
    /// How long to keep the lock.
    pub hold_ns: u64,
    /// How long to measure.
    pub duration_ns: u64,
    /// Step of the time series.
    pub interval_ns: u64,
    /// Arrivals per second for this process; closed loop without.
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

/// What a child says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Connected, pinged, ready to start.
    Ready,
    /// Finished, but for what is given back when the harness closes the conversation.
    Done {
        /// Everything that was recorded, times since the start.
        recorder: Box<WireRecorder>,
        /// Round trips of PING.
        ping: Option<StoredHistogram>,
        /// What this process spent, where it says so.
        #[serde(default)]
        cost: Option<ClientCost>,
    },
    /// Could not do it.
    Failed {
        /// Why.
        reason: String,
    },
}
