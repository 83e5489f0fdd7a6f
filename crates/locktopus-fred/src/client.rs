//! [`FredClient`]: implements the client interface by calling the deployment.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use locktopus_protocol::{
    Channel, ClientError, Deployment, NodeReply, Pipelined, PushEvent, RedisClient, Reply, Route,
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
    deployment: Deployment,
    servers: Servers,
    dialer: Arc<Dialer>,
    events: Mutex<Option<UnboundedReceiver<PushEvent>>>,
}

#[derive(Debug)]
pub(crate) enum Servers {
    Single(Single),
    Cluster(Cluster),
}

impl FredClient {
    pub(crate) fn new(
        deployment: Deployment,
        servers: Servers,
        dialer: Arc<Dialer>,
        events: UnboundedReceiver<PushEvent>,
    ) -> Self {
        Self {
            deployment,
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
        self.deployment
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
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn timed_out(&self, route: Route) {
        match &self.servers {
            Servers::Single(single) => single.suspect(),
            Servers::Cluster(cluster) => cluster.suspect(route),
        }
    }

    fn subscription_misplaced(&self, channel: &[u8]) {
        match &self.servers {
            Servers::Single(single) => single.subscription_misplaced(),
            Servers::Cluster(cluster) => cluster.subscription_misplaced(channel),
        }
    }

    fn generation(&self) -> u64 {
        self.dialer.dialled()
    }

    fn on_this_runtime(&self) -> Option<Arc<dyn RedisClient>> {
        let (events, receiver) = unbounded_channel();
        let servers = match &self.servers {
            Servers::Single(single) => Servers::Single(single.again(events)),
            Servers::Cluster(cluster) => Servers::Cluster(cluster.again(events)),
        };
        let dialer = Arc::clone(&self.dialer);
        let client = Self::new(self.deployment, servers, dialer, receiver);
        Some(Arc::new(client))
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
