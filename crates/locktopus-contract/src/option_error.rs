//! The error of an option with an impossible value.

use std::fmt;

use super::spelled::respelled;

/// An option with an impossible value.
///
/// ```
/// use locktopus_contract::OptionError;
/// // from a backend's own builder
/// let error = OptionError::new("pool_size", 0, "must be at least 1");
/// assert!(error.to_string().contains("pool_size"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{option} = {value}: {rule}")]
#[non_exhaustive]
pub struct OptionError {
    /// The option.
    pub option: &'static str,
    /// Its value.
    pub value: String,
    /// The rule that the value breaks.
    pub rule: String,
}

impl OptionError {
    /// An error for `option` with this `value`, which breaks `rule`. Durations become `40d` where
    /// `Debug` prints `3456000s`.
    #[must_use]
    pub fn new(option: &'static str, value: impl fmt::Debug, rule: impl Into<String>) -> Self {
        Self {
            option,
            value: respelled(&format!("{value:?}")),
            rule: respelled(&rule.into()),
        }
    }
}
