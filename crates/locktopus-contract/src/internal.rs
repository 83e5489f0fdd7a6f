//! Items that the engine uses besides the contract. Not part of the API.

use std::error::Error;

pub use crate::owner::{OwnerIds, random};
pub use crate::runtime::{current, drives_itself};

/// The text of an error and of its causes, leaving out any that the text before already contains.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = cause.source();
    }
    text
}
