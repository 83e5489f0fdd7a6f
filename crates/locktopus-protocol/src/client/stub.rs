//! Clients for tests, which say only what is special about them.

use std::fmt;
use std::future::pending;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use super::{
    Channel, ClientError, Deployment, NodeReply, Pipelined, PushEvent, RedisClient, Reply, Route,
};

/// Answers no command and confirms every subscription, unless it says otherwise.
#[async_trait]
pub(crate) trait Stub: fmt::Debug + Send + Sync + 'static {
    fn deployment(&self) -> Deployment {
        Deployment::Standalone
    }
    async fn ready(&self) -> Result<(), ClientError> {
        Ok(())
    }
    async fn command(&self, _: Route, _: &[&[u8]]) -> Result<Reply, ClientError> {
        pending().await
    }
    async fn pipeline(&self, _: Route, _: &[&[&[u8]]]) -> Result<Pipelined, ClientError> {
        pending().await
    }
    async fn subscribe(&self, _: &[Channel]) -> Result<(), ClientError> {
        Ok(())
    }
    async fn unsubscribe(&self, _: &[Channel]) -> Result<(), ClientError> {
        Ok(())
    }
    fn take_events(&self) -> Option<UnboundedReceiver<PushEvent>> {
        None
    }
    fn timed_out(&self, _: Route) {}
    fn server_changes(&self) -> watch::Receiver<u64> {
        watch::Sender::new(0).subscribe()
    }
}

#[derive(Debug)]
struct Stubbed<S>(Arc<S>);

/// The client that does what this says.
pub(crate) fn client<S: Stub>(stub: &Arc<S>) -> Arc<dyn RedisClient> {
    Arc::new(Stubbed(Arc::clone(stub)))
}

#[async_trait]
impl<S: Stub> RedisClient for Stubbed<S> {
    fn name(&self) -> &'static str {
        "stub"
    }
    fn deployment(&self) -> Deployment {
        self.0.deployment()
    }
    async fn ready(&self) -> Result<(), ClientError> {
        self.0.ready().await
    }
    async fn command(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        self.0.command(route, args).await
    }
    async fn pipeline(&self, route: Route, all: &[&[&[u8]]]) -> Result<Pipelined, ClientError> {
        self.0.pipeline(route, all).await
    }
    async fn command_on_primaries(&self, _: &[&[u8]]) -> Result<Vec<NodeReply>, ClientError> {
        Ok(Vec::new())
    }
    async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        self.0.subscribe(channels).await
    }
    async fn unsubscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        self.0.unsubscribe(channels).await
    }
    fn take_events(&self) -> Option<UnboundedReceiver<PushEvent>> {
        self.0.take_events()
    }
    fn timed_out(&self, route: Route) {
        self.0.timed_out(route);
    }
    fn generation(&self) -> u64 {
        0
    }
    fn server_changes(&self) -> watch::Receiver<u64> {
        self.0.server_changes()
    }
    async fn close(&self) {}
}
