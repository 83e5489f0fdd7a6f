//! What a report says of its origin: the run, the build of the harness, the machine, and what could
//! not be done.
//!
//! Part of both JSON models: a change here changes stored reports.

pub mod detect;
mod environment;
mod run;

pub use environment::{Environment, IDLE_LOAD, Pinning};
pub use run::{Harness, Run, Skipped};
