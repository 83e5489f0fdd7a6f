//! How keys are tagged, and which hash slot of a cluster they belong to.

pub mod slot;
pub(crate) mod tag;
