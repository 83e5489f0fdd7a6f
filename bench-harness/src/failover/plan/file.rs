//! The plan file: modes, and scenarios with their axes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use locktopus::LockKind;
use locktopus_servers::topology::{Caps, Knobs, ProviderKind};
use serde::{Deserialize, Deserializer};

use super::lock_group::bounds;
use super::{LockGroup, Mode, Place, Subject, Verb};
use crate::shared::file::{self, FileError, PlanError};
use crate::shared::locking::Client;

/// Locks that are broken on purpose. Each must be caught on any machine, however busy.
const BROKEN: &str = include_str!("../../../failover/broken.toml");

/// A plan file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// Seed of every random choice.
    #[serde(default)]
    pub seed: u64,
    /// Names of scenarios of `broken.toml` that run after the plan's own.
    #[serde(default)]
    planted: Vec<String>,
    /// The safety modes by name.
    #[serde(rename = "mode")]
    pub modes: BTreeMap<String, Mode>,
    /// The scenarios.
    #[serde(rename = "scenario")]
    pub scenarios: Vec<Scenario>,
}

/// A scenario; it runs for every combination of its axes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, unique in the plan.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// The arrangements of the servers.
    pub topologies: Vec<Place>,
    /// Names of the modes.
    pub modes: Vec<String>,
    /// Through which client libraries.
    pub clients: Vec<Client>,
    /// Whose locks.
    #[serde(default = "locktopus")]
    pub subjects: Vec<Subject>,
    /// The fault.
    pub fault: Verb,
    /// For a nemesis: the faults that it combines.
    #[serde(default)]
    pub combines: Vec<Verb>,
    /// For a nemesis: how many at once, at least and at most.
    #[serde(default = "two_or_three")]
    pub at_once: (u32, u32),
    /// Whether other clients write to the server meanwhile, so that replicas lag behind.
    #[serde(default)]
    pub write_load: bool,
    /// Whether the replicas' links are closed right before a primary is killed, as a failing
    /// network does.
    #[serde(default)]
    pub cut_replication: bool,
    /// Number of faults, over all deployments.
    #[serde(default = "three")]
    pub faults: u32,
    /// Deployments side by side.
    #[serde(default = "one")]
    pub deployments: u32,
    /// Worker processes for each deployment.
    #[serde(default = "two")]
    pub processes: u32,
    /// Shortest and longest pause before each fault.
    #[serde(with = "bounds")]
    pub pause: (Duration, Duration),
    /// How long a fault lasts, if it lasts.
    #[serde(default = "one_second", with = "humantime_serde")]
    pub lasts: Duration,
    /// Settings of the servers.
    #[serde(default)]
    pub servers: ServerKnobs,
    /// The only provider that can do this, if there is just one. With another provider the plan
    /// leaves the scenario out, unless the flags name it.
    #[serde(default, deserialize_with = "provider")]
    pub provider: Option<ProviderKind>,
    /// Whether the plan may leave the scenario out where it cannot run, such as without containers.
    /// Otherwise that is a failure.
    #[serde(default)]
    pub optional: bool,
    /// The work of the workers.
    #[serde(rename = "lock_group")]
    pub groups: Vec<LockGroup>,
}

/// Settings of the servers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerKnobs {
    /// Cluster: silence after which a node is suspected.
    #[serde(with = "humantime_serde")]
    pub node_timeout: Duration,
    /// Sentinel: silence after which a server is suspected.
    #[serde(with = "humantime_serde")]
    pub down_after: Duration,
    /// Sentinel: limit for one failover; the next one begins after twice this long at the earliest.
    #[serde(with = "humantime_serde")]
    pub failover_timeout: Duration,
    /// The network delay of a round trip, between workers and servers and between servers. Only
    /// server processes (`plain`) support it.
    #[serde(with = "humantime_serde")]
    pub round_trip: Duration,
    /// Whether a restarted server still has its data.
    pub appendonly: bool,
    /// Further arguments.
    pub args: Vec<String>,
}

impl Default for ServerKnobs {
    fn default() -> Self {
        Self {
            node_timeout: Duration::from_secs(1),
            down_after: Duration::from_secs(1),
            failover_timeout: Duration::from_secs(5),
            round_trip: Duration::ZERO,
            appendonly: false,
            args: Vec::new(),
        }
    }
}

impl ServerKnobs {
    /// The settings in the form that the topology takes.
    pub(in super::super) fn knobs(&self, mode: &Mode, place: Place, settable_clock: bool) -> Knobs {
        let ms = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let mut knobs = Knobs {
            node_timeout_ms: ms(self.node_timeout),
            down_after_ms: ms(self.down_after),
            failover_timeout_ms: ms(self.failover_timeout),
            // A shard that is down must not stop the others, because each is judged separately.
            full_coverage: false,
            appendonly: self.appendonly,
            settable_clock,
            extra_args: self.args.clone(),
            ..Knobs::default()
        };
        if place.fails_over() {
            knobs.extra_args.extend(mode.server_args.iter().cloned());
        }
        knobs
    }
}

fn provider<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ProviderKind>, D::Error> {
    let word = String::deserialize(from)?;
    word.parse().map(Some).map_err(serde::de::Error::custom)
}

fn locktopus() -> Vec<Subject> {
    vec![Subject::Locktopus]
}
fn one() -> u32 {
    1
}
fn two() -> u32 {
    2
}
fn two_or_three() -> (u32, u32) {
    (2, 3)
}
fn three() -> u32 {
    3
}
fn one_second() -> Duration {
    Duration::from_secs(1)
}

impl PlanFile {
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
        let read = |text| toml::from_str::<Self>(text).map_err(|error| bad(error.to_string()));
        let mut file = read(text)?;
        if !file.planted.is_empty() {
            let mut broken = read(BROKEN)?.scenarios;
            for name in std::mem::take(&mut file.planted) {
                let found = broken.iter().position(|scenario| scenario.name == name);
                let found = found.ok_or_else(|| bad(format!("broken.toml has no {name:?}")))?;
                file.scenarios.push(broken.swap_remove(found));
            }
        }
        let mut names = BTreeSet::new();
        for scenario in &file.scenarios {
            if !names.insert(&scenario.name) {
                return Err(bad(format!("two scenarios are called {:?}", scenario.name)).into());
            }
            scenario
                .check(&file.modes)
                .map_err(|problem| bad(format!("[{}] {problem}", scenario.name)))?;
        }
        Ok(file)
    }
}

impl Scenario {
    /// The faults of the scenario, in turn or at once.
    fn verbs(&self) -> &[Verb] {
        match self.fault {
            Verb::Nemesis => &self.combines,
            _ => std::slice::from_ref(&self.fault),
        }
    }

    /// Whether the scenario has this fault, alone or with others.
    #[must_use]
    pub fn does(&self, verb: Verb) -> bool {
        self.verbs().contains(&verb)
    }

    /// Whether servers still know every lock after any of its faults.
    #[must_use]
    pub fn keeps_data(&self) -> bool {
        let mut verbs = self.verbs().iter();
        verbs.all(|verb| verb.keeps_data(self.servers.appendonly))
    }

    /// Capabilities that the provider lacks for this scenario.
    #[must_use]
    pub fn needs(&self, caps: Caps) -> Option<&'static str> {
        self.verbs().iter().find_map(|verb| verb.needs(caps))
    }

    fn check_nemesis(&self) -> Result<(), String> {
        if self.fault != Verb::Nemesis {
            return match self.combines.is_empty() {
                true => Ok(()),
                false => Err("only fault = \"nemesis\" combines others".to_owned()),
            };
        }
        for verb in &self.combines {
            if verb.sort().is_none() {
                return Err(format!("a nemesis cannot do {verb}"));
            }
            if let Some(place) = self.topologies.iter().find(|place| !verb.fits(**place)) {
                return Err(format!("{verb} is not for topology {place}"));
            }
        }
        let sorts: BTreeSet<_> = self.combines.iter().map(|verb| verb.sort()).collect();
        let (least, most) = self.at_once;
        if least < 2 || most < least || sorts.len() < most as usize {
            return Err(format!(
                "at_once must be two numbers from 2 to {}, as many sorts of faults as are combined",
                sorts.len()
            ));
        }
        Ok(())
    }

    fn check(&self, modes: &BTreeMap<String, Mode>) -> Result<(), String> {
        let empty = self.topologies.is_empty() || self.modes.is_empty() || self.clients.is_empty();
        if empty || self.subjects.is_empty() || self.groups.is_empty() {
            return Err(
                "topologies, modes, clients, subjects and lock groups need a value".to_owned(),
            );
        }
        if self.faults == 0 || self.deployments == 0 || self.processes == 0 {
            return Err("faults, deployments and processes must be at least 1".to_owned());
        }
        if self.pause.0 > self.pause.1 {
            return Err("the longest pause is shorter than the shortest".to_owned());
        }
        if let Some(client) = self.clients.iter().find(|client| {
            !matches!(
                client,
                Client::RedisRs | Client::RedisRsRouter | Client::Fred
            )
        }) {
            return Err(format!("client {} cannot be used here", client.name()));
        }
        for mode in &self.modes {
            if !modes.contains_key(mode) {
                return Err(format!("there is no [mode.{mode}]"));
            }
        }
        for &place in &self.topologies {
            if !self.fault.fits(place) {
                return Err(format!("{} is not for topology {place}", self.fault));
            }
        }
        self.check_nemesis()?;
        let agreed = self
            .modes
            .iter()
            .any(|mode| modes.get(mode).is_some_and(|mode| mode.quorum));
        let mut names = BTreeSet::new();
        for group in &self.groups {
            group.check()?;
            if agreed && !matches!(group.kind, LockKind::Reentrant | LockKind::Mutex(_)) {
                return Err(format!(
                    "lock group {:?}: a quorum has no {}, only mutexes",
                    group.name,
                    group.kind.family()
                ));
            }
            if !names.insert(&group.name) {
                return Err(format!("two lock groups are called {:?}", group.name));
            }
        }
        if self.fault != Verb::Nothing && !self.groups.iter().any(|group| group.target) {
            return Err(
                "the fault follows a grant, so one lock group needs `target = true`".to_owned(),
            );
        }
        Ok(())
    }
}
