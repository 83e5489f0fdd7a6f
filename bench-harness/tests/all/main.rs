//! Tests of the harness that need no server.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "../common/mod.rs"]
mod common;

mod cli;
mod judged;
mod open_loop;
mod page;
mod silence;
mod targets;
