//! Tests that need no server. The scripted backend is that of the core's tests.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "../../../locktopus-core/tests/all/common/mod.rs"]
mod common;
mod job;
mod leader;
