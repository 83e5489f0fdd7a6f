//! Keeps nodes that receive redirects and are missing in the slot table.
//!
//! A node that is importing its first slot owns none yet, so it is in no table. Commands for locks
//! in that slot are redirected to it. Without this cache, each redirect would open a connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locktopus_protocol::HostPort;
use tokio::time::Instant;

use super::node::Node;

/// How long to keep a node after the last redirect to it.
const KEPT: Duration = Duration::from_secs(60);

/// The nodes, each with the time of its last use.
#[derive(Default)]
pub(super) struct ExtraNodes {
    nodes: Mutex<HashMap<HostPort, (Arc<Node>, Instant)>>,
}

impl ExtraNodes {
    /// The node at `address`. Calls `make` if it is new.
    pub(super) fn visit(&self, address: &HostPort, make: impl FnOnce() -> Arc<Node>) -> Arc<Node> {
        let now = Instant::now();
        let mut nodes = self.lock();
        let (node, used) = nodes
            .entry(address.clone())
            .or_insert_with(|| (make(), now));
        *used = now;
        Arc::clone(node)
    }

    /// Removes a node, to put it into the slot table.
    pub(super) fn take(&self, address: &HostPort) -> Option<Arc<Node>> {
        self.lock().remove(address).map(|(node, _)| node)
    }

    /// Drops nodes without recent redirects.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        self.lock()
            .retain(|_, (_, used)| now.saturating_duration_since(*used) < KEPT);
    }

    pub(super) fn close(&self) {
        self.lock().drain().for_each(|(_, (node, _))| node.close());
    }

    /// Ignores poison: a panic cannot leave the map half-written.
    fn lock(&self) -> MutexGuard<'_, HashMap<HostPort, (Arc<Node>, Instant)>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
