//! The flags that narrow or change a scenario file.

use std::time::Duration;

use super::{Client, Kind, Scenario, Strategy, Task};
use crate::measure::model::Topology;

/// How flags select from a file and change it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these groups of cells.
    pub groups: Vec<String>,
    /// Only these scenarios.
    pub scenarios: Vec<Scenario>,
    /// Only these strategies.
    pub strategies: Vec<Strategy>,
    /// Only these clients.
    pub clients: Vec<Client>,
    /// Only these topologies.
    pub topologies: Vec<Topology>,
    /// Replaces the kinds.
    pub kinds: Vec<Kind>,
    /// Replaces the numbers of workers, where a scenario has several.
    pub workers: Vec<u32>,
    /// Replaces the number of processes, where a scenario has several.
    pub processes: Option<u32>,
    /// Replaces the duration.
    pub duration: Option<Duration>,
}

impl Filter {
    /// Whether a task passes the flags that narrow.
    pub(super) fn keeps(&self, task: &Task) -> bool {
        fn passes<T: PartialEq>(wanted: &[T], value: &T) -> bool {
            wanted.is_empty() || wanted.contains(value)
        }
        let group = task.group.as_ref();
        (self.groups.is_empty() || group.is_some_and(|group| self.groups.contains(group)))
            && passes(&self.scenarios, &task.scenario)
            && passes(&self.strategies, &task.strategy)
            && passes(&self.clients, &task.client)
            // The in-memory backend has no topology to filter by.
            && (task.topology == Topology::InProcess || passes(&self.topologies, &task.topology))
    }
}
