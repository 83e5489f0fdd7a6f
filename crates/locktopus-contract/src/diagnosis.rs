//! The result of a backend's checks of its store.

use std::fmt;

/// The result of [`Diagnostics::diagnose`](crate::Diagnostics::diagnose).
///
/// ```
/// use locktopus_contract::{Diagnosis, Finding, Primary, Severity};
/// // The answer of a backend.
/// let message = "memory is bounded and locks may be evicted; set the policy to noeviction";
/// let diagnosis = Diagnosis {
///     nodes: vec!["db:7000 mine 1.2".to_owned()],
///     findings: vec![Finding::new(Severity::Danger, "eviction", message)],
///     primaries: vec![
///         Primary::answering("db:7000", Some("4f2a".to_owned())),
///         Primary::silent("db:7001"),
///     ],
/// };
/// assert_eq!(diagnosis.worst(), Some(Severity::Danger));
/// ```
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct Diagnosis {
    /// One entry for each node, for example `127.0.0.1:6379 redis 7.0.15`.
    pub nodes: Vec<String>,
    /// Problems and notes, worst first.
    pub findings: Vec<Finding>,
    /// The servers that grant locks now, for code that watches for failovers. Empty if the locks
    /// live in this process.
    pub primaries: Vec<Primary>,
}

/// A server that grants locks, at the time of the check.
///
/// ```
/// use locktopus_contract::Primary;
/// let up = Primary::answering("db:7000", Some("4f2a".to_owned()));
/// assert!(up.answered && !Primary::silent("db:7001").answered);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Primary {
    /// Its address, for example `127.0.0.1:6379`. In a quorum, the node's label.
    pub address: String,
    /// Changes with every start of the server. `None` if the server did not say.
    pub run_id: Option<String>,
    /// Whether it answered.
    pub answered: bool,
}

impl Primary {
    /// A server that answered.
    #[must_use]
    pub fn answering(address: impl Into<String>, run_id: Option<String>) -> Self {
        Self {
            address: address.into(),
            run_id,
            answered: true,
        }
    }

    /// A server that did not answer.
    #[must_use]
    pub fn silent(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            run_id: None,
            answered: false,
        }
    }
}

/// One thing that can break locks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Stable identifier: `eviction`, `version`, `clock`, `permission`, ...
    pub check: &'static str,
    /// The problem, and what to do about it.
    pub message: String,
}

impl Finding {
    /// A finding of a check.
    ///
    /// ```
    /// use locktopus_contract::{Finding, Severity};
    /// let found = Finding::new(
    ///     Severity::Danger,
    ///     "eviction",
    ///     "db:7000 evicts locks; set the policy to noeviction",
    /// );
    /// assert_eq!(found.check, "eviction");
    /// ```
    #[must_use]
    pub fn new(severity: Severity, check: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity,
            check,
            message: message.into(),
        }
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "it is complete")]
pub enum Severity {
    /// The check could not run, or the finding is only information.
    Note,
    /// Locks work, but this will cause trouble one day.
    Warning,
    /// Locks can be lost without notice.
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
