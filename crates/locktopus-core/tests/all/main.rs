//! The tests without a server, in one program: linking one for each file took most of the build
//! time.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod acquiring;
mod busy;
mod cohort;
mod common;
mod crowds;
mod extremes;
mod fair;
mod hold_at_least;
mod labels;
mod latch;
mod lease_cache;
mod limits;
mod lost_halves;
mod markers;
mod max_hold;
mod names;
mod observed_metrics;
mod observed_spans;
mod operating;
mod operating_log;
mod operating_owner;
mod owners;
mod rate_limiter;
mod releasing;
mod rw_lock;
mod safety;
mod scopes;
mod secrets;
mod semaphore;
mod shared_owners;
mod strategies;
mod unpolled;
mod watchdog;
mod while_held;
