//! All tests that start servers, in one program to save link time.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod common;
mod execution;
mod failover;
mod login;
#[path = "../../../locktopus-protocol/client-tests/pipelines.rs"]
mod pipelines;
mod replies;
mod subscriptions;
mod tls;
