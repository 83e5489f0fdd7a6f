//! The origin of a report: the run, the build of the harness, the machine, and what was skipped.
//!
//! This is part of both JSON models: a change here changes stored reports.

pub mod detect;
mod environment;
mod run;

pub use environment::{Environment, IDLE_LOAD, Pinning};
pub use run::{Harness, Run, Skipped};
