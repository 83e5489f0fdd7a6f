//! How far to trust a grant when a server fails, and the price of that trust.

use std::fmt;
use std::time::Duration;

use super::spelled::spelled;

/// How a backend avoids two holders of one lock after a failover.
///
/// You choose it when you connect, with the URL options `safety`, `replicas`, `replication_timeout`
/// and `quarantine_max_lease`. All programs that share locks must choose the same. Fencing tokens
/// grow with each grant. After a failover with `Plain` or `Replicated`, this holds only for
/// requests sent after the previous grant arrived, and as far as the servers' clocks agree.
///
/// ```
/// use std::time::Duration;
/// use locktopus_contract::{ReplicaNeed, SafetyMode};
///
/// assert_eq!(SafetyMode::default().to_string(), "plain");
/// let replicated = SafetyMode::Replicated {
///     need: ReplicaNeed::Majority,
///     timeout: Duration::from_millis(500),
/// };
/// assert_eq!(replicated.to_string(), "replicated to a majority within 500ms");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SafetyMode {
    /// A grant counts as soon as one server has made it. If that server fails before a replica
    /// receives the grant, the lock may be granted again while its holder still trusts it.
    #[default]
    Plain,
    /// A grant counts once enough replicas have confirmed it (`WAIT`). If they do not confirm in
    /// time, the grant is given back. A failover loses fewer locks, but may still lose some: it may
    /// promote a replica that has not confirmed, unless `need` is [`All`](ReplicaNeed::All).
    Replicated {
        /// How many replicas must confirm.
        need: ReplicaNeed,
        /// How long to wait for them.
        timeout: Duration,
    },
    /// After a failover, or anything else that may have made the server forget grants, nothing is
    /// granted until every possibly forgotten lease is over. Meanwhile, holders keep their locks
    /// and can extend and release them.
    ///
    /// With replicas, set `min-replicas-to-write`: a primary that is cut off must stop granting
    /// before another is promoted.
    ///
    /// If a replaced primary is promoted again, it may look as it did before. Only the Sentinels
    /// can tell then: clients show the server the Sentinels' configuration epoch. A client that
    /// hears of no failover in between (no Sentinels, or none reachable all that time) cannot tell
    /// either.
    Quarantine {
        /// The longest lease. Longer ones are refused. All programs that share the servers must
        /// choose the same.
        max_lease: Duration,
    },
    /// A majority of independent servers must agree. See `QuorumBackend` of `locktopus-quorum`.
    Quorum,
    /// The servers agree on every grant by a consensus protocol, such as Raft in etcd. They never
    /// forget a grant.
    Consensus,
    /// A grant counts once a standby has it, and only a standby that has every such grant can be
    /// promoted. For example, PostgreSQL with `synchronous_commit = remote_apply` and a cluster
    /// manager that respects it.
    Synchronous,
}

/// How many replicas must confirm a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ReplicaNeed {
    /// One.
    One,
    /// Enough that they and the primary are more than half of all: one of two, two of three.
    #[default]
    Majority,
    /// Every one.
    All,
}

impl ReplicaNeed {
    /// How many of `replicas`. Never zero: without replicas, no grant can be confirmed.
    ///
    /// ```
    /// use locktopus_contract::ReplicaNeed;
    /// assert_eq!([1, 2, 3, 4].map(|replicas| ReplicaNeed::Majority.of(replicas)), [1, 1, 2, 2]);
    /// assert_eq!(ReplicaNeed::All.of(0), 1);
    /// ```
    #[must_use]
    pub fn of(self, replicas: u32) -> u32 {
        let need = match self {
            Self::One => 1,
            Self::Majority => replicas.div_ceil(2),
            Self::All => replicas,
        };
        need.max(1)
    }
}

impl SafetyMode {
    /// The mode in one word, such as `plain` or `quarantine`.
    ///
    /// ```
    /// use locktopus_contract::SafetyMode;
    /// assert_eq!(SafetyMode::Plain.as_str(), "plain");
    /// assert_eq!(SafetyMode::Quorum.as_str(), "quorum");
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Replicated { .. } => "replicated",
            Self::Quarantine { .. } => "quarantine",
            Self::Quorum => "quorum",
            Self::Consensus => "consensus",
            Self::Synchronous => "synchronous",
        }
    }

    /// Whether no failover gives one lock to two holders, as long as clocks behave as the mode
    /// requires.
    ///
    /// ```
    /// use locktopus_contract::SafetyMode;
    /// assert!(SafetyMode::Quorum.survives_failover() && !SafetyMode::Plain.survives_failover());
    /// ```
    #[must_use]
    pub fn survives_failover(self) -> bool {
        !matches!(self, Self::Plain | Self::Replicated { .. })
    }

    /// Whether a waiter must confirm a grant that another holder's release pushed, before it trusts
    /// it.
    #[doc(hidden)]
    pub fn confirms_pushes(self) -> bool {
        matches!(self, Self::Replicated { .. })
    }

    /// Whether an attempt may undo its own grant.
    #[doc(hidden)]
    pub fn undoes_grants(self) -> bool {
        matches!(self, Self::Replicated { .. })
    }

    /// The longest lease that you can ask for, if the mode has a limit.
    #[doc(hidden)]
    pub fn longest_lease(self) -> Option<Duration> {
        match self {
            Self::Quarantine { max_lease } => Some(max_lease),
            _ => None,
        }
    }
}

impl fmt::Display for SafetyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicated { need, timeout } => {
                write!(f, "replicated to {need} within {}", spelled(*timeout))
            }
            Self::Quarantine { max_lease } => {
                write!(f, "quarantine of {}", spelled(*max_lease))
            }
            other => f.write_str(other.as_str()),
        }
    }
}

impl fmt::Display for ReplicaNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "one replica",
            Self::Majority => "a majority",
            Self::All => "all replicas",
        })
    }
}

/// Too few replicas confirmed a primary's writes. The [source](std::error::Error::source) of errors
/// of kind [`NotReplicated`](crate::BackendErrorKind::NotReplicated).
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::NotReplicated;
/// let error = NotReplicated::new("db:7000", 0, 1, Duration::from_millis(500)).of_connected(2);
/// assert_eq!((error.confirmed, error.needed), (0, 1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{confirmed} of {needed} needed replicas of {node} confirmed it within {waited:?} ({connected} are connected)"
)]
#[non_exhaustive]
pub struct NotReplicated {
    /// The primary, as `host:port`.
    pub node: String,
    /// How many replicas confirmed.
    pub confirmed: u32,
    /// How many had to confirm.
    pub needed: u32,
    /// How many were connected to the primary, if the backend asked.
    pub connected: ConnectedReplicas,
    /// How long the backend waited for them.
    pub waited: Duration,
}

/// How many replicas are connected to a primary.
///
/// ```
/// use std::time::Duration;
/// use locktopus_contract::{ConnectedReplicas, NotReplicated};
/// let mut error = NotReplicated::new("10.0.0.7:6379", 1, 2, Duration::from_millis(100));
/// error.connected = ConnectedReplicas::Count(1);
/// println!("{error}"); // says that one of two replicas is connected
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is complete")]
pub enum ConnectedReplicas {
    /// This many.
    Count(u32),
    /// The backend did not ask, because any one replica is enough.
    NotAsked,
}

impl fmt::Display for ConnectedReplicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::NotAsked => f.write_str("an unknown number"),
        }
    }
}

impl NotReplicated {
    /// An error: only `confirmed` of `needed` replicas of a primary confirmed.
    #[must_use]
    pub fn new(node: impl Into<String>, confirmed: u32, needed: u32, waited: Duration) -> Self {
        Self {
            node: node.into(),
            confirmed,
            needed,
            connected: ConnectedReplicas::NotAsked,
            waited,
        }
    }

    /// Adds how many replicas were connected.
    #[must_use]
    pub fn of_connected(mut self, count: u32) -> Self {
        self.connected = ConnectedReplicas::Count(count);
        self
    }
}
