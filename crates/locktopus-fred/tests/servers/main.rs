//! All tests that start servers, in one program to save link time.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod commands;
mod common;
mod connecting;
mod failover;
mod lost_reply;
#[path = "../../../locktopus-protocol/client-tests/pipelines.rs"]
mod pipelines;
mod pubsub;
