//! The tests without a server, in one program: linking one for each file took most of the build
//! time.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod blocking;
mod locked;
mod locked_forms;
