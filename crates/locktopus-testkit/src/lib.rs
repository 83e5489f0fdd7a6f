//! Conformance suite and server topologies for Locktopus backends.
