//! The child process that does the locking.
//!
//! A child process of the harness takes every measured lock, even if there is only one, so that all
//! cells are measured alike. Parent and child exchange lines of JSON. The parent sends a [`Job`];
//! the child answers [`Answer::Ready`] when it is connected. The parent names the start on the
//! machine's monotonic clock, which both read; the child answers [`Answer::Done`] with all its
//! records. Then the parent reads the servers' counters and closes the conversation. Only then does
//! the child release what it still holds, so that is not part of the measurement.
//!
//! Redisson's workers are in Java, in `peers/redisson`, and follow the same conversation.

mod clock;
mod connect;
mod conversation;
mod job;
mod memory;
mod ours;
mod ping;
mod renewal;
mod serve;
mod usage;
mod workload;

pub use clock::monotonic_ns;
pub use job::{Answer, Job, Start};
pub(crate) use serve::pin;
pub use serve::serve;
