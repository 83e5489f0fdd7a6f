//! What is made of locks alone: one leader at a time, and work that is done once by many instances.
//!
//! | module | what is in it |
//! |---|---|
//! | `leader` | leader election: a mutex that is kept, and a loop that campaigns again |
//! | `job` | periodic jobs: which runs are due, which were begun, one of them at a time |
//! | `pauses` | what to do about an error: wait a little, or give up |
//!
//! Layers, lowest first: pauses, leader, job.

pub(crate) mod job;
pub(crate) mod leader;
pub(crate) mod pauses;
