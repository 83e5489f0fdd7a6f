//! The combinations to run.

use std::time::Duration;

use locktopus_servers::topology::ProviderKind;

use super::{Mode, Place, PlanFile, Scenario, Subject};
use crate::shared::file::PlanError;
use crate::shared::locking::Client;

/// How flags select from a plan and change it.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Only these scenarios.
    pub scenarios: Vec<String>,
    /// Only these topologies.
    pub topologies: Vec<Place>,
    /// Only these modes.
    pub modes: Vec<String>,
    /// Only these clients.
    pub clients: Vec<Client>,
    /// Only these subjects.
    pub subjects: Vec<Subject>,
    /// How servers are started; `None` keeps the cells for every provider.
    pub provider: Option<ProviderKind>,
    /// Replaces the number of faults in scenarios that fail over.
    pub failovers: Option<u32>,
    /// Replaces the number of deployments side by side in scenarios that fail over.
    pub deployments: Option<u32>,
}

/// One combination.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The scenario.
    pub scenario: Scenario,
    /// The arrangement of the servers.
    pub place: Place,
    /// Name of the mode.
    pub mode_name: String,
    /// The safety mode.
    pub mode: Mode,
    /// Through which client library.
    pub client: Client,
    /// Whose lock.
    pub subject: Subject,
    /// Why this build cannot run the cell on any servers, if it cannot.
    pub cannot: Option<String>,
}

/// A cell in a few words. `who` is the lock, its safety mode and the client.
pub fn describe(scenario: &str, place: Place, who: (Subject, &str, &str)) -> String {
    let who = match who {
        (Subject::Locktopus, mode, client) => format!("{mode} via {client}"),
        (other, ..) => other.name().to_owned(),
    };
    format!("{scenario} on {place}, {who}")
}

impl Cell {
    /// The cell in a few words.
    #[must_use]
    pub fn describe(&self) -> String {
        let who = (self.subject, &*self.mode_name, self.client.name());
        describe(&self.scenario.name, self.place, who)
    }

    /// How long a server may keep a lock of this cell after its holder is gone.
    #[must_use]
    pub fn longest_lease(&self) -> Duration {
        if matches!(self.subject, Subject::R1 | Subject::Rslock) {
            // These libraries always ask for this lease; the group's does not matter.
            return Duration::from_secs(30);
        }
        let leases = self.scenario.groups.iter().map(|group| group.lease);
        leases.chain(self.mode.max_lease).max().unwrap_or_default()
    }
}

impl PlanFile {
    /// The cells that the flags select, in the order of the file.
    ///
    /// # Errors
    ///
    /// [`PlanError::Nothing`].
    pub fn cells(&self, choice: &Choice) -> Result<Vec<Cell>, PlanError> {
        let mut cells = Vec::new();
        for scenario in &self.scenarios {
            let scenario = choice.changed(scenario);
            for &place in &scenario.topologies {
                for name in &scenario.modes {
                    for &client in &scenario.clients {
                        for &subject in &scenario.subjects {
                            cells.push(self.cell(&scenario, place, name, client, subject));
                        }
                    }
                }
            }
        }
        cells.retain(|cell| choice.keeps(cell));
        if cells.is_empty() {
            Err(PlanError::Nothing)
        } else {
            Ok(cells)
        }
    }

    fn cell(
        &self,
        scenario: &Scenario,
        place: Place,
        mode_name: &str,
        client: Client,
        subject: Subject,
    ) -> Cell {
        let mode = self.modes.get(mode_name).cloned().unwrap_or_default();
        let cannot = mode
            .unknown_option()
            .map(|error| format!("a build that knows this mode ({error})"))
            .or_else(|| subject.cannot(place, mode.quorum).map(str::to_owned))
            .or_else(|| {
                let why = subject.cannot_do(scenario.fault, !mode.options.is_empty());
                why.map(str::to_owned)
            })
            .or_else(|| {
                let lost = client == Client::RedisRsRouter && place != Place::Cluster;
                lost.then(|| "topology cluster".to_owned())
            })
            .or_else(|| {
                let missing = cfg!(not(feature = "peers"))
                    && matches!(subject, Subject::R1 | Subject::Rslock | Subject::Redisson);
                missing.then(|| "the feature \"peers\" of bench-harness".to_owned())
            });
        Cell {
            scenario: scenario.clone(),
            place,
            mode_name: mode_name.to_owned(),
            mode,
            client,
            subject,
            cannot,
        }
    }
}

impl Choice {
    fn keeps(&self, cell: &Cell) -> bool {
        fn passes<T: PartialEq>(wanted: &[T], value: &T) -> bool {
            wanted.is_empty() || wanted.contains(value)
        }
        let here = match (cell.scenario.provider, self.provider) {
            (Some(needed), Some(provider)) => needed == provider || !self.scenarios.is_empty(),
            _ => true,
        };
        here && passes(&self.scenarios, &cell.scenario.name)
            && passes(&self.topologies, &cell.place)
            && passes(&self.modes, &cell.mode_name)
            && passes(&self.clients, &cell.client)
            && passes(&self.subjects, &cell.subject)
    }

    fn changed(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        if scenario.fault.fails_over() {
            scenario.faults = self.failovers.unwrap_or(scenario.faults).max(1);
            scenario.deployments = self.deployments.unwrap_or(scenario.deployments).max(1);
        }
        scenario.deployments = scenario.deployments.min(scenario.faults);
        scenario
    }
}
