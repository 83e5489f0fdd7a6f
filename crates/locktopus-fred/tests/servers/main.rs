//! All tests that start servers, in one program to save link time. Most are those of every client.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "../../../locktopus-protocol/client-tests/commands.rs"]
mod commands;
#[path = "../../../locktopus-protocol/client-tests/common.rs"]
mod common;
#[path = "../../../locktopus-protocol/client-tests/connecting.rs"]
mod connecting;
#[path = "../../../locktopus-protocol/client-tests/execution.rs"]
mod execution;
#[path = "../../../locktopus-protocol/client-tests/failover.rs"]
mod failover;
#[path = "../../../locktopus-protocol/client-tests/pipelines.rs"]
mod pipelines;
#[path = "../../../locktopus-protocol/client-tests/subscriptions.rs"]
mod subscriptions;

use locktopus_fred::{FredClient as Client, connect};

/// The client's own name.
const CLIENT: &str = "fred";
