//! What is made of locks alone: one leader at a time, and work that is done once by many instances.
//!
//! | module | what is in it |
//! |---|---|
//! | `leader` | leader election: a mutex that is kept, and a loop that campaigns again |
//! | `while_held` | work that is dropped when the lease under it ends |
//! | `pauses` | what to do about an error: wait a little, or give up |
//!
//! Layers, lowest first: while_held, pauses, leader.

pub(crate) mod leader;
pub(crate) mod pauses;
pub(crate) mod while_held;
