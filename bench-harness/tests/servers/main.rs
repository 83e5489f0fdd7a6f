//! Tests of the harness on real servers, each short.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "../common/mod.rs"]
mod common;

mod emptiness;
mod failover;
mod misled;
mod no_effect;
mod no_successor;
mod planted;
mod promises;
#[cfg(feature = "peers")]
mod redisson_measured;
mod soak;
