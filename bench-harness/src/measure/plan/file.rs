//! Scenario files.

use std::path::Path;

use serde::Deserialize;

use super::cell::CellSpec;
use super::{Filter, Task};
use crate::shared::file::{self, FileError, PlanError};

/// A scenario file: cells, each standing for every combination of its lists.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// How often everything is repeated.
    pub rounds: u32,
    cell: Vec<CellSpec>,
}

impl ScenarioFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// [`PlanError::File`].
    pub fn load(path: &Path) -> Result<Self, PlanError> {
        Self::parse(&file::text(path)?, &path.display().to_string())
    }

    /// Checks the text of a file.
    ///
    /// # Errors
    ///
    /// [`PlanError::File`].
    pub fn parse(text: &str, name: &str) -> Result<Self, PlanError> {
        let bad = |problem: String| FileError::of(name, problem);
        let file: Self = toml::from_str(text).map_err(|error| bad(error.to_string()))?;
        if file.rounds == 0 {
            return Err(bad("rounds must be at least 1".to_owned()).into());
        }
        for cell in &file.cell {
            cell.check()
                .and_then(|()| cell.check_strategies())
                .map_err(|problem| bad(format!("[{}] {problem}", cell.scenario.name())))?;
        }
        Ok(file)
    }

    /// The tasks that the flags select, grouped by topology in the order of the file.
    ///
    /// # Errors
    ///
    /// [`PlanError::Nothing`], and [`PlanError::File`] if flags make a cell impossible.
    pub fn tasks(&self, filter: &Filter) -> Result<Vec<Task>, PlanError> {
        let mut tasks = Vec::new();
        for cell in &self.cell {
            let cell = cell.changed(filter);
            let mut wanted = Vec::new();
            cell.expand(&mut wanted);
            wanted.retain(|task| filter.keeps(task));
            // A cell that the flags leave out need not fit the values of other flags.
            if wanted.is_empty() {
                continue;
            }
            cell.check().map_err(|problem| {
                let problem = format!("[{}] {problem}", cell.scenario.name());
                FileError::of("with the flags", problem)
            })?;
            tasks.append(&mut wanted);
        }
        let mut seen: Vec<Task> = Vec::new();
        tasks.retain(|task| {
            !seen.iter().any(|other| other.measures_as(task)) && {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::measure::model::Topology;
    use crate::measure::plan::{Client, Kind, Scenario, Strategy};

    #[test]
    fn the_files_that_come_along_are_good() {
        for (name, text) in [
            ("quick", include_str!("../../../scenarios/quick.toml")),
            ("full", include_str!("../../../scenarios/full.toml")),
            ("smoke", include_str!("../../../scenarios/smoke.toml")),
            ("targets", include_str!("../../../scenarios/targets.toml")),
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
                if (name, topology) == ("targets", Topology::InProcess) {
                    continue;
                }
                assert!(
                    tasks.iter().any(|task| task.topology == topology),
                    "{name} lacks {topology:?}"
                );
            }
        }
    }

    #[test]
    fn groups_narrow_and_repeat_nothing() {
        let text = "rounds = 1\n\
            [[cell]]\ngroup = \"one\"\nscenario = \"hot-lock\"\nworkers = [8, 32]\nclients = [\"fred\"]\n\
            [[cell]]\ngroup = \"two\"\nscenario = \"hot-lock\"\nworkers = [32]\nclients = [\"fred\"]\nrounds = 1";
        let file = ScenarioFile::parse(text, "x.toml").unwrap();
        let count = |groups: &[&str]| {
            let filter = Filter {
                groups: groups.iter().map(|&group| group.to_owned()).collect(),
                ..Filter::default()
            };
            file.tasks(&filter).map_or(0, |tasks| tasks.len())
        };
        assert!(count(&["one"]) > 0 && count(&["two"]) > 0);
        assert_eq!(count(&["no such group"]), 0);
        // The same lock under the same load is in both groups, and is measured once.
        assert_eq!(count(&["one", "two"]), count(&["one"]));
    }

    #[test]
    fn what_flags_leave_out_need_not_fit_the_others() {
        let text = include_str!("../../../scenarios/targets.toml");
        let file = ScenarioFile::parse(text, "targets").unwrap();
        let short = |group: &str| Filter {
            groups: vec![group.to_owned()],
            duration: Some(Duration::from_millis(500)),
            ..Filter::default()
        };
        assert!(file.tasks(&short("topologies")).is_ok());
        let error = file.tasks(&short("renewal")).unwrap_err().to_string();
        assert!(error.contains("[renewal]"), "{error}");
    }

    #[test]
    fn flags_narrow_and_change() {
        let file =
            ScenarioFile::parse(include_str!("../../../scenarios/quick.toml"), "quick").unwrap();
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
                (Strategy::Locktopus, Client::Fred, Kind::FairLock, 0),
                (Strategy::Redisson, Client::Redisson, Kind::Lock, 7),
                (Strategy::Redisson, Client::Redisson, Kind::FairLock, 7),
            ]
        );
        let only_spin = Filter {
            kinds: vec![Kind::SpinLock],
            ..Filter::default()
        };
        let found = file.tasks(&only_spin).unwrap();
        assert_eq!((found.len(), found[0].kind), (1, Kind::SpinLock));
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
            (
                "rounds = 1\n[[cell]]\nscenario = \"hot-lock\"\nkinds = [\"rw-lock\"]",
                "readers-writers",
            ),
            (
                "rounds = 1\n[[cell]]\nscenario = \"uncontended\"\ntopologies = [\"quorum\"]",
                "mutexes",
            ),
            (
                "rounds = 1\n[[cell]]\nscenario = \"uncontended\"\nkinds = [\"mutex\"]\n\
                 topologies = [\"quorum\"]\nnodes = 2",
                "odd",
            ),
            (
                "rounds = 1\n[[cell]]\nscenario = \"remote-waiter\"\nworkers = [3]",
                "two processes",
            ),
            (
                "rounds = 1\n[[cell]]\nscenario = \"remote-waiter\"\nworkers = [3]\n\
                 processes = 2\nstrategies = [\"r1\"]",
                "only locktopus",
            ),
            (
                "rounds = 1\n[[cell]]\nscenario = \"uncontended\"\nkinds = [\"fair-lock\"]\n\
                 lease_cache = \"5ms\"",
                "lock and mutex",
            ),
            (
                "rounds = 1\n[[cell]]\nscenario = \"uncontended\"\nstrategies = [\"r1\"]\n\
                 lease_cache = \"5ms\"",
                "keeps leases",
            ),
            (
                "rounds = 1\n[[cell]]\nscenario = \"uncontended\"\nsafety = \"replicated&replicas=few\"",
                "replicas",
            ),
            (
                "rounds = 1\n[[cell]]\nscenario = \"uncontended\"\nstrategies = [\"rslock\"]\n\
                 clients = [\"redis-rs\"]\nkinds = [\"mutex\"]\nsafety = \"replicated\"",
                "safety modes",
            ),
        ] {
            let error = ScenarioFile::parse(text, "x.toml").unwrap_err().to_string();
            assert!(error.contains(named) && error.contains("x.toml"), "{error}");
        }
    }
}
