//! What to measure: scenario files, flags on top of them, and the resulting list of tasks.

mod cell;
mod check;
mod file;
mod filter;
mod task;

pub use crate::shared::locking::{Client, Kind};
pub use file::ScenarioFile;
pub use filter::Filter;
pub use task::{Scenario, Strategy, Task};
