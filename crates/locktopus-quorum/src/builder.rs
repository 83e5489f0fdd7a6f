//! Builds a quorum.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::QuorumBackend;
use super::abstention::BACKEND_NAME;
use super::claim::Ledger;
use super::eligibility::Eligibility;
use super::members::{Members, SPARE_TIME};
use super::node::{Node, SeenServers};
use super::proposals::Proposals;
use super::witnesses::Witnesses;
use locktopus_contract::NodeProbe;
use locktopus_contract::{
    BackendInfo, DynBackend, OptionError, PerRuntime, SafetyMode, TokenRetention, ValidityMargin,
};

/// The longest sensible time for an answer.
const LONGEST_CALL: Duration = Duration::from_secs(60 * 60);

/// A node before the checks: its label, its backend, and the probe that tells how long it has been
/// up.
type NamedNode = (String, DynBackend, Option<Arc<dyn NodeProbe>>);

/// Builds a [`QuorumBackend`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use std::sync::Arc;
/// use locktopus_memory::MemoryBackend;
/// use locktopus_quorum::QuorumBackend;
///
/// let quorum = QuorumBackend::builder()
///     .node("a", Arc::new(MemoryBackend::new()))
///     .node("b", Arc::new(MemoryBackend::new()))
///     .node("c", Arc::new(MemoryBackend::new()))
///     .node_timeout(Duration::from_millis(100)) // for each answer
///     .max_lease(Duration::from_secs(30)) // the same in every client
///     .build()?;
/// assert_eq!((quorum.majority(), quorum.background_tasks()), (2, 0));
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct QuorumBuilder {
    nodes: Vec<NamedNode>,
    node_timeout: Option<Duration>,
    max_lease: Duration,
    probe_every: Duration,
    margin: ValidityMargin,
}

impl Default for QuorumBuilder {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            node_timeout: None,
            max_lease: Duration::from_secs(60),
            probe_every: Duration::from_secs(30),
            margin: ValidityMargin::default(),
        }
    }
}

impl QuorumBuilder {
    /// Adds a node that is assumed never to forget a lock before its lease ends, not even in a
    /// restart: a backend in this process, or a server that writes every command to disk before it
    /// answers. Errors name the node by its label.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use locktopus_memory::MemoryBackend;
    /// use locktopus_quorum::QuorumBackend;
    ///
    /// let builder = QuorumBackend::builder().node("a", Arc::new(MemoryBackend::new()));
    /// # drop(builder);
    /// ```
    pub fn node(mut self, label: impl Into<String>, backend: DynBackend) -> Self {
        self.nodes.push((label.into(), backend, None));
        self
    }

    /// Adds a node that may forget. It votes only once its server has been up for the [longest
    /// lease](Self::max_lease), according to `probe`. This applies to its very first start too,
    /// because that looks like a restart.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use locktopus_contract::{BackendError, NodeIdentity, NodeProbe};
    /// use locktopus_memory::MemoryBackend;
    /// use locktopus_quorum::QuorumBackend;
    /// use tokio::time::Instant;
    ///
    /// /// A store inside this program. It forgets everything when the program restarts.
    /// /// The probe of a server asks for its identity and uptime, and counts its connections.
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
    ///         Ok(NodeIdentity::new("embedded", self.began.elapsed()))
    ///     }
    /// }
    ///
    /// let probe = Arc::new(Embedded { began: Instant::now() });
    /// let builder =
    ///     QuorumBackend::builder().probed_node("a", Arc::new(MemoryBackend::new()), probe);
    /// # drop(builder);
    /// ```
    pub fn probed_node(
        mut self,
        label: impl Into<String>,
        backend: DynBackend,
        probe: Arc<dyn NodeProbe>,
    ) -> Self {
        self.nodes.push((label.into(), backend, Some(probe)));
        self
    }

    /// How long to wait for the answer of one node. For leases below four times this long, a
    /// quarter of the lease. Slower nodes do not count in this round. So the shortest usable lease
    /// is a little over four times as long as an exchange with the nodes takes.
    ///
    /// Default: the longest call timeout of the nodes, which the option `timeout` of their URLs
    /// sets (1 s by default). A shorter value ends rounds sooner when a node is down, and leaves
    /// out nodes that are far away.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let builder =
    ///     locktopus_quorum::QuorumBackend::builder().node_timeout(Duration::from_millis(200));
    /// # drop(builder);
    /// ```
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.node_timeout = Some(timeout);
        self
    }

    /// The longest lease of any client of these nodes. Longer ones are refused. A restarted node
    /// does not vote for this long. All clients must use the same value. Default 60 s.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let builder = locktopus_quorum::QuorumBackend::builder().max_lease(Duration::from_secs(30));
    /// # drop(builder);
    /// ```
    pub fn max_lease(mut self, lease: Duration) -> Self {
        self.max_lease = lease;
        self
    }

    /// How often to ask a probed node for its identity even if nothing happened to it. You need
    /// this only if a proxy could hide a broken connection. Default 30 s.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let builder =
    ///     locktopus_quorum::QuorumBackend::builder().probe_every(Duration::from_secs(10));
    /// # drop(builder);
    /// ```
    pub fn probe_every(mut self, period: Duration) -> Self {
        self.probe_every = period;
        self
    }

    /// How much earlier than the nodes this client considers a grant over. The default is that of
    /// `LocktopusBuilder::validity_margin`; use the same value for both.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let margin = locktopus_contract::ValidityMargin {
    ///     clock_step: Duration::from_millis(20),
    ///     ..Default::default()
    /// };
    /// let builder = locktopus_quorum::QuorumBackend::builder().validity_margin(margin);
    /// # drop(builder);
    /// ```
    pub fn validity_margin(mut self, margin: ValidityMargin) -> Self {
        self.margin = margin;
        self
    }

    /// Checks the nodes and builds the quorum. Sends nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use locktopus_memory::MemoryBackend;
    /// use locktopus_quorum::QuorumBackend;
    ///
    /// let one = QuorumBackend::builder().node("a", Arc::new(MemoryBackend::new()));
    /// assert!(one.build().is_err()); // one node is no quorum
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// If the number of nodes is even or below three (one node fewer would tolerate as many
    /// failures), if labels are empty or equal, if two nodes are the same backend, or if a duration
    /// is impossible.
    pub fn build(self) -> Result<QuorumBackend, OptionError> {
        self.check()?;
        let Self {
            nodes,
            node_timeout,
            max_lease,
            probe_every,
            margin,
        } = self;
        let slowest = nodes
            .iter()
            .map(|(_, backend, _)| backend.info().call_timeout)
            .max()
            .unwrap_or_default();
        let node_timeout = node_timeout.unwrap_or(slowest).min(LONGEST_CALL);
        // Linger no longer than any node can, nor longer than restarted nodes abstain.
        let linger = nodes
            .iter()
            .map(|(_, backend, _)| backend.info().longest_linger)
            .fold(max_lease, Duration::min);
        // Extensions follow the node that forgets tokens first.
        let remembered = nodes
            .iter()
            .map(|(_, backend, _)| backend.info().token_retention)
            .min()
            .unwrap_or(TokenRetention::Forever);
        let call_timeout = node_timeout * 2 + SPARE_TIME;
        let info = BackendInfo {
            safety: SafetyMode::Quorum,
            longest_linger: linger,
            token_retention: remembered,
            ..BackendInfo::new(BACKEND_NAME, describe(&nodes), call_timeout)
        };
        let servers = SeenServers::default();
        let probes = nodes.iter().enumerate();
        let probes =
            probes.filter_map(|(index, (_, _, probe))| Some((index, Arc::clone(probe.as_ref()?))));
        let witnesses: Witnesses = probes.collect();
        let node = |(index, (label, backend, probe)): (usize, NamedNode)| {
            Arc::new(Node {
                label: label.into(),
                backend,
                probe,
                index,
                max_lease,
                recheck: probe_every,
                servers: Arc::clone(&servers),
                witnesses: Arc::clone(&witnesses),
                eligibility: Mutex::new(Eligibility::default()),
                asking: Arc::default(),
                timeout: node_timeout,
                silent: AtomicBool::new(false),
            })
        };
        let members = Members {
            nodes: nodes.into_iter().enumerate().map(node).collect(),
            node_timeout,
            max_lease,
            margin,
            ledger: Ledger::default(),
            proposals: Proposals::default(),
            tasks: TaskTracker::new(),
            closed: CancellationToken::new(),
            runtimes: PerRuntime::new(),
            unclean: Mutex::default(),
        };
        let members = Arc::new(members);
        Ok(QuorumBackend { info, members })
    }

    fn check(&self) -> Result<(), OptionError> {
        let count = self.nodes.len();
        if count < 3 || count.is_multiple_of(2) {
            let rule = "a quorum needs an odd number of nodes, at least 3";
            return Err(OptionError::new("nodes", count, rule));
        }
        let (mut labels, mut backends) = (HashSet::new(), HashSet::new());
        for (label, backend, _) in &self.nodes {
            if label.is_empty() || !labels.insert(label) {
                let rule = "every node needs a label of its own";
                return Err(OptionError::new("node", label, rule));
            }
            if !backends.insert(Arc::as_ptr(backend).cast::<()>()) {
                let rule = "the same backend is a node already; nodes must fail independently";
                return Err(OptionError::new("node", label, rule));
            }
        }
        let year = Duration::from_secs(365 * 24 * 60 * 60);
        let node_timeout = self.node_timeout.unwrap_or(LONGEST_CALL);
        for (option, value, most) in [
            ("node_timeout", node_timeout, LONGEST_CALL),
            ("max_lease", self.max_lease, year),
            ("probe_every", self.probe_every, year),
        ] {
            if value < Duration::from_millis(1) || value > most {
                let rule = format!("must be between 1 ms and {most:?}");
                return Err(OptionError::new(option, value, rule));
            }
        }
        if self.margin.validity(self.max_lease).is_zero() {
            let rule = "the validity margin leaves nothing of it";
            return Err(OptionError::new("max_lease", self.max_lease, rule));
        }
        Ok(())
    }
}

fn describe(nodes: &[NamedNode]) -> String {
    let all: Vec<_> = nodes
        .iter()
        .map(|(label, backend, _)| match &*backend.info().description {
            same if same == label => label.clone(),
            other => format!("{label}: {other}"),
        })
        .collect();
    format!("quorum of {} ({})", all.len(), all.join(", "))
}
