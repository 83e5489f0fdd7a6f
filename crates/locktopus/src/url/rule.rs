//! What the parts of a URL's options say of a value that they refuse.

/// What the value must be. The option's name is put before it.
pub(super) type Rule = &'static str;
