//! Something that must not be.

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// When, in ms.
    pub at: u64,
    /// Which rule is broken: the same word for the same rule.
    pub rule: &'static str,
    /// By whom and how.
    pub what: String,
}

impl Violation {
    /// `at`: in µs.
    pub(crate) fn new(at: u64, rule: &'static str, what: String) -> Self {
        Self {
            at: at / 1_000,
            rule,
            what,
        }
    }
}
