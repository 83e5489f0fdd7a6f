//! Tests that need no server, in one program: linking one per file took most of the build time.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod half_moved;
mod names;
mod repeated;
mod undone;
