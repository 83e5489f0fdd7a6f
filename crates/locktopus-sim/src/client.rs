//! What the shipped backend talks to: a client of simulated servers, as thin as an adapter of a client library.

use std::sync::Mutex;

use async_trait::async_trait;
use locktopus_protocol::{
    Channel, ClientError, Deployment, NodeReply, Pipelined, PushEvent, RedisClient, Reply, Route,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;

use crate::event::{ASKING, BLOCKING, Call, Event, LISTENING};
use crate::pace::Pace;
use crate::world::Shared;
use locktopus_core::lock;

/// The client of one process for one group of servers.
#[derive(Debug)]
pub(crate) struct SimClient {
    world: Shared,
    pace: Pace,
    link: usize,
    deployment: Deployment,
    events: Mutex<Option<UnboundedReceiver<PushEvent>>>,
}

impl SimClient {
    pub(crate) fn new(
        world: &Shared,
        pace: &Pace,
        process: usize,
        group: usize,
        deployment: Deployment,
    ) -> Self {
        let (sender, receiver) = unbounded_channel();
        let link = lock(world).join(process, group, sender);
        Self {
            world: world.clone(),
            pace: pace.clone(),
            link,
            deployment,
            events: Mutex::new(Some(receiver)),
        }
    }

    /// Sends a call, and waits for its answers.
    async fn call(
        &self,
        connection: usize,
        call: Call,
    ) -> Result<Vec<Result<Reply, ClientError>>, ClientError> {
        let (answers, answered) = oneshot::channel();
        let now = self.pace.now();
        let sent = lock(&self.world).send(self.link, connection, now, call, Some(answers));
        if !sent {
            return Err(ClientError::NotSent("no connection".to_owned()));
        }
        answered.await.map_err(|_| broken())
    }

    async fn single(&self, args: &[&[u8]]) -> Result<Reply, ClientError> {
        let replies = self.call(ASKING, Call::Commands(vec![owned(args)])).await?;
        let reply = replies.into_iter().next().unwrap_or_else(|| Err(broken()));
        if let Err(ClientError::Rejected { code, .. }) = &reply
            && code == "READONLY"
        {
            self.look_elsewhere();
        }
        reply
    }

    /// The server says that it is no primary.
    fn look_elsewhere(&self) {
        let mut world = lock(&self.world);
        let now = self.pace.now();
        world.at(now, Event::Over(crate::event::Lasting::Stays(self.link)));
    }

    fn node(&self) -> String {
        let to = lock(&self.world).links[self.link].to;
        format!("n{}", to.map_or_else(String::new, |to| to.to_string()))
    }
}

fn owned(args: &[&[u8]]) -> Vec<Vec<u8>> {
    args.iter().map(|arg| arg.to_vec()).collect()
}

fn broken() -> ClientError {
    ClientError::MaybeExecuted("the connection broke".to_owned())
}

#[async_trait]
impl RedisClient for SimClient {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn deployment(&self) -> Deployment {
        self.deployment
    }

    async fn command(&self, _route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        self.single(args).await
    }

    async fn pipeline(
        &self,
        _route: Route,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        let node = self.node();
        let commands = commands.iter().map(|command| owned(command)).collect();
        let replies = self.call(BLOCKING, Call::Commands(commands)).await?;
        Ok(Pipelined { node, replies })
    }

    async fn command_on_primaries(&self, args: &[&[u8]]) -> Result<Vec<NodeReply>, ClientError> {
        let node = self.node();
        let reply = self.single(args).await;
        Ok(vec![NodeReply { node, reply }])
    }

    async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        let mut channels = channels.to_vec();
        channels.sort_by(|one, other| one.name.cmp(&other.name));
        self.call(LISTENING, Call::Subscribe(channels))
            .await
            .map(drop)
    }

    async fn unsubscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        let mut channels = channels.to_vec();
        channels.sort_by(|one, other| one.name.cmp(&other.name));
        let now = self.pace.now();
        lock(&self.world).send(self.link, LISTENING, now, Call::Unsubscribe(channels), None);
        Ok(())
    }

    fn take_events(&self) -> Option<UnboundedReceiver<PushEvent>> {
        lock(&self.events).take()
    }

    fn timed_out(&self, _route: Route) {
        lock(&self.world).replace(self.link);
    }

    fn subscription_misplaced(&self, _channel: &[u8]) {
        let mut world = lock(&self.world);
        world.count("misplaced subscription noticed");
        let link = &mut world.links[self.link];
        link.epochs[LISTENING] += 1;
        link.generation += 1;
        let reason = "it listened to a replica";
        // Nobody listens once the backend is gone.
        let _ = link.events.send(PushEvent::Disrupted { reason });
        world.stop_listening(self.link);
    }

    fn generation(&self) -> u64 {
        lock(&self.world).links[self.link].generation
    }

    async fn close(&self) {
        let mut world = lock(&self.world);
        world.stop_listening(self.link);
        let link = &mut world.links[self.link];
        link.closed = true;
        link.forget_calls(&[ASKING, BLOCKING, LISTENING]);
    }
}
