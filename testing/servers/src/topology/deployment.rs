//! A running topology: the handle that scenarios hold.

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::topology::error::TopologyError;
use crate::topology::kind::TopologyKind;
use crate::topology::launch::{self, Launched};
use crate::topology::node::{Node, Role};
use crate::topology::plan::MASTER_NAME;
use crate::topology::poll;
use crate::topology::provider::{Caps, ProviderKind};
use crate::topology::ready;
use crate::topology::slot::{sibling, slot_of};
use crate::topology::tls::TlsFiles;
use crate::topology::urls;
use crate::topology::view;

/// A running topology.
///
/// Dropping it ends every server and removes every file. With the plain provider the drop waits a
/// few milliseconds for that. With the pod provider it needs a live tokio runtime, so prefer
/// [`Deployment::stop`].
#[derive(Debug)]
pub struct Deployment {
    kind: TopologyKind,
    launched: Launched,
    version: String,
}

impl Deployment {
    /// Waits for readiness and collects the state.
    pub(crate) async fn settle(
        kind: TopologyKind,
        launched: Launched,
    ) -> Result<Self, TopologyError> {
        let mut this = Self {
            kind,
            launched,
            version: String::new(),
        };
        this.wait_ready().await?;
        this.version = this.ask_version().await?;
        Ok(this)
    }

    /// The topology.
    #[must_use]
    pub const fn kind(&self) -> TopologyKind {
        self.kind
    }

    /// The provider.
    #[must_use]
    pub const fn provider(&self) -> ProviderKind {
        self.launched.provider
    }

    /// The provider's capabilities for its nodes.
    #[must_use]
    pub const fn caps(&self) -> Caps {
        self.launched.caps
    }

    /// The servers that hold data. Cluster: primaries first, and at the start replica `i` of `n`
    /// primaries copies node `i % n`. Sentinel: at the start node 0 is the primary.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.launched.nodes
    }

    /// The sentinels; empty for other kinds.
    #[must_use]
    pub fn sentinels(&self) -> &[Node] {
        &self.launched.sentinels
    }

    /// The sentinels' name for the primary.
    #[must_use]
    pub const fn master_name(&self) -> &'static str {
        MASTER_NAME
    }

    /// The connection string; for a quorum, the first server's.
    #[must_use]
    pub fn url(&self) -> String {
        self.urls().into_iter().next().unwrap_or_default()
    }

    /// One connection string per independent system: several for a quorum, one otherwise.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        let tls = self.tls();
        urls::urls(self.kind, self.nodes(), self.sentinels(), tls)
    }

    /// Files that clients need, if the servers speak TLS.
    #[must_use]
    pub const fn tls(&self) -> Option<&TlsFiles> {
        self.launched.tls.as_ref()
    }

    /// Sets how much longer every exchange with the servers takes from now on. Only servers started
    /// with [`Spec::with_round_trip`](super::Spec::with_round_trip) can be distant; for others this
    /// does nothing.
    pub fn set_round_trip(&self, round_trip: Duration) {
        for proxy in &self.launched.proxies {
            proxy.set_round_trip(round_trip);
        }
    }

    /// Directory of the deployment's own files, removed at the end.
    #[must_use]
    pub fn run_dir(&self) -> &Path {
        self.launched.run.path()
    }

    /// Server name and version as the first node reports them, such as `Valkey 8.1.1`.
    #[must_use]
    pub fn server_version(&self) -> &str {
        &self.version
    }

    /// The program or image that runs, for reports.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.launched.label
    }

    /// Waits until every part agrees that the topology is as complete as at the start.
    ///
    /// # Errors
    ///
    /// [`TopologyError::NotReached`] with the last unmet condition.
    pub async fn wait_ready(&self) -> Result<(), TopologyError> {
        ready::complete(self.kind, self.nodes(), self.sentinels()).await
    }

    /// The node that accepts writes now; in a cluster, for slot 0; in a quorum, the first.
    ///
    /// # Errors
    ///
    /// [`TopologyError::NotReached`] if no node does at the moment. This does not wait.
    pub async fn primary(&self) -> Result<&Node, TopologyError> {
        self.primary_for_slot(0).await
    }

    /// The node that accepts writes for `key` now.
    ///
    /// # Errors
    ///
    /// As [`Deployment::primary`].
    pub async fn primary_for(&self, key: &str) -> Result<&Node, TopologyError> {
        self.primary_for_slot(slot_of(key)).await
    }

    /// The node that accepts writes for a cluster slot now.
    ///
    /// # Errors
    ///
    /// As [`Deployment::primary`].
    pub async fn primary_for_slot(&self, slot: u16) -> Result<&Node, TopologyError> {
        view::primary_of(self.kind, self.nodes(), self.sentinels(), slot)
            .await
            .map_err(|last_seen| TopologyError::NotReached {
                what: format!("a primary for slot {slot}"),
                within: Duration::ZERO,
                last_seen,
            })
    }

    /// Waits until `node` reports the role `role`.
    ///
    /// # Errors
    ///
    /// [`TopologyError::NotReached`].
    pub async fn wait_role(
        &self,
        node: &Node,
        role: Role,
        within: Duration,
    ) -> Result<(), TopologyError> {
        poll::until(
            || format!("{} as {role:?}", node.name()),
            within,
            async || match node.role_seen().await {
                Ok(now) if now == role => Ok(()),
                Ok(now) => Err(format!("{now:?}")),
                Err(error) => Err(error.to_string()),
            },
        )
        .await
    }

    /// Waits until a write into the slot of `key` is accepted, and returns the node that accepted
    /// it. Writes a key of its own that expires at once.
    ///
    /// # Errors
    ///
    /// [`TopologyError::NotReached`].
    pub async fn wait_writable(&self, key: &str, within: Duration) -> Result<&Node, TopologyError> {
        self.wait_written(key, within, |_| false).await
    }

    /// Waits until a node is in charge of the slot of `key`, and returns it. With
    /// `min-replicas-to-write` it may not accept writes yet, if its only replica is the server that
    /// it replaced.
    ///
    /// # Errors
    ///
    /// [`TopologyError::NotReached`].
    pub async fn wait_in_charge(
        &self,
        key: &str,
        within: Duration,
    ) -> Result<&Node, TopologyError> {
        let lacks_replicas = |refusal: &str| refusal.contains("NOREPLICAS");
        self.wait_written(key, within, lacks_replicas).await
    }

    async fn wait_written(
        &self,
        key: &str,
        within: Duration,
        as_good: fn(&str) -> bool,
    ) -> Result<&Node, TopologyError> {
        let probe = sibling(key);
        let deadline = Instant::now() + within;
        poll::until(
            || format!("a write to the slot of {key:?}"),
            within,
            async || {
                // Frozen nodes take seconds to time out; the limit of the whole wait must still
                // hold.
                let left = deadline.saturating_duration_since(Instant::now());
                let left = left.max(Duration::from_millis(100));
                let attempt = async {
                    let node =
                        view::primary_of(self.kind, self.nodes(), self.sentinels(), slot_of(key))
                            .await?;
                    let words = ["SET", &probe, "1", "PX", "1"];
                    match node.look(&words).await.map_err(|error| error.to_string()) {
                        Err(refusal) if !as_good(&refusal) => Err(refusal),
                        _ => Ok(node),
                    }
                };
                timeout(left, attempt)
                    .await
                    .unwrap_or_else(|_| Err("no answer yet".to_owned()))
            },
        )
        .await
    }

    /// Ends every server, removes every file, and returns when that is done.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Engine`] when a container could not be removed.
    pub async fn stop(self) -> Result<(), TopologyError> {
        launch::stop(self.launched).await
    }

    async fn ask_version(&self) -> Result<String, TopologyError> {
        let Some(node) = self.nodes().first() else {
            return Ok(String::new());
        };
        // Valkey also reports the Redis version that it is compatible with.
        if let Some(version) = node.info("server", "valkey_version").await? {
            return Ok(format!("Valkey {version}"));
        }
        let version = node.info("server", "redis_version").await?;
        Ok(format!(
            "Redis {}",
            version.as_deref().unwrap_or("of unknown version")
        ))
    }
}
