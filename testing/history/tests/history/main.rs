//! The checker finds all violations in histories, and nothing else.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod bad;
mod files;
mod good;
mod lives;
mod malformed;
mod random;
mod stalled;
