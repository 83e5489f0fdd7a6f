//! The JSON model of a run: what the runner writes and every renderer reads.
//!
//! As in [`crate::measure::model`], durations are integers of nanoseconds, and what can be computed
//! from others (rates, confidence intervals) is not stored.

mod figures;
mod io;
mod timeline;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use figures::{Figures, Lost, Overlap, Signals, Spread, Writes};
pub use io::{ReadError, read, to_json};
pub use timeline::{Grant, Mark, Timeline};

use super::plan::{Place, Subject, Verb};
use crate::shared::provenance::{Environment, Harness, Run, Skipped};
use crate::shared::stall::MachineStall;

/// Version of this model. Raised when a reader of the previous version would misread a file.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything one run knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailoverReport {
    /// Version of this model; see [`SCHEMA_VERSION`].
    pub failover_schema_version: u32,
    /// Which run this is and how to repeat it.
    pub run: Run,
    /// The program.
    pub harness: Harness,
    /// The machine.
    pub environment: Environment,
    /// What was done, and what it did.
    pub cells: Vec<CellReport>,
    /// What the plan does without where it cannot be done, and what it would take.
    pub skipped: Vec<Skipped>,
    /// What should have been done and was not. Anything here fails the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// Sentences a reader has to know before quoting a number.
    pub notes: Vec<String>,
}

/// A cell that was not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// Which.
    pub what: String,
    /// Why.
    pub why: String,
}

/// One combination of scenario, servers, mode, client and subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellReport {
    /// Name of the scenario.
    pub scenario: String,
    /// What it shows.
    pub about: String,
    /// What was done.
    pub fault: Verb,
    /// On which servers.
    pub topology: Place,
    /// How they were started.
    pub provider: String,
    /// Name and version, as the servers say.
    pub server: String,
    /// Name of the safety mode.
    pub mode: String,
    /// Whether the mode promises that two holders never believe at once.
    pub exclusive: bool,
    /// Through which client library.
    pub client: String,
    /// Whose lock.
    pub subject: Subject,
    /// Deployments side by side.
    pub deployments: u32,
    /// Faults that were planned; 0 where none are done, and in reports from before this was noted.
    #[serde(default)]
    pub planned_faults: u64,
    /// How long it took.
    pub took_ns: u64,
    /// What was counted.
    pub figures: Figures,
    /// Promises that were not kept. Anything here fails the run.
    pub broken_promises: Vec<String>,
    /// Properties that were not required here, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_required: Vec<String>,
    /// Of a lock that is broken on purpose: the properties that the checker saw violated.
    pub caught: Vec<String>,
    /// What was found of each property: passed, failed, not judged. A report without them does not
    /// count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outcomes: BTreeMap<String, String>,
    /// Attempts that failed, by reason; faults make attempts fail.
    pub errors: BTreeMap<String, u64>,
    /// Why it ended early, if it did.
    pub trouble: Vec<String>,
    /// What the machine did meanwhile; absent in reports from before this was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineStall>,
    /// A stretch of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
}

impl FailoverReport {
    /// An empty report of `run`.
    #[must_use]
    pub fn new(run: Run, harness: Harness, environment: Environment) -> Self {
        Self {
            failover_schema_version: SCHEMA_VERSION,
            run,
            harness,
            environment,
            cells: Vec::new(),
            skipped: Vec::new(),
            failed: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Records that `what` was not done because it needs `needs`.
    pub fn skip(&mut self, what: impl Into<String>, needs: impl Into<String>) {
        self.skipped.push(Skipped {
            what: what.into(),
            needs: needs.into(),
        });
    }

    /// Records that `what` should have been done and was not.
    pub fn fail(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.failed.push(Failed {
            what: what.into(),
            why: why.into(),
        });
    }

    /// The same without timelines: small enough to be kept with the source.
    #[must_use]
    pub fn summary(&self) -> Self {
        let mut summary = self.clone();
        for cell in &mut summary.cells {
            cell.timeline = None;
        }
        summary
    }

    /// Whether every promise was kept, by the cells that were run.
    #[must_use]
    pub fn keeps_promises(&self) -> bool {
        let mut cells = self.cells.iter();
        cells.all(|cell| cell.broken_promises.is_empty())
    }
}

impl CellReport {
    /// Whose lock, in which mode, through which client.
    #[must_use]
    pub fn who(&self) -> String {
        match self.subject {
            Subject::Locktopus => format!("{}, {}", self.mode, self.client),
            other => other.name().to_owned(),
        }
    }
}
