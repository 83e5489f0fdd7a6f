//! What measures and breaks real servers, all of it through `locktopus-bench`.

pub(crate) mod bench;
pub(crate) mod failover;
pub(crate) mod harness;
mod options;
pub(crate) mod performance;
pub(crate) mod soak;
