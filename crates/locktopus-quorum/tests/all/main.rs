//! Tests that need no server, in one program: linking one for each file took most of the build
//! time.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod multi;
mod quorum;
mod quorum_common;
mod quorum_far;
mod quorum_jobs;
mod quorum_limits;
mod quorum_order;
mod quorum_random;
mod quorum_tokens;
mod quorum_waiters;
mod quorum_witnesses;
mod quorum_young;
