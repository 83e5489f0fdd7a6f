//! The error of an option with an impossible value.

use std::fmt;

use super::spelled::respelled;

/// An option with an impossible value.
///
/// ```
/// use locktopus_contract::OptionError;
/// let error = OptionError::new("pool_size", 0, "must be at least 1"); // of a backend's own builder
/// assert!(error.to_string().contains("pool_size"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{option} = {value}: {rule}")]
#[non_exhaustive]
pub struct OptionError {
    /// Which option.
    pub option: &'static str,
    /// The value that was given.
    pub value: String,
    /// What it must be.
    pub rule: String,
}

impl OptionError {
    /// An error for `option`, given as `value`, that must follow `rule`. Times in both become `40d`
    /// where `Debug` has `3456000s`.
    #[must_use]
    pub fn new(option: &'static str, value: impl fmt::Debug, rule: impl Into<String>) -> Self {
        Self {
            option,
            value: respelled(&format!("{value:?}")),
            rule: respelled(&rule.into()),
        }
    }
}
