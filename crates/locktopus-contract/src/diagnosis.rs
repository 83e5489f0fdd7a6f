//! What a backend found out about the place where it keeps locks.

use std::fmt;

/// The result of [`Diagnostics::diagnose`](crate::Diagnostics::diagnose).
///
/// ```
/// use locktopus_contract::{Diagnosis, Finding, Primary, Severity};
/// // What a backend answers.
/// let message = "memory is bounded and locks may be evicted; set the policy to noeviction";
/// let diagnosis = Diagnosis {
///     nodes: vec!["db:7000 mine 1.2".to_owned()],
///     findings: vec![Finding::new(Severity::Danger, "eviction", message)],
///     primaries: vec![Primary::answering("db:7000", Some("4f2a".to_owned())), Primary::silent("db:7001")],
/// };
/// assert_eq!(diagnosis.worst(), Some(Severity::Danger));
/// ```
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct Diagnosis {
    /// One entry a node, for example `127.0.0.1:6379 redis 7.0.15`.
    pub nodes: Vec<String>,
    /// What should be looked at, worst first.
    pub findings: Vec<Finding>,
    /// The servers that grant locks now, for those who watch failovers. Empty if there are none
    /// beside this process.
    pub primaries: Vec<Primary>,
}

/// A server that grants locks, as it was when it was asked.
///
/// ```
/// use locktopus_contract::Primary;
/// let up = Primary::answering("db:7000", Some("4f2a".to_owned()));
/// assert!(up.answered && !Primary::silent("db:7001").answered);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Primary {
    /// Where it is, for example `127.0.0.1:6379`; in a quorum, the node's label.
    pub address: String,
    /// Different after every start of the server. `None` if it did not say.
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
    /// What was found and what to do about it.
    pub message: String,
}

impl Finding {
    /// A finding of a check.
    ///
    /// ```
    /// use locktopus_contract::{Finding, Severity};
    /// let found = Finding::new(Severity::Danger, "eviction", "db:7000 evicts locks; set the policy to noeviction");
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
#[expect(
    clippy::exhaustive_enums,
    reason = "another case or field would make another type of it"
)]
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
