//! What a backend found out about the place where it keeps locks.

use std::fmt;

/// The result of [`LockBackend::diagnose`](crate::LockBackend::diagnose).
#[derive(Debug, Clone, Default)]
pub struct Diagnosis {
    /// One entry a node, for example `127.0.0.1:6379 redis 7.0.15`.
    pub nodes: Vec<String>,
    /// What should be looked at, worst first.
    pub findings: Vec<Finding>,
}

/// One thing that can break locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Stable identifier: `eviction`, `version`, `clock`, `permission`, ...
    pub check: &'static str,
    /// What was found and what to do about it.
    pub message: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The check could not be made, or the finding is for information.
    Note,
    /// Locks work, but something will hurt one day.
    Warning,
    /// Locks can be lost silently.
    Danger,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Danger => "danger",
        };
        write!(f, "{severity} [{}]: {}", self.check, self.message)
    }
}

impl Diagnosis {
    /// The worst severity found.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}
