//! Where a lock is kept: how its keys are tagged, and the hash slot that a cluster keeps them in.

pub mod slot;
pub(crate) mod tag;
