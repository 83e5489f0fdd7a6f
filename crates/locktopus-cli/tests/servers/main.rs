//! Runs the command as users do: real processes on real servers.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::future_not_send,
    reason = "helpers of tests are tests too, and each case has one thread"
)]

mod config;
mod doctor;
mod examples;
mod failover;
mod jobs;
mod killed;
mod labels;
mod lost;
mod machine;
mod pages;
mod pty;
mod run;
mod terminal;
mod texts;
mod tickets;
mod tools;
mod usual;
