//! The client: sends commands to the topology and manages subscriptions.

use std::sync::Arc;

use async_trait::async_trait;
use locktopus_protocol::{
    Channel, ClientError, Deployment, NodeReply, Pipelined, PushEvent, RedisClient, Reply, Route,
};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::cluster::Router;
use crate::connection::dial::Dialer;
use crate::subscriptions::pubsub::Subscriber;
use crate::topology::{Topology, keep_fresh};

/// A [`RedisClient`] over redis-rs. Made by [`connect`](crate::connect()).
///
/// It reconnects when needed. Dropping it closes all its connections.
#[derive(Debug)]
pub struct RedisRsClient {
    topology: Arc<Topology>,
    subscriber: Subscriber,
    dialer: Arc<Dialer>,
    refresher: AbortHandle,
}

impl RedisRsClient {
    pub(crate) fn new(topology: Topology, dialer: Arc<Dialer>) -> Self {
        let topology = Arc::new(topology);
        Self {
            subscriber: Subscriber::new(Arc::clone(&topology), Arc::clone(&dialer)),
            dialer,
            refresher: tokio::spawn(keep_fresh(Arc::clone(&topology))).abort_handle(),
            topology,
        }
    }
}

#[async_trait]
impl RedisClient for RedisRsClient {
    fn name(&self) -> &'static str {
        match &*self.topology {
            Topology::Cluster(cluster) if cluster.router().is_some() => "redis-rs cluster-async",
            Topology::Single(_) | Topology::Cluster(_) => crate::connection::NAME,
        }
    }

    fn deployment(&self) -> Deployment {
        match &*self.topology {
            Topology::Single(single) => single.target.deployment(),
            Topology::Cluster(_) => Deployment::Cluster,
        }
    }

    /// Its connection writes all commands that are ready at once, for less than a batch costs.
    fn shares_requests(&self) -> bool {
        false
    }

    async fn command(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        check_name(args)?;
        match &*self.topology {
            Topology::Single(single) => single.command(args).await,
            Topology::Cluster(cluster) => cluster.command(route, args).await,
        }
    }

    async fn pipeline(
        &self,
        route: Route,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        commands.iter().try_for_each(|args| check_name(args))?;
        match &*self.topology {
            Topology::Single(single) => single.pipeline(commands).await,
            Topology::Cluster(cluster) => cluster.pipeline(route, commands).await,
        }
    }

    async fn command_on_primaries(&self, args: &[&[u8]]) -> Result<Vec<NodeReply>, ClientError> {
        check_name(args)?;
        match &*self.topology {
            Topology::Single(single) => single.command_on_primaries(args).await,
            Topology::Cluster(cluster) => cluster.command_on_primaries(args).await,
        }
    }

    async fn configuration_epoch(&self) -> Option<u64> {
        match &*self.topology {
            Topology::Single(single) => single.configuration_epoch().await,
            Topology::Cluster(_) => None,
        }
    }

    async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        self.subscriber.subscribe(channels).await
    }

    async fn unsubscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        self.subscriber.unsubscribe(channels).await;
        Ok(())
    }

    fn take_events(&self) -> Option<UnboundedReceiver<PushEvent>> {
        self.subscriber.take_events()
    }

    fn timed_out(&self, route: Route) {
        match &*self.topology {
            Topology::Single(single) => single.timed_out(),
            Topology::Cluster(cluster) => cluster.timed_out(route),
        }
    }

    fn subscription_misplaced(&self, channel: &[u8]) {
        self.subscriber.subscription_misplaced(channel);
    }

    fn generation(&self) -> u64 {
        // redis-rs does not report when it dials, so each of its commands may use a new connection.
        let routed = match &*self.topology {
            Topology::Single(_) => 0,
            Topology::Cluster(cluster) => cluster.router().map_or(0, Router::sent),
        };
        self.dialer.dialled() + routed
    }

    fn on_this_runtime(&self) -> Option<Arc<dyn RedisClient>> {
        let topology = self.topology.again(&self.dialer);
        Some(Arc::new(Self::new(topology, Arc::clone(&self.dialer))))
    }

    fn server_changes(&self) -> watch::Receiver<u64> {
        self.dialer.changes()
    }

    async fn close(&self) {
        self.refresher.abort();
        self.subscriber.close();
        match &*self.topology {
            Topology::Single(single) => single.close(),
            Topology::Cluster(cluster) => cluster.close(),
        }
    }
}

impl Drop for RedisRsClient {
    fn drop(&mut self) {
        self.refresher.abort();
    }
}

fn check_name(args: &[&[u8]]) -> Result<(), ClientError> {
    match args.is_empty() {
        true => Err(ClientError::NotSent("a command needs a name".to_owned())),
        false => Ok(()),
    }
}
