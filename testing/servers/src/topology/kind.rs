//! Which arrangement of servers to start.
//!
//! Callers name a kind on a command line or in a test table; the planner turns it into nodes.

use std::fmt;

use crate::topology::error::TopologyError;

/// An arrangement of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TopologyKind {
    /// One server.
    Standalone,
    /// One primary with replicas, watched by sentinels.
    Sentinel {
        /// Replicas of the one primary.
        replicas: u8,
        /// Sentinel processes.
        sentinels: u8,
    },
    /// A sharded cluster.
    Cluster {
        /// Shards; at least three, because fewer cannot elect.
        primaries: u8,
        /// Replicas of every primary.
        replicas_each: u8,
    },
    /// Independent servers.
    Quorum {
        /// Number of servers.
        nodes: u8,
    },
    /// One server whose client port speaks TLS, with a certificate made at start.
    Tls,
}

impl TopologyKind {
    /// One of each kind, in its default size.
    pub const ALL: [Self; 5] = [
        Self::Standalone,
        Self::SENTINEL,
        Self::CLUSTER,
        Self::QUORUM,
        Self::Tls,
    ];
    /// One primary, two replicas, three sentinels.
    pub const SENTINEL: Self = Self::Sentinel {
        replicas: 2,
        sentinels: 3,
    };
    /// Three primaries with one replica each.
    pub const CLUSTER: Self = Self::Cluster {
        primaries: 3,
        replicas_each: 1,
    };
    /// Five independent servers.
    pub const QUORUM: Self = Self::Quorum { nodes: 5 };

    /// The word that [`FromStr`](std::str::FromStr) takes and [`fmt::Display`] prints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Sentinel { .. } => "sentinel",
            Self::Cluster { .. } => "cluster",
            Self::Quorum { .. } => "quorum",
            Self::Tls => "tls",
        }
    }

    /// Servers that hold data, sentinels not counted.
    #[must_use]
    pub const fn data_nodes(self) -> u16 {
        match self {
            Self::Standalone | Self::Tls => 1,
            Self::Sentinel { replicas, .. } => 1 + replicas as u16,
            Self::Cluster {
                primaries,
                replicas_each,
            } => primaries as u16 * (1 + replicas_each as u16),
            Self::Quorum { nodes } => nodes as u16,
        }
    }

    /// Refuses sizes that cannot work.
    pub(crate) fn check(self) -> Result<(), TopologyError> {
        let problem = match self {
            Self::Cluster {
                primaries: 0..3, ..
            } => "a cluster needs at least 3 primaries",
            Self::Sentinel { sentinels: 0, .. } => "sentinel needs at least 1 sentinel",
            Self::Quorum { nodes: 0 } => "quorum needs at least 1 node",
            _ if self.data_nodes() > 64 => "more than 64 data nodes are not supported",
            _ => return Ok(()),
        };
        Err(TopologyError::BadSpec {
            problem: problem.to_owned(),
        })
    }
}

impl fmt::Display for TopologyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_sizes_are_refused() {
        let two = TopologyKind::Cluster {
            primaries: 2,
            replicas_each: 0,
        };
        assert!(two.check().is_err());
        assert!(TopologyKind::Quorum { nodes: 0 }.check().is_err());
    }
}
