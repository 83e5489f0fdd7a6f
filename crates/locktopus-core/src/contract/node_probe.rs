//! What a quorum must know of a node before it counts the node's answers: whether it may have lost its data.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::contract::backend_error::BackendError;

/// Tells which server is behind a node of a quorum, and for how long it has been up.
///
/// A server that was restarted has forgotten its locks, or some of them. If it could vote at once, a lock that
/// is still held through it could be granted again. The quorum therefore reads the identity of a node before
/// it counts an answer, and does not count answers of a server that is younger than the longest lease.
///
/// # Contract
///
/// * [`generation`](Self::generation) changes before anything is sent over a connection that was not there when it
///   was last read, whoever made that connection and why. Two equal readings, one before a call and one after its
///   answer, mean that the call ran on the server that was identified in that generation. A client that
///   reconnects unseen must count its connections for this.
/// * [`identity`](Self::identity) asks over the connection that carries the node's calls.
/// * The node is one server without automatic failover: a promoted replica is old but has lost data.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use locktopus_core::{BackendError, NodeIdentity, NodeProbe};
/// use tokio::time::Instant;
///
/// /// A server in this process, which has been up since it began.
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
    /// Names the present connection. Sends nothing.
    fn generation(&self) -> u64;

    /// Asks the server who it is.
    ///
    /// # Errors
    ///
    /// If it does not say before the deadline. Its answers do not count then.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: it only asks.
    async fn identity(&self, deadline: Instant) -> Result<NodeIdentity, BackendError>;
}

/// Who a server is.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_core::NodeIdentity;
/// let server = NodeIdentity::new("4f2a", Duration::from_secs(3600)).with_replication_id("77c1");
/// assert_eq!(server.replication_id.as_deref(), Some("77c1"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeIdentity {
    /// Different after every start of the server. On Redis `run_id`.
    pub run_id: String,
    /// For how long the server has been up, at least: a value that is counted in whole seconds must be given a
    /// second less. On Redis `uptime_in_seconds`.
    pub uptime: Duration,
    /// The same for servers that replicate each other. On Redis `master_replid`.
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

    /// Says which data it replicates.
    #[must_use]
    pub fn with_replication_id(mut self, id: impl Into<String>) -> Self {
        self.replication_id = Some(id.into());
        self
    }
}
