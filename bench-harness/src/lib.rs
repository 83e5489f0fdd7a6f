//! Contention latency of Locktopus on real servers, as HDR histograms.
