//! Conformance suite, protocol model and server topologies for Locktopus backends.

pub mod cancel;
pub mod conformance;
#[cfg(all(feature = "history", unix))]
pub mod history;
#[cfg(feature = "model")]
pub mod model;
#[cfg(all(feature = "redisson", unix))]
pub mod peers;
#[cfg(all(feature = "topology", unix))]
pub mod topology;
