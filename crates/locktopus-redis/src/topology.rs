//! One interface to all kinds of deployment, for commands and for placing subscriptions.

use std::sync::Arc;
use std::time::Duration;

use locktopus_protocol::backoff::{Backoff, SETTLED};
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{
    Channel, ClientError, Deployment, HostPort, NodeReply, Pipelined, Reply, Route,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::cluster::{Cluster, Router};
use crate::connection::dial::Dialer;
use crate::connection::link::Target;
use crate::single::Single;

/// Pause before a refresh when slots are known to have moved: they rarely move one at a time.
const AFTER_REDIRECTS: Duration = Duration::from_millis(20);

/// Refresh the slot map of an idle client this often.
const REFRESH_ROUTINE: Duration = Duration::from_secs(30);

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
    pub(crate) fn deployment(&self) -> Deployment {
        match self {
            Self::Single(single) => single.deployment(),
            Self::Cluster(_) => Deployment::Cluster,
        }
    }

    /// The cluster connection of redis-rs, if used.
    pub(crate) fn router(&self) -> Option<&Router> {
        match self {
            Self::Single(_) => None,
            Self::Cluster(cluster) => cluster.router(),
        }
    }

    /// A copy that makes its own connections.
    pub(crate) fn again(&self, dialer: &Arc<Dialer>) -> Self {
        let dialer = Arc::clone(dialer);
        match self {
            Self::Single(single) => Self::Single(Single::new(single.target().clone(), dialer)),
            Self::Cluster(cluster) => Self::Cluster(Box::new(cluster.again(dialer))),
        }
    }

    /// Makes the first contact.
    pub(crate) async fn begin(&self) -> Result<(), ClientError> {
        match self {
            Self::Single(single) => single.link().get().await.map(drop),
            Self::Cluster(cluster) => cluster.refresh().await.map(drop),
        }
    }

    pub(crate) async fn configuration_epoch(&self) -> Option<u64> {
        match self {
            Self::Single(single) => single.configuration_epoch().await,
            Self::Cluster(_) => None,
        }
    }

    pub(crate) async fn command(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        match self {
            Self::Single(single) => single.command(args).await,
            Self::Cluster(cluster) => cluster.command(route, args).await,
        }
    }

    pub(crate) async fn pipeline(
        &self,
        route: Route,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        match self {
            Self::Single(single) => single.pipeline(commands).await,
            Self::Cluster(cluster) => cluster.pipeline(route, commands).await,
        }
    }

    pub(crate) async fn command_on_primaries(
        &self,
        args: &[&[u8]],
    ) -> Result<Vec<NodeReply>, ClientError> {
        match self {
            Self::Single(single) => single.command_on_primaries(args).await,
            Self::Cluster(cluster) => cluster.command_on_primaries(args).await,
        }
    }

    pub(crate) fn timed_out(&self, route: Route) {
        match self {
            Self::Single(single) => single.timed_out(),
            Self::Cluster(cluster) => cluster.timed_out(route),
        }
    }

    pub(crate) fn close(&self) {
        match self {
            Self::Single(single) => single.close(),
            Self::Cluster(cluster) => cluster.close(),
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
            (Self::Single(single), Location::Primary) => Some(single.target().clone()),
            (Self::Cluster(_), Location::Primary) => None,
        }
    }

    /// Counts events after which a server may no longer be the right one.
    pub(crate) fn disturbances(&self) -> watch::Receiver<u64> {
        match self {
            Self::Single(single) => single.disturbances(),
            Self::Cluster(cluster) => cluster.disturbances(),
        }
    }

    /// Notes that channels may now belong elsewhere.
    pub(crate) fn mark_stale(&self) {
        if let Self::Cluster(cluster) = self {
            cluster.mark_stale();
        }
    }

    /// Notes that a subscription was refused with `MOVED`.
    pub(crate) fn moved(&self, message: &str, refused: &HostPort) {
        if let Self::Cluster(cluster) = self {
            cluster.moved(message, refused);
        }
    }

    /// Finds out where channels belong now, if in doubt.
    pub(crate) async fn freshen(&self) {
        if let Self::Cluster(cluster) = self {
            cluster.freshen().await;
        }
    }
}

/// Keeps the topology up to date in the background.
pub(crate) async fn keep_fresh(topology: Arc<Topology>) {
    match &*topology {
        Topology::Single(single) => single.watch().await,
        Topology::Cluster(cluster) => keep_map_fresh(cluster).await,
    }
}

async fn keep_map_fresh(cluster: &Cluster) {
    let mut backoff = Backoff::new();
    loop {
        let quiet = Instant::now();
        // Refresh periodically too: a client that only subscribes gets no redirects.
        if timeout(REFRESH_ROUTINE, cluster.refresh_wanted())
            .await
            .is_err()
        {
            cluster.mark_stale();
        }
        if cluster.freshen().await || quiet.elapsed() >= SETTLED {
            backoff.reset();
        }
        // The pause grows while refreshes find nothing new, however many callers request one.
        if timeout(backoff.pause(), cluster.redirected()).await.is_ok() {
            sleep(AFTER_REDIRECTS).await;
        }
    }
}
