//! One interface to all kinds of deployment, for placing subscriptions.

use std::sync::Arc;

use locktopus_protocol::sentinels::Target;
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{Channel, ClientError, HostPort};
use tokio::sync::watch;

use crate::cluster::Cluster;
use crate::connection::dial::Dialer;
use crate::single::Single;

/// The servers and the connections to them.
#[derive(Debug)]
pub(crate) enum Topology {
    /// One primary.
    Single(Single),
    /// Several primaries, by slot.
    Cluster(Box<Cluster>),
}

/// The server that should carry a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Location {
    /// The one primary.
    Primary,
    /// A node of the cluster.
    Node(HostPort),
}

impl Topology {
    /// A copy that makes its own connections.
    pub(crate) fn again(&self, dialer: &Arc<Dialer>) -> Self {
        let dialer = Arc::clone(dialer);
        match self {
            Self::Single(single) => Self::Single(Single::new(single.target.clone(), dialer)),
            Self::Cluster(cluster) => Self::Cluster(Box::new(cluster.again(dialer))),
        }
    }

    /// Makes the first contact.
    pub(crate) async fn begin(&self) -> Result<(), ClientError> {
        match self {
            Self::Single(single) => single.link.get().await.map(drop),
            Self::Cluster(cluster) => cluster.refresh().await.map(drop),
        }
    }

    /// Where to subscribe to a channel. `None` while its slot has no owner.
    ///
    /// A cluster delivers a plain channel on any node. Scripts publish on the owner of its slot, so
    /// a message there need not cross the cluster bus.
    pub(crate) fn location_of(&self, channel: &Channel) -> Option<Location> {
        match self {
            Self::Single(_) => Some(Location::Primary),
            Self::Cluster(cluster) => cluster.owner(key_slot(&channel.name)).map(Location::Node),
        }
    }

    /// The target to connect to for a location.
    pub(crate) fn target(&self, place: &Location) -> Option<Target> {
        match (self, place) {
            (_, Location::Node(server)) => Some(Target::Server(server.clone())),
            (Self::Single(single), Location::Primary) => Some(single.target.clone()),
            (Self::Cluster(_), Location::Primary) => None,
        }
    }

    /// Counts events after which a server may no longer be the right one.
    pub(crate) fn disturbances(&self) -> watch::Receiver<u64> {
        match self {
            Self::Single(single) => single.disturbances.subscribe(),
            Self::Cluster(cluster) => cluster.disturbances.subscribe(),
        }
    }

    /// Notes that channels may now belong elsewhere.
    pub(crate) fn mark_stale(&self) {
        if let Self::Cluster(cluster) = self {
            cluster.map.mark_stale();
        }
    }

    /// Notes that a subscription was refused with `MOVED`.
    pub(crate) fn moved(&self, message: &str, refused: &HostPort) {
        if let Self::Cluster(cluster) = self {
            cluster.moved(message, refused);
        }
    }

    /// Waits until it is known where channels belong now, if that is in doubt.
    pub(crate) async fn freshen(&self) {
        if let Self::Cluster(cluster) = self {
            cluster.map.fresh().await;
        }
    }
}

/// Keeps the topology up to date in the background.
pub(crate) async fn keep_fresh(topology: Arc<Topology>) {
    match &*topology {
        Topology::Single(single) => {
            if let Some(sentinels) = single.target.sentinels() {
                sentinels.watch().await;
            }
        }
        Topology::Cluster(cluster) => cluster.keep_fresh().await,
    }
}
