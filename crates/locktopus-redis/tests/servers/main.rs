//! What starts servers, in one program: linking one for each file took most of the time of a build.
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
