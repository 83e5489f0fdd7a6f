//! Tells a quorum whether a node may have lost its data, before its answers count.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::backend_error::BackendError;

/// Tells which server is behind a node of a quorum, and how long it has been up.
///
/// A restarted server has forgotten some or all of its locks. If it could vote at once, a lock that
/// is still held through it could be granted again. So the quorum reads a node's identity before it
/// counts an answer, and ignores servers that are younger than the longest lease.
///
/// # Contract
///
/// * [`generation`](Self::generation) changes whenever the connection is replaced, for any reason,
///   and before anything is sent over the new one. If it reads the same before a call and after its
///   answer, then the call ran on the server identified in that generation. A client that
///   reconnects silently must count its connections for this.
/// * [`identity`](Self::identity) asks over the connection that carries the node's calls.
/// * The node is one server without automatic failover: a promoted replica is old enough but has
///   lost data.
/// * [`sighting`](Self::sighting) and [`note_sighting`](Self::note_sighting) store what the
///   quorum's clients saw of the other nodes. A server's uptime is the difference of two readings
///   of its clock. If that clock was wrong at the start, the uptime is too long. The other nodes
///   know better, because they noted when a client first told them of the server. A probe that
///   stores nothing implements neither.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use locktopus_contract::{BackendError, NodeIdentity, NodeProbe};
/// use tokio::time::Instant;
///
/// /// A server in this process, up since the process began.
/// #[derive(Debug)]
/// struct Embedded {
///     began: Instant,
/// }
///
/// #[async_trait::async_trait]
/// impl NodeProbe for Embedded {
///     fn generation(&self) -> u64 {
///         0 // there is no connection that could break
///     }
///
///     async fn identity(&self, _deadline: Instant) -> Result<NodeIdentity, BackendError> {
///         Ok(NodeIdentity::new("embedded", self.began.elapsed()).with_replication_id("embedded"))
///     }
/// }
/// ```
#[async_trait]
pub trait NodeProbe: fmt::Debug + Send + Sync + 'static {
    /// Identifies the present connection. Sends nothing.
    fn generation(&self) -> u64;

    /// Asks the server for its identity.
    ///
    /// # Errors
    ///
    /// If the server does not answer before the deadline. Then its answers do not count.
    ///
    /// # Cancel safety
    ///
    /// You may drop it at any time: it only reads.
    async fn identity(&self, deadline: Instant) -> Result<NodeIdentity, BackendError>;

    /// Asks this server for the last note about the node with this label.
    ///
    /// `None` if there is none. The default implementation stores none.
    ///
    /// # Errors
    ///
    /// If the server does not answer before the deadline.
    ///
    /// # Cancel safety
    ///
    /// You may drop it at any time: it only reads.
    async fn sighting(
        &self,
        label: &str,
        deadline: Instant,
    ) -> Result<Option<Sighting>, BackendError> {
        let _ = (label, deadline);
        Ok(None)
    }

    /// Tells this server which server is behind the node with this label.
    ///
    /// # Errors
    ///
    /// If the server does not confirm before the deadline.
    ///
    /// # Cancel safety
    ///
    /// You may drop it at any time. The server may or may not have the note then.
    async fn note_sighting(
        &self,
        label: &str,
        sighting: &Sighting,
        deadline: Instant,
    ) -> Result<(), BackendError> {
        let _ = (label, sighting, deadline);
        Ok(())
    }
}

/// A note on one server about another one.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::Sighting;
/// let seen = Sighting::new("4f2a", Duration::from_secs(60)); // first seen a minute ago
/// assert_eq!(seen.run_id, "4f2a");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sighting {
    /// The [`NodeIdentity::run_id`] of the server that a client saw.
    pub run_id: String,
    /// How long ago a client first saw it, by the clock of the server with the note.
    /// [`Duration::MAX`] if that clock was set back since: then the note tells which server it was,
    /// but not for how long.
    pub age: Duration,
}

impl Sighting {
    /// A server that a client first saw this long ago.
    #[must_use]
    pub fn new(run_id: impl Into<String>, age: Duration) -> Self {
        Self {
            run_id: run_id.into(),
            age,
        }
    }
}

/// The identity of a server.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::NodeIdentity;
/// let server = NodeIdentity::new("4f2a", Duration::from_secs(3600)).with_replication_id("77c1");
/// assert_eq!(server.replication_id.as_deref(), Some("77c1"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeIdentity {
    /// Changes with every start of the server. On Redis `run_id`.
    pub run_id: String,
    /// How long the server has been up, at least. If the store counts whole seconds, subtract one.
    /// On Redis `uptime_in_seconds`.
    pub uptime: Duration,
    /// The same for all servers that replicate each other. On Redis `master_replid`.
    pub replication_id: Option<String>,
}

impl NodeIdentity {
    /// A server that has been up for at least this long.
    #[must_use]
    pub fn new(run_id: impl Into<String>, uptime: Duration) -> Self {
        Self {
            run_id: run_id.into(),
            uptime,
            replication_id: None,
        }
    }

    /// Sets the id of the data that it replicates.
    #[must_use]
    pub fn with_replication_id(mut self, id: impl Into<String>) -> Self {
        self.replication_id = Some(id.into());
        self
    }
}
