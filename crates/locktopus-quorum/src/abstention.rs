//! Why a node's answer does not count, and how the nodes' answers read in an error.

use std::fmt;
use std::time::Duration;

use locktopus_contract::{BackendError, BackendErrorKind, Executed, LockTarget, OtherKind};

/// The name of quorums in errors and reports.
pub(super) const BACKEND_NAME: &str = "quorum";

/// A node's abstention.
#[derive(Debug, Clone)]
pub(super) struct Abstention {
    reason: String,
    executed: Executed,
    /// The kind as which this node uses the name, if that conflict is the reason.
    found: Option<String>,
    /// The time after which it votes, if time is all that is missing.
    votes_in: Option<Duration>,
    is_twin: bool,
}

impl Abstention {
    /// It was not asked.
    pub(super) fn not_asked(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            executed: Executed::No,
            found: None,
            votes_in: None,
            is_twin: false,
        }
    }

    /// It answered, but its answer is not a vote.
    pub(super) fn void(reason: impl Into<String>) -> Self {
        Self {
            executed: Executed::Maybe,
            ..Self::not_asked(reason)
        }
    }

    /// Its answer took too long.
    pub(super) fn late(after: Duration) -> Self {
        Self::void(format!("no answer within {after:.0?}"))
    }

    /// It does not vote for this much longer.
    pub(super) fn not_yet(left: Duration) -> Self {
        let reason = "its server has not been up for long enough";
        Self::until(reason, left)
    }

    /// It does not vote for this much longer, unless the silent nodes answer earlier.
    pub(super) fn unvouched(left: Duration) -> Self {
        let reason = "a node that may know of its restart is silent";
        Self::until(reason, left)
    }

    fn until(reason: &str, left: Duration) -> Self {
        Self {
            votes_in: Some(left),
            ..Self::not_asked(format!("{reason}, so it does not vote for {left:.1?} more"))
        }
    }

    /// Its server already votes through the other node.
    pub(super) fn twin_of(label: &str) -> Self {
        Self {
            is_twin: true,
            ..Self::not_asked(format!(
                "it is the same server as {label}, which votes already"
            ))
        }
    }

    pub(super) fn is_twin(&self) -> bool {
        self.is_twin
    }

    /// The time after which it votes, if time is all that is missing.
    pub(super) fn votes_in(&self) -> Option<Duration> {
        self.votes_in
    }

    pub(super) fn may_have_run(&self) -> bool {
        self.executed == Executed::Maybe
    }
}

impl From<BackendError> for Abstention {
    fn from(error: BackendError) -> Self {
        Self {
            executed: error.executed(),
            found: std::error::Error::source(&error)
                .and_then(|source| source.downcast_ref())
                .map(|other: &OtherKind| other.found.clone()),
            ..Self::not_asked(error.to_string())
        }
    }
}

impl fmt::Display for Abstention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// The error for a name in use as another kind, if so many nodes say so that no majority is left.
pub(super) fn other_kind<'a>(
    asked: &LockTarget,
    nodes: usize,
    abstentions: impl Iterator<Item = &'a Abstention>,
) -> Option<BackendError> {
    let found: Vec<_> = abstentions
        .filter_map(|abstention| abstention.found.as_deref())
        .collect();
    let blocked = found.len() >= nodes - nodes / 2;
    blocked.then(|| BackendError::other_kind(BACKEND_NAME, asked, found[0]))
}

/// An error that lists each node's answer. Equal answers appear once.
pub(super) fn no_quorum(
    what: &str,
    needed: usize,
    executed: Executed,
    nodes: impl Iterator<Item = (impl fmt::Display, impl fmt::Display)>,
) -> BackendError {
    let (mut count, mut reasons): (_, Vec<(String, String)>) = (0, Vec::new());
    for (label, did) in nodes {
        let did = did.to_string();
        count += 1;
        match reasons.iter_mut().find(|(_, known)| *known == did) {
            Some((labels, _)) => *labels += &format!(", {label}"),
            None => reasons.push((label.to_string(), did)),
        }
    }
    let reasons = reasons
        .iter()
        .map(|(labels, did)| format!("{labels}: {did}"));
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    let message = format!("no quorum: {what} needs {needed} of {count} nodes; {reasons}");
    BackendError::new(BACKEND_NAME, BackendErrorKind::NoQuorum, executed, message)
}
