//! A cell of a scenario file, and the tasks that its lists expand to.

use std::time::Duration;

use serde::Deserialize;

use super::{Client, Filter, Kind, Scenario, Strategy, Task};
use crate::measure::humantime_list;
use crate::measure::model::Topology;

/// Every combination of its lists is a task.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CellSpec {
    pub(super) scenario: Scenario,
    #[serde(default = "locktopus")]
    pub(super) strategies: Vec<Strategy>,
    #[serde(default = "both_clients")]
    pub(super) clients: Vec<Client>,
    #[serde(default = "three_topologies")]
    pub(super) topologies: Vec<Topology>,
    #[serde(default = "lock")]
    pub(super) kinds: Vec<Kind>,
    #[serde(default = "one_worker")]
    pub(super) workers: Vec<u32>,
    #[serde(default = "one")]
    pub(super) processes: u32,
    #[serde(default = "one")]
    pub(super) threads: u32,
    pub(super) nodes: Option<u32>,
    pub(super) turns: Option<u32>,
    #[serde(default, with = "humantime_serde")]
    pub(super) lease_cache: Duration,
    pub(super) safety: Option<String>,
    pub(super) locks: Option<u32>,
    #[serde(default, with = "humantime_list")]
    pub(super) round_trips: Vec<Duration>,
    pub(super) rounds: Option<u32>,
    #[serde(default, with = "humantime_serde")]
    pub(super) hold: Duration,
    #[serde(default = "one_second", with = "humantime_serde")]
    pub(super) duration: Duration,
    pub(super) arrivals_per_second: Option<u64>,
    #[serde(default = "three_seconds", with = "humantime_serde")]
    pub(super) lease: Duration,
    #[serde(default = "ten_seconds", with = "humantime_serde")]
    pub(super) warm_up: Duration,
    pub(super) group: Option<String>,
}

fn locktopus() -> Vec<Strategy> {
    vec![Strategy::Locktopus]
}
fn both_clients() -> Vec<Client> {
    vec![Client::RedisRs, Client::Fred]
}
fn three_topologies() -> Vec<Topology> {
    vec![Topology::Standalone, Topology::Sentinel, Topology::Cluster]
}
fn lock() -> Vec<Kind> {
    vec![Kind::Lock]
}
fn one_worker() -> Vec<u32> {
    vec![1]
}
fn one() -> u32 {
    1
}
fn one_second() -> Duration {
    Duration::from_secs(1)
}
fn three_seconds() -> Duration {
    Duration::from_secs(3)
}
/// A JVM needs this long to compile all the code of a lock.
fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}

impl CellSpec {
    /// The cell with the changes of the flags.
    pub(super) fn changed(&self, filter: &Filter) -> Self {
        let mut cell = self.clone();
        let many = matches!(
            cell.scenario,
            Scenario::ManyLocks | Scenario::HotLock | Scenario::WaitingMemory
        );
        if !filter.workers.is_empty() && many {
            cell.workers.clone_from(&filter.workers);
        }
        if let Some(processes) = filter
            .processes
            .filter(|_| cell.scenario == Scenario::HotLock)
        {
            cell.processes = processes;
        } else if let Some(&fewest) = cell.workers.iter().min() {
            cell.processes = cell.processes.min(fewest);
        }
        let other_kinds = cell.scenario != Scenario::ReadersWriters
            && !cell.topologies.contains(&Topology::Quorum);
        if !filter.kinds.is_empty() && other_kinds {
            cell.kinds.clone_from(&filter.kinds);
        }
        cell.duration = filter.duration.unwrap_or(cell.duration);
        cell
    }

    /// Adds the tasks of the cell.
    pub(super) fn expand(&self, tasks: &mut Vec<Task>) {
        for &client in &self.clients {
            let topologies: &[Topology] = match client {
                Client::Memory => &[Topology::InProcess],
                // Elsewhere it is the same as redis-rs.
                Client::RedisRsRouter if !self.topologies.contains(&Topology::Cluster) => &[],
                Client::RedisRsRouter => &[Topology::Cluster],
                Client::RedisRs | Client::Fred | Client::Redisson => &self.topologies,
            };
            for &topology in topologies {
                for &strategy in &self.strategies {
                    for &kind in self.kinds.iter().filter(|&&k| strategy.can(client, k)) {
                        for &workers in &self.workers {
                            let task = self.task(client, topology, strategy, kind, workers);
                            tasks.extend(self.at_distances(task));
                        }
                    }
                }
            }
        }
    }

    /// The task once for each distance to the servers; unchanged if the cell names none.
    fn at_distances(&self, task: Task) -> Vec<Task> {
        if self.round_trips.is_empty() {
            return vec![task];
        }
        let far = self.round_trips.iter().map(|&round_trip| Task {
            round_trip: Some(round_trip),
            ..task.clone()
        });
        far.collect()
    }

    fn task(
        &self,
        client: Client,
        topology: Topology,
        strategy: Strategy,
        kind: Kind,
        workers: u32,
    ) -> Task {
        let locks = match self.scenario {
            Scenario::Uncontended
            | Scenario::HotLock
            | Scenario::RemoteWaiter
            | Scenario::ReadersWriters => 1,
            Scenario::ManyLocks => workers,
            Scenario::WaitingMemory => self.locks.unwrap_or(1),
            Scenario::Renewal | Scenario::HeldMemory => self.locks.unwrap_or(1_000),
        };
        // Locks in memory cannot be shared between processes.
        let processes = if client == Client::Memory {
            1
        } else {
            self.processes
        };
        Task {
            scenario: self.scenario,
            strategy,
            client,
            topology,
            kind,
            workers,
            processes,
            threads: self.threads,
            nodes: self.nodes,
            turns: self.turns,
            lease_cache: self.lease_cache,
            safety: self.safety.clone(),
            locks,
            hold: self.hold,
            duration: self.duration,
            arrivals_per_second: self.arrivals_per_second,
            lease: self.lease,
            round_trip: None,
            rounds: self.rounds,
            warm_up: if strategy == Strategy::Redisson {
                self.warm_up
            } else {
                Duration::ZERO
            },
            group: self.group.clone(),
        }
    }
}
