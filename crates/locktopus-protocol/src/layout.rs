//! Where a lock is kept: the names of its keys and channels, and the hash slot that a cluster keeps them in.

pub(crate) mod keys;
pub mod slot;
