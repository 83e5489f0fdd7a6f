//! What a quorum must know of a node before it counts the node's answers: whether it may have lost
//! its data.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::backend_error::BackendError;

/// Tells which server is behind a node of a quorum, and for how long it has been up.
///
/// A server that was restarted has forgotten its locks, or some of them. If it could vote at once,
/// a lock that is still held through it could be granted again. The quorum therefore reads the
/// identity of a node before it counts an answer, and does not count answers of a server that is
/// younger than the longest lease.
///
/// # Contract
///
/// * [`generation`](Self::generation) changes before anything is sent over a connection that was
///   not there when it was last read, whoever made that connection and why. Two equal readings, one
///   before a call and one after its answer, mean that the call ran on the server that was
///   identified in that generation. A client that reconnects unseen must count its connections for
///   this.
/// * [`identity`](Self::identity) asks over the connection that carries the node's calls.
/// * The node is one server without automatic failover: a promoted replica is old but has lost
///   data.
/// * [`recall`](Self::recall) and [`note`](Self::note) keep what the quorum's clients saw of the
///   other nodes. A server's uptime is the difference of two readings of its clock, and a clock
///   that was wrong when the server started makes it too long. The other nodes know better when
///   they were first told of it. A probe that keeps nothing leaves both out.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use locktopus_contract::{BackendError, NodeIdentity, NodeProbe};
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

    /// Asks this server for the last [`note`](Self::note) about the node with this label.
    ///
    /// `None` if there is none, or if this probe keeps none, as by default.
    ///
    /// # Errors
    ///
    /// If it does not say before the deadline.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: it only asks.
    async fn recall(
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
    /// If it does not confirm before the deadline.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. The server then has the note, or has it not.
    async fn note(
        &self,
        label: &str,
        sighting: &Sighting,
        deadline: Instant,
    ) -> Result<(), BackendError> {
        let _ = (label, sighting, deadline);
        Ok(())
    }
}

/// A note that one server keeps about another one.
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
    /// [`NodeIdentity::run_id`] of the server that was seen.
    pub run_id: String,
    /// How long ago a client first saw it, by the clock of the server that keeps the note.
    /// [`Duration::MAX`] if that clock was set back since: then it tells who was there, and not for
    /// how long.
    pub age: Duration,
}

impl Sighting {
    /// A server that was first seen this long ago.
    #[must_use]
    pub fn new(run_id: impl Into<String>, age: Duration) -> Self {
        Self {
            run_id: run_id.into(),
            age,
        }
    }
}

/// Who a server is.
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
    /// Different after every start of the server. On Redis `run_id`.
    pub run_id: String,
    /// For how long the server has been up, at least: a value that is counted in whole seconds must
    /// be given a second less. On Redis `uptime_in_seconds`.
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
