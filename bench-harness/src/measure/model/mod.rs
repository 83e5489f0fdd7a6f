//! The JSON model: the contract between the runners, which fill it, and every renderer.
//!
//! It has three rules. Durations are whole nanoseconds, with the unit in the field name. Latencies
//! are stored as whole histograms, so that a reader can ask for any percentile later. Values that
//! follow from stored ones (throughput, fairness, medians over rounds) are computed by
//! [`crate::measure::derive`] and not stored, so two figures never disagree.
//!
//! A test loads a file of the first release: new fields need a default, or another
//! [`SCHEMA_VERSION`].

mod cell;
mod cost;
mod histogram;
mod io;
mod operation;
mod pacing;
mod report;
mod round;

pub use crate::shared::provenance::{Environment, Harness, Pinning, Run, Skipped};
pub use cell::{Cell, Provider, Server, Subject, Topology};
pub use cost::{ClientCost, Occupied, OverlapCheck, ScriptTimes, ServerCost};
pub use histogram::{HistogramError, StoredHistogram, Summary};
pub use io::{read, read_str, to_json};
pub use operation::op;
pub use pacing::Pacing;
pub use report::{Report, SCHEMA_VERSION};
pub use round::Round;
