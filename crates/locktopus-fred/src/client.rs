//! [`FredClient`]: implements the client interface by calling the deployment.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use locktopus_protocol::{
    Channel, ClientError, Deployment, NodeReply, Pipelined, PushEvent, RedisClient, Reply, Route,
    lock,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

use crate::cluster::Cluster;
use crate::connection::dial::Dialer;
use crate::single::Single;

/// A [`RedisClient`] over fred, made by [`connect`](crate::connect).
///
/// Dropping it closes all its connections.
#[derive(Debug)]
pub struct FredClient {
    servers: Servers,
    dialer: Arc<Dialer>,
    events: Mutex<Option<UnboundedReceiver<PushEvent>>>,
}

#[derive(Debug)]
pub(crate) enum Servers {
    Single(Box<Single>),
    Cluster(Cluster),
}

impl FredClient {
    pub(crate) fn new(
        servers: Servers,
        dialer: Arc<Dialer>,
        events: UnboundedReceiver<PushEvent>,
    ) -> Self {
        Self {
            servers,
            dialer,
            events: Mutex::new(Some(events)),
        }
    }
}

#[async_trait]
impl RedisClient for FredClient {
    fn name(&self) -> &'static str {
        crate::connection::NAME
    }

    fn deployment(&self) -> Deployment {
        match &self.servers {
            Servers::Single(single) => single.links.target.deployment(),
            Servers::Cluster(_) => Deployment::Cluster,
        }
    }

    async fn ready(&self) -> Result<(), ClientError> {
        match &self.servers {
            Servers::Single(single) => single.can_send().await,
            // Calls go alone there.
            Servers::Cluster(_) => Ok(()),
        }
    }

    async fn command(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        match &self.servers {
            Servers::Single(single) => single.command(args).await,
            Servers::Cluster(cluster) => cluster.command(route, args).await,
        }
    }

    async fn pipeline(
        &self,
        route: Route,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        match &self.servers {
            Servers::Single(single) => single.pipeline(commands).await,
            Servers::Cluster(cluster) => cluster.pipeline(route, commands).await,
        }
    }

    async fn command_on_primaries(&self, args: &[&[u8]]) -> Result<Vec<NodeReply>, ClientError> {
        match &self.servers {
            Servers::Single(single) => single.command_on_primaries(args).await,
            Servers::Cluster(cluster) => cluster.command_on_primaries(args).await,
        }
    }

    async fn configuration_epoch(&self) -> Option<u64> {
        match &self.servers {
            Servers::Single(single) => single.configuration_epoch().await,
            Servers::Cluster(_) => None,
        }
    }

    async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        match &self.servers {
            Servers::Single(single) => single.subscribe(channels).await,
            Servers::Cluster(cluster) => cluster.subscribe(channels).await,
        }
    }

    async fn unsubscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        match &self.servers {
            Servers::Single(single) => single.unsubscribe(channels).await,
            Servers::Cluster(cluster) => cluster.unsubscribe(channels).await,
        }
    }

    fn take_events(&self) -> Option<UnboundedReceiver<PushEvent>> {
        lock(&self.events).take()
    }

    fn timed_out(&self, route: Route) {
        match &self.servers {
            Servers::Single(single) => single.links.suspect(),
            Servers::Cluster(cluster) => cluster.suspect(route),
        }
    }

    fn subscription_misplaced(&self, channel: &[u8]) {
        match &self.servers {
            Servers::Single(single) => single.links.messages().drop_current(),
            Servers::Cluster(cluster) => cluster.subscription_misplaced(channel),
        }
    }

    fn generation(&self) -> u64 {
        self.dialer.dialled()
    }

    fn on_this_runtime(&self) -> Option<Arc<dyn RedisClient>> {
        let (events, receiver) = unbounded_channel();
        let servers = match &self.servers {
            Servers::Single(single) => Servers::Single(Box::new(single.again(events))),
            Servers::Cluster(cluster) => Servers::Cluster(cluster.again(events)),
        };
        let dialer = Arc::clone(&self.dialer);
        Some(Arc::new(Self::new(servers, dialer, receiver)))
    }

    fn server_changes(&self) -> watch::Receiver<u64> {
        self.dialer.changes()
    }

    async fn close(&self) {
        match &self.servers {
            Servers::Single(single) => single.close(),
            Servers::Cluster(cluster) => cluster.close(),
        }
    }
}
