//! Scenario files, and the flags that narrow or change what they say.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::{Client, Kind, Scenario, Strategy, Task};
use crate::model::Topology;

/// A scenario file: cells, each standing for every combination of its lists.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// How often everything is repeated.
    pub rounds: u32,
    cell: Vec<CellSpec>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CellSpec {
    scenario: Scenario,
    #[serde(default = "locktopus")]
    strategies: Vec<Strategy>,
    #[serde(default = "both_clients")]
    clients: Vec<Client>,
    #[serde(default = "three_topologies")]
    topologies: Vec<Topology>,
    #[serde(default = "lock")]
    kinds: Vec<Kind>,
    #[serde(default = "one_worker")]
    workers: Vec<u32>,
    #[serde(default = "one")]
    processes: u32,
    locks: Option<u32>,
    #[serde(default, with = "humantime_serde")]
    hold: Duration,
    #[serde(default = "one_second", with = "humantime_serde")]
    duration: Duration,
    arrivals_per_second: Option<u64>,
    #[serde(default = "three_seconds", with = "humantime_serde")]
    lease: Duration,
    #[serde(default = "ten_seconds", with = "humantime_serde")]
    warm_up: Duration,
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
/// What Java needs to compile the whole way of a lock.
fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}

/// What flags keep of a file, and what they change.
#[derive(Clone, Debug, Default)]
pub struct Filter {
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

/// Why there is nothing to measure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The scenario file cannot be read.
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The scenario file is not what it should be.
    #[error("bad scenario file {name}: {problem}")]
    Bad {
        /// Which file.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The flags leave nothing of the file.
    #[error("nothing to measure: no cell of the scenario file passes the flags given")]
    Nothing,
}

impl ScenarioFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// [`PlanError::Read`] and [`PlanError::Bad`].
    pub fn load(path: &Path) -> Result<Self, PlanError> {
        let text = std::fs::read_to_string(path).map_err(|source| PlanError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Checks the text of a file.
    ///
    /// # Errors
    ///
    /// [`PlanError::Bad`].
    pub fn parse(text: &str, name: &str) -> Result<Self, PlanError> {
        let bad = |problem: String| PlanError::Bad {
            name: name.to_owned(),
            problem,
        };
        let file: Self = toml::from_str(text).map_err(|error| bad(error.to_string()))?;
        if file.rounds == 0 {
            return Err(bad("rounds must be at least 1".to_owned()));
        }
        for cell in &file.cell {
            cell.check()
                .and_then(|()| cell.check_strategies())
                .map_err(|problem| bad(format!("[{}] {problem}", cell.scenario.name())))?;
        }
        Ok(file)
    }

    /// The tasks that are left after the flags, grouped by topology in the order of the file.
    ///
    /// # Errors
    ///
    /// [`PlanError::Nothing`], and [`PlanError::Bad`] if flags make a cell impossible.
    pub fn tasks(&self, filter: &Filter) -> Result<Vec<Task>, PlanError> {
        let mut tasks = Vec::new();
        for cell in &self.cell {
            let cell = cell.changed(filter);
            cell.check().map_err(|problem| PlanError::Bad {
                name: "after applying the flags".to_owned(),
                problem: format!("[{}] {problem}", cell.scenario.name()),
            })?;
            cell.expand(&mut tasks);
        }
        tasks.retain(|task| filter.keeps(task));
        let mut seen: Vec<Task> = Vec::new();
        tasks.retain(|task| {
            !seen.contains(task) && {
                seen.push(task.clone());
                true
            }
        });
        if tasks.is_empty() {
            Err(PlanError::Nothing)
        } else {
            Ok(tasks)
        }
    }
}

impl Filter {
    fn keeps(&self, task: &Task) -> bool {
        fn passes<T: PartialEq>(wanted: &[T], value: &T) -> bool {
            wanted.is_empty() || wanted.contains(value)
        }
        passes(&self.scenarios, &task.scenario)
            && passes(&self.strategies, &task.strategy)
            && passes(&self.clients, &task.client)
            // The embedded backend has no topology to be left out.
            && (task.topology == Topology::InProcess || passes(&self.topologies, &task.topology))
    }
}

impl CellSpec {
    fn check(&self) -> Result<(), String> {
        let lists_full =
            !(self.strategies.is_empty() || self.clients.is_empty() || self.kinds.is_empty());
        if !lists_full || self.workers.is_empty() || self.workers.contains(&0) {
            return Err("strategies, clients, kinds and workers must each have a value".to_owned());
        }
        if self.processes == 0 || self.workers.iter().any(|&workers| workers < self.processes) {
            return Err("there must be at least one process, and a worker for each".to_owned());
        }
        if self.scenario == Scenario::Uncontended
            && self.workers.iter().any(|&workers| workers != 1)
        {
            return Err("uncontended means one worker".to_owned());
        }
        if self.duration.is_zero() {
            return Err("duration must be longer than zero".to_owned());
        }
        if self.topologies.iter().any(|t| {
            !matches!(
                t,
                Topology::Standalone | Topology::Sentinel | Topology::Cluster
            )
        }) {
            return Err("topologies are standalone, sentinel and cluster".to_owned());
        }
        if self.scenario == Scenario::Renewal && self.duration < self.lease * 2 / 3 {
            return Err(
                "renewal needs a duration of two renewal periods, that is two thirds of the lease"
                    .to_owned(),
            );
        }
        if self.arrivals_per_second == Some(0) {
            return Err("arrivals_per_second must be at least 1".to_owned());
        }
        Ok(())
    }

    /// Flags may leave a strategy without a kind it knows, which then is not measured; a file may not.
    fn check_strategies(&self) -> Result<(), String> {
        for &strategy in &self.strategies {
            let possible = self.clients.iter().any(|&client| {
                let mut kinds = self.kinds.iter();
                kinds.any(|&kind| strategy.can(client, kind))
            });
            if !possible {
                return Err(format!(
                    "{} can have none of these kinds through any of these clients",
                    strategy.name()
                ));
            }
        }
        let closed_loop = self.scenario != Scenario::Renewal && self.arrivals_per_second.is_none();
        if self.strategies.contains(&Strategy::Redisson) && !closed_loop {
            return Err(
                "redisson is measured in closed loops that take and give back locks".to_owned(),
            );
        }
        Ok(())
    }

    fn changed(&self, filter: &Filter) -> Self {
        let mut cell = self.clone();
        let many = !matches!(cell.scenario, Scenario::Uncontended | Scenario::Renewal);
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
        if let Some(locks) = filter.locks.filter(|_| cell.scenario == Scenario::Renewal) {
            cell.locks = Some(locks);
        }
        if !filter.kinds.is_empty() {
            cell.kinds.clone_from(&filter.kinds);
        }
        cell.hold = filter.hold.unwrap_or(cell.hold);
        cell.duration = filter.duration.unwrap_or(cell.duration);
        cell.warm_up = filter.warm_up.unwrap_or(cell.warm_up);
        cell
    }

    fn expand(&self, tasks: &mut Vec<Task>) {
        for &client in &self.clients {
            let topologies: &[Topology] = if client == Client::Memory {
                &[Topology::InProcess]
            } else {
                &self.topologies
            };
            for &topology in topologies {
                for &strategy in &self.strategies {
                    for &kind in self.kinds.iter().filter(|&&k| strategy.can(client, k)) {
                        for &workers in &self.workers {
                            tasks.push(self.task(client, topology, strategy, kind, workers));
                        }
                    }
                }
            }
        }
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
            Scenario::Uncontended | Scenario::HotLock => 1,
            Scenario::ManyLocks => workers,
            Scenario::Renewal => self.locks.unwrap_or(1_000),
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
            locks,
            hold: self.hold,
            duration: self.duration,
            arrivals_per_second: self.arrivals_per_second,
            lease: self.lease,
            warm_up: if strategy == Strategy::Redisson {
                self.warm_up
            } else {
                Duration::ZERO
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_come_along_are_good() {
        for (name, text) in [
            ("quick", include_str!("../../scenarios/quick.toml")),
            ("full", include_str!("../../scenarios/full.toml")),
            ("smoke", include_str!("../../scenarios/smoke.toml")),
        ] {
            let tasks = ScenarioFile::parse(text, name)
                .unwrap()
                .tasks(&Filter::default())
                .unwrap();
            for topology in [
                Topology::Standalone,
                Topology::Sentinel,
                Topology::Cluster,
                Topology::InProcess,
            ] {
                assert!(
                    tasks.iter().any(|task| task.topology == topology),
                    "{name} lacks {topology:?}"
                );
            }
        }
    }

    #[test]
    fn flags_narrow_and_change() {
        let file =
            ScenarioFile::parse(include_str!("../../scenarios/quick.toml"), "quick").unwrap();
        let filter = Filter {
            scenarios: vec![Scenario::HotLock],
            clients: vec![Client::Fred],
            topologies: vec![Topology::Cluster],
            workers: vec![32],
            ..Filter::default()
        };
        let tasks = file.tasks(&filter).unwrap();
        assert!(!tasks.is_empty());
        assert!(
            tasks
                .iter()
                .all(|task| task.workers == 32 && task.topology == Topology::Cluster)
        );
    }

    #[test]
    fn a_strategy_is_measured_only_with_what_it_can() {
        let text = "rounds = 1\n[[cell]]\nscenario = \"hot-lock\"\nstrategies = [\"locktopus\", \
            \"redisson\"]\nclients = [\"fred\", \"redisson\"]\nkinds = [\"mutex\", \"lock\", \
            \"fair-lock\"]\ntopologies = [\"cluster\"]\nwarm_up = \"7s\"";
        let file = ScenarioFile::parse(text, "x.toml").unwrap();
        let found: Vec<_> = file.tasks(&Filter::default()).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|t| (t.strategy, t.client, t.kind, t.warm_up.as_secs()))
            .collect();
        assert_eq!(
            found,
            [
                (Strategy::Locktopus, Client::Fred, Kind::Mutex, 0),
                (Strategy::Locktopus, Client::Fred, Kind::Lock, 0),
                (Strategy::Redisson, Client::Redisson, Kind::Lock, 7),
                (Strategy::Redisson, Client::Redisson, Kind::FairLock, 7),
            ]
        );
        let only_spin = Filter {
            kinds: vec![Kind::SpinLock],
            warm_up: Some(Duration::from_secs(1)),
            ..Filter::default()
        };
        let found = file.tasks(&only_spin).unwrap();
        assert_eq!((found.len(), found[0].warm_up.as_secs()), (1, 1));
    }

    #[test]
    fn errors_name_the_cell() {
        for (text, named) in [
            ("rounds = 0\ncell = []", "rounds"),
            ("rounds = 1\n[[cell]]\nscenario = \"hot\"", "hot"),
            (
                "rounds = 1\n[[cell]]\nscenario = \"hot-lock\"\nworkers = [1]\nprocesses = 2",
                "[hot-lock]",
            ),
            (
                "rounds = 1\n[[cell]]\nscenario = \"uncontended\"\nworkers = [2]",
                "one worker",
            ),
            (
                "rounds = 1\n[[cell]]\nscenario = \"renewal\"\nlease = \"9s\"",
                "[renewal]",
            ),
            (
                "rounds = 1\n[[cell]]\nscenario = \"hot-lock\"\nstrategies = [\"redisson\"]",
                "redisson can have none",
            ),
            (
                "rounds = 1\n[[cell]]\nscenario = \"many-locks\"\nstrategies = [\"redisson\"]\n\
                 clients = [\"redisson\"]\narrivals_per_second = 5",
                "closed loops",
            ),
            (
                "rounds = 1\n[[cell]]\nscenario = \"hot-lock\"\nworker = [1]",
                "worker",
            ),
        ] {
            let error = ScenarioFile::parse(text, "x.toml").unwrap_err().to_string();
            assert!(error.contains(named) && error.contains("x.toml"), "{error}");
        }
    }
}
