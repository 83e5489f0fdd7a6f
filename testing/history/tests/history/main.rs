//! The checker of histories: it finds what is wrong, and only that.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod bad;
mod broken;
mod files;
mod good;
mod lives;
mod malformed;
mod million;
mod random;
mod simulation;
mod stalled;
