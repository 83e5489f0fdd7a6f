//! One measured combination: the lock, the library, and the servers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Pacing, Round};
use crate::shared::names::names;

/// One combination of scenario, client, topology and load, with all its rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The measured combination.
    pub subject: Subject,
    /// The repetitions, in the order they were executed.
    pub rounds: Vec<Round>,
}

/// The subject of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// Workload, such as `hot-lock`, `uncontended`, `many-locks`.
    pub scenario: String,
    /// Whose locking ran: `locktopus`, a reference such as `R1`, or a peer library.
    pub strategy: String,
    /// Client library, such as `redis-rs`; `memory` without a server.
    pub client: String,
    /// The arrangement of the servers.
    pub topology: Topology,
    /// Servers the topology consists of; 0 without a server.
    pub nodes: u32,
    /// How the servers were started.
    pub provider: Provider,
    /// Product and version of the servers; absent without a server.
    pub server: Option<Server>,
    /// Kind of lock, such as `mutex`, `rw-write`, `semaphore`.
    pub lock_kind: String,
    /// Workers that asked for locks at the same time, over all processes.
    pub workers: u32,
    /// Processes the workers were spread over.
    pub processes: u32,
    /// Distinct locks the workers chose from.
    pub locks: u32,
    /// The pacing of the workers, which decides what their latencies mean.
    pub pacing: Pacing,
    /// How long each holder kept the lock before it released it.
    pub hold_ns: u64,
    /// Whether a proxy (fault injection, a port map in user space) sat between client and server.
    /// Such latencies are never shown beside direct ones.
    pub through_proxy: bool,
    /// Further settings that tell this cell from others, such as `safety = wait-1`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

impl Subject {
    /// The subject in one line, without the usual values.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut words = format!(
            "{} {} {} {} {} W {} P {}",
            self.scenario,
            self.strategy,
            self.client,
            self.topology.name(),
            self.lock_kind,
            self.workers,
            self.processes,
        );
        if self.topology == Topology::Quorum {
            words.push_str(&format!(" nodes {}", self.nodes));
        }
        if self.locks > 1 {
            words.push_str(&format!(" locks {}", self.locks));
        }
        if self.hold_ns > 0 {
            let hold = Duration::from_nanos(self.hold_ns);
            words.push_str(&format!(" hold {}", humantime::format_duration(hold)));
        }
        if self.pacing.is_corrected() {
            words.push_str(&format!(" {}", self.pacing.describe()));
        }
        for (key, value) in &self.options {
            words.push_str(&format!(" {key} {value}"));
        }
        words
    }
}

/// The arrangement of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// No server: the lock lives in the memory of the process.
    InProcess,
    /// One server.
    Standalone,
    /// One primary with replicas, without automatic failover.
    Replicated,
    /// A primary and replicas watched by sentinels.
    Sentinel,
    /// A sharded cluster.
    Cluster,
    /// Independent servers; a majority has to grant.
    Quorum,
}

/// How servers were started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// No server at all.
    Memory,
    /// Processes on the loopback interface.
    Plain,
    /// A container engine.
    Container,
    /// Servers that were running already, reached by URL.
    External,
}

/// Product and version of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Product, such as `redis` or `valkey`.
    pub flavour: String,
    /// Version as the server reports it.
    pub version: String,
}

names! {
    Topology: InProcess = "in-process", Standalone = "standalone", Replicated = "replicated", Sentinel = "sentinel",
        Cluster = "cluster", Quorum = "quorum";
    Provider: Memory = "memory", Plain = "plain", Container = "container", External = "external";
}
