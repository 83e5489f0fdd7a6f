//! Why an answer of a node does not count, and how the nodes' answers read in an error.

use std::fmt;
use std::time::Duration;

use locktopus_core::{BackendError, BackendErrorKind, Executed, LockTarget, OtherKind};

/// The name of quorums in errors and reports.
pub(super) const NAME: &str = "quorum";

/// A node that did not vote.
#[derive(Debug, Clone)]
pub(super) struct Abstention {
    reason: String,
    executed: Executed,
    /// The kind that the name is in use as on this node, if that conflict is the reason.
    found: Option<String>,
}

impl Abstention {
    /// It was not asked.
    pub(super) fn not_asked(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            executed: Executed::No,
            found: None,
        }
    }

    /// It was asked, and what came back is no vote.
    pub(super) fn void(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            executed: Executed::Maybe,
            found: None,
        }
    }

    /// It was asked, and took longer than it may.
    pub(super) fn late(after: Duration) -> Self {
        Self::void(format!("no answer within {after:.0?}"))
    }

    pub(super) fn not_yet(left: Duration) -> Self {
        let reason = format!(
            "its server has not been up for long enough, and does not vote for {left:.1?} more"
        );
        Self::not_asked(reason)
    }

    pub(super) fn may_have_run(&self) -> bool {
        self.executed == Executed::Maybe
    }
}

impl From<BackendError> for Abstention {
    fn from(error: BackendError) -> Self {
        Self {
            reason: error.to_string(),
            executed: error.executed(),
            found: std::error::Error::source(&error)
                .and_then(|source| source.downcast_ref())
                .map(|other: &OtherKind| other.found.clone()),
        }
    }
}

impl fmt::Display for Abstention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// The error that the name is in use as another kind, if that is so on so many nodes that no majority is left.
pub(super) fn other_kind<'a>(
    asked: &LockTarget,
    nodes: usize,
    abstentions: impl Iterator<Item = &'a Abstention>,
) -> Option<BackendError> {
    let found: Vec<_> = abstentions
        .filter_map(|abstention| abstention.found.as_deref())
        .collect();
    let blocked = found.len() >= nodes - nodes / 2;
    blocked.then(|| BackendError::other_kind(NAME, asked, found[0]))
}

/// The error that says what each node did.
pub(super) fn no_quorum(
    what: &str,
    needed: usize,
    executed: Executed,
    nodes: impl Iterator<Item = (impl fmt::Display, impl fmt::Display)>,
) -> BackendError {
    let nodes: Vec<_> = nodes
        .map(|(label, did)| format!("{label}: {did}"))
        .collect();
    let message = format!(
        "no quorum: {what} needs {needed} of {} nodes; {}",
        nodes.len(),
        nodes.join("; ")
    );
    BackendError::new(NAME, BackendErrorKind::NoQuorum, executed, message)
}
