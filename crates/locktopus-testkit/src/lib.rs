//! Conformance suite and server topologies for Locktopus backends.

pub mod cancel;
pub mod conformance;
#[cfg(all(feature = "topology", unix))]
pub mod topology;
