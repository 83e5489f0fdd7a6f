//! All tests with servers, in one program: linking one per file took most of the build time.
#![allow(
    clippy::unwrap_used,
    clippy::future_not_send,
    reason = "helpers of tests are tests too, and cases share a thread"
)]

#[cfg(feature = "redisson")]
mod redisson_peer;
mod topology_common;
mod topology_plain;
#[cfg(feature = "pod")]
mod topology_pod;
