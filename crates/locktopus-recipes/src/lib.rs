#![cfg_attr(docsrs, feature(doc_cfg))]
//! Recipes built from locks: one leader at a time, and jobs that one of many instances runs.
//!
//! Start at [`LeaderElection`] or [`Job`]. Both use only the public API of `locktopus-core`, as a
//! recipe of your own would.
//!
//! | module | what is in it |
//! |---|---|
//! | `pauses` | what to do about an error: wait a little, or give up |
//! | `leader` | leader election: a mutex that is kept, and a loop that campaigns again |
//! | `job` | periodic jobs: which runs are due, which have begun, one at a time |
//!
//! Layers, lowest first: pauses, leader, job.

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod job;
mod leader;
mod pauses;

pub use job::{CatchUp, Job, MissedRuns, ScheduledJob, Tick};
pub use leader::{Incumbent, LeaderElection, Leadership};
