//! The ways to run servers, and their capabilities.
//!
//! A scenario checks [`Caps`] first and reports itself as skipped if a capability is missing.

use std::fmt;

/// A way to run servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProviderKind {
    /// Child processes on loopback. The only provider with meaningful latency figures.
    Plain,
    /// Containers that share one network namespace.
    Pod,
}

impl ProviderKind {
    /// The word that [`FromStr`](std::str::FromStr) takes and [`fmt::Display`] prints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Pod => "pod",
        }
    }
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A deployment's capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caps {
    /// [`Node::freeze`](super::Node::freeze) and [`Node::thaw`](super::Node::thaw).
    pub freeze: bool,
    /// [`Node::crash`](super::Node::crash).
    pub crash: bool,
    /// [`Node::stop`](super::Node::stop), [`Node::start`](super::Node::start) and
    /// [`Node::restart`](super::Node::restart).
    pub stop_start: bool,
    /// [`Node::stall`](super::Node::stall).
    pub stall: bool,
    /// [`Isolation::Peers`](super::Isolation::Peers).
    pub peer_partition: bool,
    /// [`Isolation::Clients`](super::Isolation::Clients).
    pub client_cut: bool,
    /// [`Node::set_clock_ahead`](super::Node::set_clock_ahead), for servers started with
    /// [`Knobs::settable_clock`](super::Knobs::settable_clock).
    pub set_clock: bool,
    /// A connection to a dead server is refused. False if a proxy in between may accept it and then
    /// close it, which takes client failover code down another branch.
    pub connect_refused_when_dead: bool,
    /// No proxy distorts round trips, so latency figures may be published.
    pub honest_latency: bool,
}

/// Which traffic [`Node::isolate`](super::Node::isolate) cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isolation {
    /// Traffic between this server and the other servers; clients still reach it.
    Peers,
    /// Traffic between this server and clients; other servers still reach it.
    Clients,
    /// Both.
    All,
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Peers => "peers",
            Self::Clients => "clients",
            Self::All => "all",
        })
    }
}
