//! The child process that does the locking.
//!
//! Every measured lock is taken by a child process of the harness, also when there is only one, so
//! that all cells are measured alike. Parent and child talk in lines of JSON: the parent sends a
//! [`Job`], the child answers [`Answer::Ready`] when it is connected, the parent names the start on
//! the machine's monotonic clock, which both read, and the child answers [`Answer::Done`] with
//! everything it recorded. Then the parent reads the servers' counters and closes the conversation,
//! and the child gives back what it still holds: that is no part of the measurement.
//!
//! Redisson's workers are in Java, in `peers/redisson`, and keep to the same conversation.

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
