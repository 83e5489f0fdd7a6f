//! What the engine uses beside the contract. It is no API.

pub use crate::owner::{OwnerIds, random};
pub use crate::runtime::{current, drives_itself};
