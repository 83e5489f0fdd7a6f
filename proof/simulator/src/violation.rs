//! A broken rule.

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// When, in ms.
    pub at: u64,
    /// The name of the rule.
    pub rule: &'static str,
    /// The details: who broke it, and how.
    pub what: String,
}

impl Violation {
    /// `at` is in µs.
    pub(crate) fn new(at: u64, rule: &'static str, what: String) -> Self {
        Self {
            at: at / 1_000,
            rule,
            what,
        }
    }
}
