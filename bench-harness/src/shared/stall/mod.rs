//! What the machine did to a measurement: a machine that did not run us looks like a lock that did
//! not answer.
//!
//! | file | what is in it |
//! |---|---|
//! | `machine` | what a report says of it |
//! | `kernel` | what the kernel counts: pressure, stolen time, how long threads waited for a processor |
//! | `watch` | a thread that notices when this process was not run |
//!
//! Layers, lowest first: kernel, machine, watch.

mod kernel;
mod machine;
mod watch;

pub use machine::MachineStall;
pub use watch::StallWatch;
