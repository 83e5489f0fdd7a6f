//! Nodes that are not in the slot table, kept because commands are redirected to them.
//!
//! A node to which a first slot migrates serves none yet, so no table names it, and every command
//! for a lock in the migrating slot is redirected to it. Without this cache, each redirect would
//! open a connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locktopus_protocol::HostPort;
use tokio::time::Instant;

use super::node::Node;

/// How long a node is kept after the last redirect to it.
const KEPT: Duration = Duration::from_secs(60);

/// The nodes, each with the time of its last use.
#[derive(Default)]
pub(super) struct ExtraNodes {
    nodes: Mutex<HashMap<HostPort, (Arc<Node>, Instant)>>,
}

impl ExtraNodes {
    /// The node at `address`, made if it is not kept yet.
    pub(super) fn visit(&self, address: &HostPort, make: impl FnOnce() -> Arc<Node>) -> Arc<Node> {
        let now = Instant::now();
        let mut nodes = self.lock();
        let (node, used) = nodes
            .entry(address.clone())
            .or_insert_with(|| (make(), now));
        *used = now;
        Arc::clone(node)
    }

    /// Hands out a node that the table is about to have.
    pub(super) fn take(&self, address: &HostPort) -> Option<Arc<Node>> {
        self.lock().remove(address).map(|(node, _)| node)
    }

    /// Lets go of those that were not used for long.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        self.lock()
            .retain(|_, (_, used)| now.saturating_duration_since(*used) < KEPT);
    }

    pub(super) fn close(&self) {
        self.lock().drain().for_each(|(_, (node, _))| node.close());
    }

    /// A panic cannot leave the map half written, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, HashMap<HostPort, (Arc<Node>, Instant)>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
