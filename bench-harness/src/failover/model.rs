//! The JSON model of a run: the runner writes it, and every renderer reads it.
//!
//! As in [`crate::measure::model`], durations are whole nanoseconds, and values that follow from
//! others (rates, confidence intervals) are not stored.

mod figures;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use figures::{Figures, Lost, Overlap, Signals, Spread, Writes};

use super::plan::{Place, Subject, Verb};
use crate::shared::file::{self, FileError};
use crate::shared::provenance::{Environment, Harness, Run, Skipped};
use crate::shared::stall::MachineStall;

/// Version of this model. It is raised when a reader of the previous version would misread a file.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything about one run.
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
    /// The cells that ran, with their results.
    pub cells: Vec<CellReport>,
    /// Parts of the plan that cannot run here and are optional, and what they would need.
    pub skipped: Vec<Skipped>,
    /// Parts of the plan that had to run and did not. Any entry fails the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// Notes to read before quoting a number.
    pub notes: Vec<String>,
}

/// A cell that did not finish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// Which cell.
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
    /// The fault.
    pub fault: Verb,
    /// The arrangement of the servers.
    pub topology: Place,
    /// How they were started.
    pub provider: String,
    /// Name and version, as the servers report them.
    pub server: String,
    /// Name of the safety mode.
    pub mode: String,
    /// Whether the mode promises that two holders never believe at once.
    pub exclusive: bool,
    /// Through which client library.
    pub client: String,
    /// Whose lock it is.
    pub subject: Subject,
    /// Deployments side by side.
    pub deployments: u32,
    /// Planned faults; 0 for a cell without faults, and in reports that are older than this field.
    #[serde(default)]
    pub planned_faults: u64,
    /// How long the cell took.
    pub took_ns: u64,
    /// The counts.
    pub figures: Figures,
    /// Broken promises. Any entry fails the run.
    pub broken_promises: Vec<String>,
    /// Properties that were not required here, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_required: Vec<String>,
    /// For a lock that is broken on purpose: the properties that the checker saw violated.
    pub caught: Vec<String>,
    /// The outcome of each property: passed, failed, not judged. Without outcomes nothing counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outcomes: BTreeMap<String, String>,
    /// Failed attempts, by reason; faults make attempts fail.
    pub errors: BTreeMap<String, u64>,
    /// Why the cell ended early, if it did.
    pub trouble: Vec<String>,
    /// Stalls of the machine; absent in reports that are older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineStall>,
    /// How often each event happened: faults, promotions, servers that came back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub happened: BTreeMap<String, u64>,
}

/// Reads a report from a file.
///
/// # Errors
///
/// [`FileError`].
pub fn read(path: &Path) -> Result<FailoverReport, FileError> {
    let version = ("failover_schema_version", SCHEMA_VERSION);
    file::stored(&file::text(path)?, &path.display().to_string(), version)
}

/// The report as indented JSON with a final newline.
#[must_use]
pub fn to_json(report: &FailoverReport) -> String {
    file::to_json(report)
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

    /// Records that `what` was skipped because it needs `needs`.
    pub fn skip(&mut self, what: impl Into<String>, needs: impl Into<String>) {
        self.skipped.push(Skipped {
            what: what.into(),
            needs: needs.into(),
        });
    }

    /// Records that `what` had to run and did not.
    pub fn fail(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.failed.push(Failed {
            what: what.into(),
            why: why.into(),
        });
    }

    /// Whether the cells that ran kept every promise.
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
