//! Items that the engine uses besides the contract. Not part of the API.

pub use crate::owner::{OwnerIds, random};
pub use crate::runtime::{current, drives_itself};
