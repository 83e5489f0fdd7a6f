//! The top of the model: one run of the harness.

use serde::{Deserialize, Serialize};

use super::Cell;
use crate::shared::provenance::{Environment, Harness, Run, Skipped};

/// Version of the JSON model. It is raised when a reader of the previous version would misread a
/// file.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything about one run of the harness.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Version of this model; see [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Which run this is and how to repeat it.
    pub run: Run,
    /// The program that measured.
    pub harness: Harness,
    /// The machine it ran on.
    pub environment: Environment,
    /// The measured cells, in the order of first execution.
    pub cells: Vec<Cell>,
    /// Cells that could not be measured, and what they would need.
    pub skipped: Vec<Skipped>,
    /// Notes to read before quoting a number.
    pub notes: Vec<String>,
}

impl Report {
    /// An empty report of `run`, to be filled by the runner.
    #[must_use]
    pub fn new(run: Run, harness: Harness, environment: Environment) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            run,
            harness,
            environment,
            cells: Vec::new(),
            skipped: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a note once, even if several cells add it.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Records that `what` was not measured because it needs `needs`.
    pub fn skip(&mut self, what: impl Into<String>, needs: impl Into<String>) {
        self.skipped.push(Skipped {
            what: what.into(),
            needs: needs.into(),
        });
    }

    /// The cell of `subject`, created empty on first use; rounds are pushed into it.
    pub fn cell_mut(&mut self, subject: &super::Subject) -> &mut Cell {
        let at = self
            .cells
            .iter()
            .position(|cell| cell.subject == *subject)
            .unwrap_or_else(|| {
                self.cells.push(Cell {
                    subject: subject.clone(),
                    rounds: Vec::new(),
                });
                self.cells.len() - 1
            });
        &mut self.cells[at]
    }
}
