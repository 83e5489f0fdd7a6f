//! Commands that measure and break real servers through `locktopus-bench`.

pub(crate) mod bench;
pub(crate) mod failover;
pub(crate) mod harness;
mod options;
pub(crate) mod performance;
pub(crate) mod soak;
