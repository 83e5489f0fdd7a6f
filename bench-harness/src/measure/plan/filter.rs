//! The flags that narrow or change what a scenario file says.

use std::time::Duration;

use super::{Client, Kind, Scenario, Strategy, Task};
use crate::measure::model::Topology;

/// What flags keep of a file, and what they change.
#[derive(Clone, Debug, Default)]
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
    /// These kinds instead.
    pub kinds: Vec<Kind>,
    /// These numbers of workers instead, where a scenario has several.
    pub workers: Vec<u32>,
    /// This number of processes instead, where a scenario has several.
    pub processes: Option<u32>,
    /// This number of locks instead, in the renewal scenario.
    pub locks: Option<u32>,
    /// This hold time instead.
    pub hold: Option<Duration>,
    /// This duration instead.
    pub duration: Option<Duration>,
    /// This warm-up of strategies in Java instead.
    pub warm_up: Option<Duration>,
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
            // The embedded backend has no topology to be left out.
            && (task.topology == Topology::InProcess || passes(&self.topologies, &task.topology))
    }
}
