//! RedLock: one backend over several independent ones. A majority of them must agree. Use it for
//! locks that must stay exclusive even if a server loses its data, with three or more servers that
//! do not replicate each other.
//!
//! | module | why it exists |
//! |---|---|
//! | `builder`, `members` | the nodes and their background tasks |
//! | `node`, `eligibility` | one node, and whether its answers count |
//! | `witnesses` | the age of a node's server, by the notes on the other nodes |
//! | `claim`, `node_hold` | what the nodes may hold for one owner, and which task gives it back |
//! | `attempt`, `votes` | the round that takes a lock, and the result of its votes |
//! | `proposals` | the token that a round proposes, so that the nodes agree on it at once |
//! | `release`, `extend` | the other rounds |
//! | `views`, `diagnose` | the state as a majority sees it |
//! | `instances` | the records of instances |
//! | `fan_out`, `abstention` | calls to all nodes at once; why an answer does not count |
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod abstention;
mod attempt;
mod builder;
mod claim;
mod diagnose;
mod eligibility;
mod extend;
mod fan_out;
mod instances;
mod members;
mod node;
mod node_hold;
mod proposals;
mod release;
mod views;
mod votes;
mod witnesses;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;

use abstention::BACKEND_NAME;
pub use builder::QuorumBuilder;
use members::Members;
pub use views::NodeView;

use locktopus_contract::{
    AcquireAttempt, Announcement, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo,
    Diagnosis, Diagnostics, Directory, Eviction, Executed, ExtendOutcome, ExtendRequest,
    InstanceQuery, InstanceRecord, Instances, LockBackend, LockKind, LockPage, LockState,
    LockTarget, NameError, ReleaseOutcome, ReleaseRequest, ScanCursor,
};

/// Locks on a majority of several independent backends: RedLock. A backend like any other.
///
/// You hold a mutex when more than half of the nodes granted it and enough of its validity is left,
/// counted from before the first request. Fewer than half of the nodes may be down. The nodes may
/// use different clients. With a [single-key](locktopus_contract::MutexProfile::single_key)
/// profile, its locks also exclude those of other Redlock implementations on the same nodes, if
/// both treat restarts with the same care.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::sync::Arc;
/// use locktopus_core::Locktopus;
/// use locktopus_memory::MemoryBackend;
/// use locktopus_quorum::QuorumBackend;
///
/// let quorum = QuorumBackend::builder()
///     .node("a", Arc::new(MemoryBackend::new()))
///     .node("b", Arc::new(MemoryBackend::new()))
///     .node("c", Arc::new(MemoryBackend::new()))
///     .build()?;
/// assert_eq!((quorum.majority(), quorum.background_tasks()), (2, 0));
/// let locks = Locktopus::builder(quorum).build()?;
/// let guard = locks.mutex("invoice:42").acquire().await?;
/// assert!(guard.token().is_some());
/// guard.release().await?;
/// # Ok(()) }
/// ```
///
/// # Guarantees
///
/// Mutual exclusion, as long as three conditions hold. The clocks of clients and nodes run at the
/// same speed within the margin. Nodes never forget locks early. They are independent: no replicas
/// of one another, no shards of one cluster, no automatic failover. If a restart may make a node
/// forget, add it with a [probe](locktopus_contract::NodeProbe). It then votes only once its server
/// has been up for the [longest lease](QuorumBuilder::max_lease).
///
/// Configure all clients with the same nodes. Locktopus cannot check this: two clients with
/// different lists may both find a majority. Change one node at a time, and let the longest lease
/// pass between changes.
///
/// # Tokens
///
/// The client proposes the token: its clock plus some slack. So the nodes usually answer with the
/// same token, and taking a lock needs one round trip. If they do not, the client writes the
/// largest token of the majority back to a majority before it returns the token. So tokens grow
/// over the grants of a name, even after a bad proposal. A client whose clock differs from the
/// nodes' clocks by more than a second proposes nothing. A node that loses its counter falls back
/// on its clock. Then tokens grow only if the nodes' clocks differ by less than the time between
/// two holders. A single-key mutex has no token.
///
/// An owner that repeats its attempt gets the same token, if it asks the same `QuorumBackend`.
/// Through another one, it gets the same token or a larger one, because some nodes may have granted
/// it late, with larger tokens.
///
/// # Only mutexes
///
/// Other kinds are refused with [`NameError::UnsupportedKind`]: their queues, readers and counts
/// would differ on every node, and no order between nodes looks the same to all clients. For the
/// same reason there is no queue. Waiters retry after random, growing pauses, because clients that
/// ask at the same time can take the majority from each other.
///
/// # Cancel safety
///
/// You may drop a round at any time. The quorum gives back what the round took, in the background
/// and node by node, until each node has answered or the lease is over.
#[derive(Clone)]
pub struct QuorumBackend {
    info: BackendInfo,
    members: Arc<Members>,
}

impl QuorumBackend {
    /// Starts building a quorum.
    pub fn builder() -> QuorumBuilder {
        QuorumBuilder::default()
    }

    /// How many nodes must agree.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.members.majority()
    }

    /// Asks every node for the state of a lock. [`inspect`](LockBackend::inspect) returns the
    /// majority's view.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// use std::sync::Arc;
    /// use locktopus_contract::{LockKind, LockName, LockTarget};
    /// use locktopus_memory::MemoryBackend;
    /// use locktopus_quorum::{NodeView, QuorumBackend};
    ///
    /// let quorum = QuorumBackend::builder()
    ///     .node("a", Arc::new(MemoryBackend::new()))
    ///     .node("b", Arc::new(MemoryBackend::new()))
    ///     .node("c", Arc::new(MemoryBackend::new()))
    ///     .build()?;
    /// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Mutex(Arc::default()));
    /// let deadline = tokio::time::Instant::now() + Duration::from_secs(1);
    /// for NodeView { label, state, .. } in quorum.inspect_nodes(&target, deadline).await? {
    ///     assert!(state.is_ok_and(|state| state.holders.is_empty()), "{label}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BackendErrorKind::Closed`]. Failures of nodes are part of the answer.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn inspect_nodes(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Vec<NodeView>, BackendError> {
        views::nodes(&self.members, target, deadline).await
    }

    /// The number of rounds and releases that run in the background.
    #[must_use]
    pub fn background_tasks(&self) -> usize {
        self.members.tasks.len()
    }
}

#[async_trait]
impl LockBackend for QuorumBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        if let Some(reason) = why_refused(target.kind()) {
            return Err(NameError::UnsupportedKind {
                name: target.name().as_str().to_owned(),
                kind: target.kind().clone(),
                backend: BACKEND_NAME,
                reason,
            });
        }
        let mut nodes = self.members.nodes.iter();
        nodes.try_for_each(|node| node.backend.check(target))
    }

    fn shard(&self, target: &LockTarget) -> u32 {
        // This need not be exact: each node's batches are split by that node's own shards.
        self.members.nodes[0].backend.shard(target)
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        supported(attempt.target.kind())?;
        attempt::attempt(&self.members, attempt).await
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        supported(request.target.kind())?;
        release::release(&self.members, request).await
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        extend::extend(&self.members, batch, deadline).await
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        supported(target.kind())?;
        views::inspect(&self.members, target, deadline).await
    }

    async fn close(&self) {
        // Give pending releases a moment. One dead node must not keep the process from ending.
        self.members.tasks.close();
        let _ = tokio::time::timeout(self.members.node_timeout, self.members.tasks.wait()).await;
        self.members.closed.cancel();
        let closing = self.members.nodes.iter().map(|node| node.backend.close());
        futures_util::future::join_all(closing).await;
    }

    fn directory(&self) -> Option<&dyn Directory> {
        Some(self)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        // Only nodes that keep records take part.
        let mut nodes = self.members.nodes.iter();
        let keeps = nodes.any(|node| node.backend.instances().is_some());
        keeps.then_some(self as _)
    }

    fn diagnosis(&self) -> Option<&dyn Diagnostics> {
        Some(self)
    }
}

#[async_trait]
impl Directory for QuorumBackend {
    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        views::scan(&self.members, prefix, cursor, deadline).await
    }

    async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        supported(target.kind())?;
        views::evict(&self.members, target, deadline).await
    }
}

#[async_trait]
impl Instances for QuorumBackend {
    async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError> {
        instances::announce(&self.members, announcement).await
    }

    async fn records(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        instances::ask(&self.members, query).await
    }
}

#[async_trait]
impl Diagnostics for QuorumBackend {
    async fn diagnose(&self, deadline: Instant) -> Result<Diagnosis, BackendError> {
        diagnose::diagnose(&self.members, deadline).await
    }
}

impl fmt::Debug for QuorumBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuorumBackend")
            .field("nodes", &self.members.nodes)
            .field("node_timeout", &self.members.node_timeout)
            .field("max_lease", &self.members.max_lease)
            .finish_non_exhaustive()
    }
}

fn supported(kind: &LockKind) -> Result<(), BackendError> {
    why_refused(kind).map_or(Ok(()), |why| Err(unsupported(why)))
}

fn unsupported(why: &str) -> BackendError {
    let (kind, executed) = (BackendErrorKind::Unsupported, Executed::No);
    BackendError::new(BACKEND_NAME, kind, executed, why)
}

/// The reason why a kind of lock would be unsound on a quorum, or not what its name says.
fn why_refused(kind: &LockKind) -> Option<&'static str> {
    match kind {
        LockKind::Mutex(_) => None,
        LockKind::Reentrant => Some(
            "a quorum keeps plain mutexes, as all implementations of Redlock do; use `mutex` instead of `lock`",
        ),
        LockKind::Fair => Some(
            "every node would have a queue of its own, in an order of its own, so arrival order cannot be kept; use \
             `mutex`, or a fair lock on a single backend",
        ),
        LockKind::Read | LockKind::Write => Some(
            "readers and writers that each have some of the nodes would block one another for ever; use `mutex`, or a \
             read-write lock on a single backend",
        ),
        LockKind::Semaphore | LockKind::PermitSemaphore => Some(
            "majorities for several permits overlap, and their counts cannot be kept alike; use a semaphore on a \
             single backend",
        ),
        LockKind::RateLimiter => Some(
            "majorities for several permits overlap, and each node has a clock of its own; use a rate limiter on a single \
             backend",
        ),
        LockKind::Latch => Some(
            "a count that must be the same on every node cannot be kept by majority; use a latch on a single backend",
        ),
        _ => Some("nobody has shown yet that a majority can keep it; use it on a single backend"),
    }
}
