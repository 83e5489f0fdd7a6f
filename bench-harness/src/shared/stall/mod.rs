//! How the machine disturbed a measurement: a machine that did not run us looks like a lock that
//! did not answer.
//!
//! | file | what is in it |
//! |---|---|
//! | `machine` | the part of a report about it |
//! | `kernel` | the kernel's counters: pressure, stolen time, how long threads waited for a CPU |
//! | `watch` | a thread that notices when this process was not run |
//!
//! Layers, lowest first: kernel, machine, watch.

mod kernel;
mod machine;
mod watch;

pub use machine::MachineStall;
pub use watch::StallWatch;
