//! Rules that a value of an option may break.

/// The rule, to be written after the name of the option.
pub(super) type Rule = &'static str;
