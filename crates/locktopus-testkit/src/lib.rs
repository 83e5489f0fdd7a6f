//! Conformance suite and server topologies for Locktopus backends.

#[cfg(all(feature = "topology", unix))]
pub mod topology;
