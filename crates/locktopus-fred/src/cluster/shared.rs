//! State shared by the client of a cluster and the task that refreshes its slot table.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use locktopus_protocol::slot_map::{Informants, Redirect, SlotTable};
use locktopus_protocol::{ClientError, HostPort, PushEvent, Route};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::extra_nodes::ExtraNodes;
use super::node::Node;
use super::placements::Placements;
use crate::connection::dial::Dialer;
use crate::connection::error;

/// The slot table, with its nodes.
pub(super) type Table = SlotTable<Arc<Node>>;

/// State shared by the client and its refresh task.
pub(super) struct Shared {
    pub(super) dialer: Arc<Dialer>,
    pub(super) seeds: Vec<HostPort>,
    pub(super) events: UnboundedSender<PushEvent>,
    pub(super) placements: Placements,
    pub(super) extra_nodes: ExtraNodes,
    pub(super) stale: Notify,
    /// Counts finished refreshes.
    pub(super) refreshes: watch::Sender<u64>,
    /// Whether the next refresh must wait for the end of a pause.
    pub(super) resting: AtomicBool,
    pub(super) closed: CancellationToken,
    pub(super) informants: Informants,
    map: RwLock<Arc<Table>>,
}

impl Shared {
    pub(super) fn new(
        dialer: Arc<Dialer>,
        seeds: Vec<HostPort>,
        events: UnboundedSender<PushEvent>,
    ) -> Self {
        Self {
            dialer,
            seeds,
            events,
            placements: Placements::default(),
            extra_nodes: ExtraNodes::default(),
            stale: Notify::new(),
            refreshes: watch::Sender::new(0),
            resting: AtomicBool::new(false),
            closed: CancellationToken::new(),
            informants: Informants::default(),
            map: RwLock::new(Arc::new(Table::empty())),
        }
    }

    /// The current slot table.
    pub(super) fn map(&self) -> Arc<Table> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Applies `change` to the slot table.
    pub(super) fn update(&self, change: impl FnOnce(&Table) -> Table) {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        *map = Arc::new(change(&map));
    }

    /// Makes a node for the table, or reuses one that received redirects.
    pub(super) fn make(&self, address: &HostPort) -> Arc<Node> {
        let met = self.extra_nodes.take(address);
        met.unwrap_or_else(|| self.new_node(address))
    }

    fn new_node(&self, address: &HostPort) -> Arc<Node> {
        Arc::new(Node::new(
            address.clone(),
            Arc::clone(&self.dialer),
            self.events.clone(),
        ))
    }

    /// Notes that a node failed. Its view of the cluster may be old, so another node should be
    /// asked.
    pub(super) fn doubt(&self, node: &Node) {
        self.informants.doubt(node.address().clone());
        self.stale.notify_one();
    }

    /// Triggers a check of the connections to the primary at `address`, if there is one.
    pub(super) fn suspect(&self, address: &HostPort) {
        if let Some(node) = self.map().node_at(address) {
            node.suspect();
        }
    }

    /// Applies a MOVED answer at once, and requests a refresh of the rest of the table.
    pub(super) fn moved(&self, to: &Redirect) -> Arc<Node> {
        self.update(|map| map.with_moved(to, |address| self.make(address)));
        self.informants.prefer(to.node.clone());
        self.dialer.note_change();
        self.stale.notify_one();
        self.node(&to.node)
    }

    /// The node at `address`, even if it is not in the table.
    pub(super) fn node(&self, address: &HostPort) -> Arc<Node> {
        let map = self.map();
        map.node_at(address).map_or_else(
            || self.extra_nodes.visit(address, || self.new_node(address)),
            Arc::clone,
        )
    }

    /// Waits for the next refresh of the slot table. In the pause after a refresh it does not wait:
    /// the table is as fresh as possible, and callers retry.
    pub(super) async fn wait_for_refresh(&self) {
        let mut done = self.refreshes.subscribe();
        self.stale.notify_one();
        if !self.resting.load(Ordering::Acquire) {
            let _closed = done.changed().await;
        }
    }

    pub(super) async fn find(&self, route: Route) -> Result<Arc<Node>, ClientError> {
        if let Some(node) = self.look_up(route) {
            return Ok(node);
        }
        self.check_open()?;
        self.wait_for_refresh().await;
        self.look_up(route).ok_or_else(|| {
            ClientError::NotSent(match route {
                Route::Slot(slot) => format!("no primary of the cluster serves slot {slot}"),
                Route::Any => "the cluster has no primary".to_owned(),
            })
        })
    }

    fn look_up(&self, route: Route) -> Option<Arc<Node>> {
        let map = self.map();
        match route {
            Route::Slot(slot) => map.owner(slot).map(Arc::clone),
            Route::Any => {
                let nodes = map.nodes();
                let up = nodes
                    .iter()
                    .find(|node| node.commands().current().is_some());
                up.or_else(|| nodes.first()).map(Arc::clone)
            }
        }
    }

    /// The node that serves `route` now, after `node` was unreachable. Fails if it is the same.
    pub(super) async fn successor(
        &self,
        node: &Arc<Node>,
        route: Route,
        unreachable: ClientError,
    ) -> Result<Arc<Node>, ClientError> {
        self.check_open()?;
        self.wait_for_refresh().await;
        match self.look_up(route) {
            Some(next) if next.address() != node.address() => Ok(next),
            _ => Err(unreachable),
        }
    }

    pub(super) fn check_open(&self) -> Result<(), ClientError> {
        if self.closed.is_cancelled() {
            Err(error::closed())
        } else {
            Ok(())
        }
    }
}
