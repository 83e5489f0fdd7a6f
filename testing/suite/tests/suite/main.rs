//! All tests with servers, in one program: linking one per file took most of the build time.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::future_not_send,
    reason = "helpers of tests are tests too, and cases share a thread"
)]

mod checks;
mod clients;
mod common;
mod conformance;
mod conformance_plain;
#[cfg(feature = "pod")]
mod conformance_pod;
mod failover;
mod far;
mod gone;
mod guarded;
mod instances;
mod lease_cache;
mod multi_lock;
mod own_client;
mod promoted_again;
#[cfg(feature = "redisson")]
mod redisson_topology;
mod redlock;
mod replica;
mod retention;
mod runtimes;
mod safety;
mod security;
mod sequences;
mod sequences_common;
mod sequences_topology;
mod two_primaries;
mod wakeups;
mod wire;
mod wire_objects;
