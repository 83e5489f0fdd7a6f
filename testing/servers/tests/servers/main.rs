//! What starts servers, in one program: linking one for each file took most of the time of a build.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[cfg(feature = "redisson")]
mod redisson_peer;
mod topology_common;
mod topology_plain;
#[cfg(feature = "pod")]
mod topology_pod;
