//! State shared by the client of a cluster and the task that refreshes its slot table.

use std::sync::Arc;

use locktopus_protocol::sentinels::Target;
use locktopus_protocol::slot_map::{ClusterMap, Redirect, SlotTable};
use locktopus_protocol::{ClientError, HostPort, PushEvent, Route};
use tokio::sync::mpsc::UnboundedSender;

use super::placements::Placements;
use crate::connection::dial::Dialer;
use crate::connection::error;
use crate::connection::links::Links;

/// A node of the cluster. Its connections do not depend on those of other nodes.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) address: HostPort,
    pub(super) links: Links,
}

/// The slot table, with its nodes.
pub(super) type Table = SlotTable<Arc<Node>>;

impl Node {
    /// Whether commands can be sent to it now.
    pub(super) fn is_up(&self) -> bool {
        self.links.commands().current().is_some()
    }
}

/// State shared by the client and its refresh task.
pub(super) struct Shared {
    pub(super) dialer: Arc<Dialer>,
    pub(super) events: UnboundedSender<PushEvent>,
    pub(super) placements: Placements,
    pub(super) map: ClusterMap<Node>,
}

impl Shared {
    pub(super) fn new(
        dialer: Arc<Dialer>,
        seeds: Vec<HostPort>,
        events: UnboundedSender<PushEvent>,
    ) -> Self {
        let (dialling, told) = (Arc::clone(&dialer), events.clone());
        let map = ClusterMap::new(seeds, move |address| Node {
            address: address.clone(),
            links: Links::new(
                Target::Server(address.clone()),
                Arc::clone(&dialling),
                told.clone(),
            ),
        });
        Self {
            dialer,
            events,
            placements: Placements::default(),
            map,
        }
    }

    /// Triggers a check of the connections to the primary at `address`, if there is one.
    pub(super) fn suspect(&self, address: &HostPort) {
        if let Some(node) = self.map.table().node_at(address) {
            node.links.suspect();
        }
    }

    pub(super) fn moved(&self, to: &Redirect) -> Arc<Node> {
        self.map.moved(to);
        self.dialer.note_change();
        self.map.node(&to.node)
    }

    pub(super) async fn find(&self, route: Route) -> Result<Arc<Node>, ClientError> {
        if let Some(node) = self.look_up(route) {
            return Ok(node);
        }
        self.check_open()?;
        self.map.mark_stale();
        self.map.fresh().await;
        self.look_up(route).ok_or_else(|| {
            ClientError::NotSent(match route {
                Route::Slot(slot) => format!("no primary of the cluster serves slot {slot}"),
                Route::Any => "the cluster has no primary".to_owned(),
            })
        })
    }

    fn look_up(&self, route: Route) -> Option<Arc<Node>> {
        let map = self.map.table();
        match route {
            Route::Slot(slot) => map.owner(slot).map(Arc::clone),
            Route::Any => {
                let nodes = map.nodes();
                let up = nodes.iter().find(|node| node.is_up());
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
        self.map.mark_stale();
        self.map.fresh().await;
        match self.look_up(route) {
            Some(next) if next.address != node.address => Ok(next),
            _ => Err(unreachable),
        }
    }

    pub(super) fn check_open(&self) -> Result<(), ClientError> {
        if self.map.is_closed() {
            Err(error::closed())
        } else {
            Ok(())
        }
    }
}
