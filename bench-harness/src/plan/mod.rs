//! What to measure: scenario files, flags on top of them, and the list of tasks they amount to.

mod file;
mod task;

pub use file::{Filter, PlanError, ScenarioFile};
pub use task::{Client, Kind, Scenario, Strategy, Task};
