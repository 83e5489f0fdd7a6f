//! The client under the shipped backend: it talks to simulated servers, and is as thin as an
//! adapter of a client library.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{
    Channel, ChannelFlavour, ClientError, Deployment, NodeReply, Pipelined, PushEvent, RedisClient,
    Reply, Route,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::event::{ASKING, BLOCKING, Call, Event, LISTENING};
use crate::flaw::Flaw;
use crate::pace::{Pace, millis};
use crate::world::Shared;
use locktopus_core::lock;

/// The client of one process for one group of servers, or for all shards of a cluster.
#[derive(Debug)]
pub(crate) struct SimClient {
    world: Shared,
    pace: Pace,
    /// One link for each shard.
    links: Vec<usize>,
    /// Which shard serves which slot, as far as the client knows.
    shards: Mutex<BTreeMap<u16, usize>>,
    deployment: Deployment,
    events: Mutex<Option<UnboundedReceiver<PushEvent>>>,
    changes: watch::Receiver<u64>,
}

/// How many times a command follows redirects before it fails.
const REDIRECTS: usize = 4;

/// The target of a redirect.
enum Redirect {
    Moved(usize),
    Ask(usize),
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
        let (changed, changes) = watch::channel(0);
        let links = {
            let mut world = lock(world);
            let shards = match deployment {
                Deployment::Cluster => 0..world.primaries.len(),
                _ => group..group + 1,
            };
            let links =
                shards.map(|shard| world.join(process, shard, sender.clone(), changed.clone()));
            links.collect()
        };
        Self {
            world: world.clone(),
            pace: pace.clone(),
            links,
            shards: Mutex::default(),
            deployment,
            events: Mutex::new(Some(receiver)),
            changes,
        }
    }

    /// The link to the shard that serves a slot. The client learns this when it first needs it, and
    /// again from each `MOVED`.
    fn link(&self, route: Route) -> usize {
        let Route::Slot(slot) = route else {
            return self.links[0];
        };
        let world = lock(&self.world);
        let Some(slots) = &world.slots else {
            return self.links[0];
        };
        let mut shards = lock(&self.shards);
        self.links[*shards.entry(slot).or_insert_with(|| slots.owner(slot))]
    }

    fn send(
        &self,
        link: usize,
        connection: usize,
        call: Call,
    ) -> Result<oneshot::Receiver<Vec<Result<Reply, ClientError>>>, ClientError> {
        let (answers, answered) = oneshot::channel();
        let now = self.pace.now();
        let sent = lock(&self.world).send(link, connection, now, call, Some(answers));
        if !sent {
            return Err(ClientError::NotSent("no connection".to_owned()));
        }
        Ok(answered)
    }

    /// Sends a call and waits for its replies.
    async fn call(
        &self,
        link: usize,
        connection: usize,
        call: Call,
    ) -> Result<Vec<Result<Reply, ClientError>>, ClientError> {
        let answered = self.send(link, connection, call)?;
        answered.await.map_err(|_| broken())
    }

    async fn single(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        let (mut link, mut asking) = (self.link(route), false);
        let mut left = REDIRECTS;
        loop {
            let commands = vec![owned(args)];
            let call = if asking {
                Call::Asking(commands)
            } else {
                Call::Commands(commands)
            };
            let replies = self.call(link, ASKING, call).await?;
            let reply = replies.into_iter().next().unwrap_or_else(|| Err(broken()));
            let to = self.heeds(link, &reply);
            left -= 1;
            (link, asking) = match to {
                Some(Redirect::Moved(shard)) if left > 0 && self.links[shard] != link => {
                    (self.links[shard], false)
                }
                Some(Redirect::Ask(shard)) if left > 0 => (self.links[shard], true),
                _ => return reply,
            };
        }
    }

    /// Learns from an error reply: the server is no primary, or another server serves the slot.
    fn heeds(&self, link: usize, reply: &Result<Reply, ClientError>) -> Option<Redirect> {
        let Err(ClientError::Rejected { code, message }) = reply else {
            return None;
        };
        if code == "READONLY" {
            self.look_elsewhere(link);
        }
        if code != "MOVED" && code != "ASK" {
            return None;
        }
        let (slot, node) = message.split_once(" n")?;
        let (slot, node) = (slot.parse().ok()?, node.parse().ok()?);
        let shard = lock(&self.world).shard_of(node);
        if code == "ASK" {
            return Some(Redirect::Ask(shard));
        }
        lock(&self.shards).insert(slot, shard);
        // Another server of the same shard leads it now.
        if self.links[shard] == link {
            self.look_elsewhere(link);
        }
        Some(Redirect::Moved(shard))
    }

    /// The server said that it is no primary.
    fn look_elsewhere(&self, link: usize) {
        let mut world = lock(&self.world);
        let now = self.pace.now();
        world.at(now, Event::Over(crate::event::Lasting::Stays(link)));
    }

    fn node(&self, link: usize) -> String {
        let to = lock(&self.world).links[link].to;
        format!("n{}", to.map_or_else(String::new, |to| to.to_string()))
    }

    /// Groups channels by shard. Any server delivers plain ones.
    fn by_link(&self, channels: &[Channel]) -> BTreeMap<usize, Vec<Channel>> {
        let mut channels = channels.to_vec();
        channels.sort_by(|one, other| one.name.cmp(&other.name));
        let mut by_link: BTreeMap<usize, Vec<Channel>> = BTreeMap::new();
        for channel in channels {
            let route = match channel.flavour {
                ChannelFlavour::Sharded => Route::Slot(key_slot(&channel.name)),
                ChannelFlavour::Plain => Route::Any,
            };
            by_link.entry(self.link(route)).or_default().push(channel);
        }
        by_link
    }

    async fn listen(&self, channels: &[Channel]) -> Result<bool, ClientError> {
        for (link, channels) in self.by_link(channels) {
            let answers = self
                .call(link, LISTENING, Call::Subscribe(channels))
                .await?;
            for answer in answers {
                if let Some(Redirect::Moved(..)) = self.heeds(link, &answer) {
                    return Ok(false);
                }
                answer?;
            }
        }
        Ok(true)
    }

    /// A call timed out: pings the connection, and replaces it if it does not answer at all, as
    /// adapters do.
    fn check(&self, link: usize, connection: usize) {
        let (epoch, limit) = {
            let mut world = lock(&self.world);
            let limit = millis(world.call_timeout);
            let link = &mut world.links[link];
            let epoch = link.epochs[connection];
            if link.checked[connection].replace(epoch) == Some(epoch) {
                return;
            }
            (epoch, limit)
        };
        let answered = self.send(link, connection, Call::Commands(Vec::new()));
        let world = Shared::clone(&self.world);
        tokio::spawn(async move {
            let good = match answered {
                Ok(answered) => matches!(timeout(limit, answered).await, Ok(Ok(_))),
                // There is no connection, and the client reconnects anyway.
                Err(_) => true,
            };
            let mut world = lock(&world);
            world.links[link].checked[connection] = None;
            if !good && world.links[link].epochs[connection] == epoch {
                world.replace(link, connection);
            }
        });
    }

    /// Gives up the connection that listens.
    fn disrupt(&self, link: usize, reason: &'static str) {
        let mut world = lock(&self.world);
        let to = &mut world.links[link];
        to.epochs[LISTENING] += 1;
        to.note_change();
        // The receiver is gone once the backend is.
        let _ = to.events.send(PushEvent::Disrupted { reason });
        world.stop_listening(link);
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

    async fn command(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        self.single(route, args).await
    }

    async fn configuration_epoch(&self) -> Option<u64> {
        if self.deployment != Deployment::Sentinel {
            return None;
        }
        let world = lock(&self.world);
        let hears = world.flaw != Some(Flaw::EpochsUntold);
        hears.then(|| world.links[self.links[0]].heard)
    }

    async fn pipeline(
        &self,
        route: Route,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        let link = self.link(route);
        let node = self.node(link);
        let commands = commands.iter().map(|command| owned(command)).collect();
        let replies = self.call(link, BLOCKING, Call::Commands(commands)).await?;
        for reply in &replies {
            self.heeds(link, reply);
        }
        Ok(Pipelined { node, replies })
    }

    async fn command_on_primaries(&self, args: &[&[u8]]) -> Result<Vec<NodeReply>, ClientError> {
        let asked = self.links.iter().map(|link| {
            let call = Call::Commands(vec![owned(args)]);
            (self.node(*link), self.send(*link, ASKING, call))
        });
        let mut found = Vec::new();
        for (node, asked) in asked.collect::<Vec<_>>() {
            let reply = match asked {
                Ok(answered) => match answered.await {
                    Ok(replies) => replies.into_iter().next().unwrap_or_else(|| Err(broken())),
                    Err(_) => Err(broken()),
                },
                Err(error) => Err(error),
            };
            found.push(NodeReply { node, reply });
        }
        Ok(found)
    }

    async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        for _ in 0..REDIRECTS {
            if self.listen(channels).await? {
                return Ok(());
            }
        }
        Err(ClientError::NotSent("its slot is on its way".to_owned()))
    }

    async fn unsubscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        let now = self.pace.now();
        for (link, channels) in self.by_link(channels) {
            let call = Call::Unsubscribe(channels);
            lock(&self.world).send(link, LISTENING, now, call, None);
        }
        Ok(())
    }

    fn take_events(&self) -> Option<UnboundedReceiver<PushEvent>> {
        lock(&self.events).take()
    }

    fn timed_out(&self, route: Route) {
        let link = self.link(route);
        self.check(link, ASKING);
        self.check(link, BLOCKING);
    }

    fn subscription_misplaced(&self, channel: &[u8]) {
        lock(&self.world).count("misplaced subscription noticed");
        let link = self.link(Route::Slot(key_slot(channel)));
        self.disrupt(link, "it listened to a replica");
    }

    fn generation(&self) -> u64 {
        let world = lock(&self.world);
        let links = self.links.iter().map(|link| world.links[*link].generation);
        links.sum()
    }

    /// As adapters count it: one for each connection that is lost, given up or redirected.
    fn server_changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    async fn close(&self) {
        let mut world = lock(&self.world);
        for link in &self.links {
            world.stop_listening(*link);
            let link = &mut world.links[*link];
            link.closed = true;
            link.forget_calls(&[ASKING, BLOCKING, LISTENING]);
        }
    }
}
