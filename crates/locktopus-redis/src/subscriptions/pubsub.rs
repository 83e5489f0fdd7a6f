//! Subscribes, over one connection per server that is separate from the one for commands.
//!
//! This module does not resubscribe after a loss. The layer above knows which channels it wants. It
//! receives [`PushEvent::Disrupted`] and calls [`Subscriber::subscribe`] with all of them.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use locktopus_protocol::{
    Channel, ChannelFlavour, ClientError, PushEvent, ROLE_QUESTION, lock, says_replica,
};
use redis::{Pipeline, PushKind, Value};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::connection::dial::Dialer;
use crate::connection::error::rejected;
use crate::connection::keepalive::REPLICA;
use crate::connection::link::Link;
use crate::connection::reply::reply_of;
use crate::connection::send::Live;
use crate::subscriptions::placements::Placements;
use crate::topology::{Location, Topology};

/// All subscriptions of one client.
pub(crate) struct Subscriber {
    topology: Arc<Topology>,
    dialer: Arc<Dialer>,
    placements: Arc<Placements>,
    links: Mutex<HashMap<Location, Arc<Link>>>,
    events: Mutex<Option<UnboundedReceiver<PushEvent>>>,
    closed: AtomicBool,
}

impl Subscriber {
    pub(crate) fn new(topology: Arc<Topology>, dialer: Arc<Dialer>) -> Self {
        let (sender, events) = unbounded_channel();
        Self {
            placements: Arc::new(Placements::new(Arc::clone(&topology), sender)),
            topology,
            dialer,
            links: Mutex::default(),
            events: Mutex::new(Some(events)),
            closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn take_events(&self) -> Option<UnboundedReceiver<PushEvent>> {
        lock(&self.events).take()
    }

    /// Subscribes to all channels and waits for every confirmation.
    pub(crate) async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        self.topology.freshen().await;
        let moved = self.attempt(channels.iter()).await?;
        let Some(first) = moved.first() else {
            return Ok(());
        };
        // These were refused, so they are not subscribed. The refusal marked the map as stale.
        tracing::debug!(channels = moved.len(), reason = %first.1, "slots of channels have moved");
        self.topology.freshen().await;
        let moved = self
            .attempt(moved.into_iter().map(|(channel, _)| channel))
            .await?;
        moved
            .into_iter()
            .next()
            .map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Unsubscribes on existing connections. Without a connection there is no subscription.
    pub(crate) async fn unsubscribe(&self, channels: &[Channel]) {
        let mut groups: HashMap<Location, Vec<&Channel>> = HashMap::new();
        for channel in channels {
            if let Some(place) = self.placements.take(channel) {
                groups.entry(place).or_default().push(channel);
            }
        }
        join_all(
            groups
                .into_iter()
                .map(|(place, group)| self.leave(place, group)),
        )
        .await;
    }

    /// Gives up the connection that carries a channel: the primary does not count its subscriber.
    pub(crate) fn subscription_misplaced(&self, channel: &[u8]) {
        let link = self
            .placements
            .find(channel)
            .and_then(|place| lock(&self.links).get(&place).map(Arc::clone));
        if let Some(live) = link.and_then(|link| link.peek()) {
            live.health().kill("a subscription is not on the primary");
        }
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        lock(&self.links).drain().for_each(|(_, link)| link.close());
    }

    /// Subscribes on the servers that should carry the channels. Returns the channels refused with
    /// `MOVED`. Any other failure is an error, after every server was tried.
    async fn attempt<'a>(
        &self,
        channels: impl Iterator<Item = &'a Channel>,
    ) -> Result<Vec<(&'a Channel, ClientError)>, ClientError> {
        let mut groups: HashMap<Location, Vec<&Channel>> = HashMap::new();
        let mut homeless = None;
        for channel in channels {
            match self.topology.location_of(channel) {
                Some(place) => groups.entry(place).or_default().push(channel),
                None => homeless = Some(channel),
            }
        }
        let joined = groups
            .into_iter()
            .map(|(place, group)| self.join(place, group));
        let mut moved = Vec::new();
        let mut problem = homeless.map(|channel| {
            let name = String::from_utf8_lossy(&channel.name);
            ClientError::NotSent(format!(
                "no node of the cluster serves the slot of channel {name}"
            ))
        });
        for outcome in join_all(joined).await {
            match outcome {
                Ok(refused) => moved.extend(refused),
                Err(error) => problem = Some(error),
            }
        }
        match problem {
            None => Ok(moved),
            Some(error) => {
                self.topology.mark_stale();
                Err(error)
            }
        }
    }

    /// Subscribes to channels on one server.
    async fn join<'a>(
        &self,
        place: Location,
        channels: Vec<&'a Channel>,
    ) -> Result<Vec<(&'a Channel, ClientError)>, ClientError> {
        let mut live = self.link(&place)?.get().await?;
        // One command per channel, because one command must not mix slots of shard channels, and
        // each channel gets its own answer. They travel in one write.
        let mut pipeline = Pipeline::with_capacity(channels.len());
        for channel in &channels {
            let name = match channel.flavour {
                ChannelFlavour::Plain => "SUBSCRIBE",
                ChannelFlavour::Sharded => "SSUBSCRIBE",
            };
            pipeline.cmd(name).arg(&channel.name[..]);
        }
        // The last answer shows whether this server is a replica.
        pipeline.cmd(ROLE_QUESTION);
        let mut answers = self.exchange(&mut live, &pipeline).await?;
        if answers
            .pop()
            .and_then(|role| reply_of(role).ok())
            .is_some_and(|role| says_replica(&role))
        {
            live.health().kill(REPLICA);
            let server = live.health().server();
            return Err(ClientError::MaybeExecuted(format!(
                "{server} is a replica, where subscriptions do not count"
            )));
        }
        let (mut moved, mut elsewhere, mut problem) = (Vec::new(), HashMap::new(), None);
        for (channel, answer) in channels.iter().zip(answers) {
            match verdict(&answer, channel) {
                Ok(()) => {
                    if let Some(before) = self.placements.put(channel, &place) {
                        elsewhere
                            .entry(before)
                            .or_insert_with(Vec::new)
                            .push(*channel);
                    }
                }
                Err(ClientError::Rejected { code, message }) if code == "MOVED" => {
                    self.topology.moved(&message, live.health().server());
                    moved.push((*channel, ClientError::Rejected { code, message }));
                }
                Err(error) => {
                    if matches!(error, ClientError::MaybeExecuted(_)) {
                        live.health().kill("answers are out of step");
                    }
                    problem = Some(error);
                }
            }
        }
        // Otherwise messages would arrive twice.
        join_all(
            elsewhere
                .into_iter()
                .map(|(place, group)| self.leave(place, group)),
        )
        .await;
        if live.health().is_dead() {
            let server = live.health().server();
            problem = Some(ClientError::MaybeExecuted(format!(
                "{server}: connection lost"
            )));
        }
        problem.map_or(Ok(moved), Err)
    }

    /// Unsubscribes on one server, if connected.
    async fn leave(&self, place: Location, channels: Vec<&Channel>) {
        let link = lock(&self.links).get(&place).map(Arc::clone);
        let Some(mut live) = link.and_then(|link| link.peek()) else {
            return;
        };
        let mut pipeline = Pipeline::with_capacity(channels.len());
        for channel in &channels {
            let name = match channel.flavour {
                ChannelFlavour::Plain => "UNSUBSCRIBE",
                ChannelFlavour::Sharded => "SUNSUBSCRIBE",
            };
            pipeline.cmd(name).arg(&channel.name[..]);
            self.placements.expect_end(channel);
        }
        let answers = self
            .exchange(&mut live, &pipeline)
            .await
            .unwrap_or_default();
        // Confirmations were noted on arrival; note refusals here.
        let unconfirmed = channels
            .iter()
            .enumerate()
            .filter(|(at, _)| !matches!(answers.get(*at), Some(Value::Push { .. })));
        for (_, channel) in unconfirmed {
            self.placements.ended(&channel.name);
        }
    }

    async fn exchange(
        &self,
        live: &mut Live,
        pipeline: &Pipeline,
    ) -> Result<Vec<Value>, ClientError> {
        let limit = self.dialer.budget().answer();
        match timeout(limit, live.send_all(pipeline)).await {
            Ok(answers) => answers,
            Err(_) => {
                live.health().kill("the server does not answer");
                let server = live.health().server();
                Err(ClientError::MaybeExecuted(format!(
                    "{server}: no confirmation in {limit:?}"
                )))
            }
        }
    }

    fn link(&self, place: &Location) -> Result<Arc<Link>, ClientError> {
        let mut links = lock(&self.links);
        if self.closed.load(Ordering::Acquire) {
            return Err(ClientError::NotSent("the client was closed".to_owned()));
        }
        if let Some(link) = links.get(place) {
            return Ok(Arc::clone(link));
        }
        let target = self.topology.target(place).ok_or_else(|| {
            ClientError::NotSent("a cluster has more than one primary".to_owned())
        })?;
        let listener = Arc::clone(&self.placements);
        let link = Link::new(target, Arc::clone(&self.dialer), Some(listener));
        links.insert(place.clone(), Arc::clone(&link));
        Ok(link)
    }
}

/// Checks that the answer confirms this channel.
fn verdict(answer: &Value, channel: &Channel) -> Result<(), ClientError> {
    match answer {
        Value::ServerError(error) => Err(rejected(error)),
        Value::Push {
            kind: PushKind::Subscribe | PushKind::SSubscribe,
            data,
        } if matches!(data.first(), Some(Value::BulkString(name)) if *name == channel.name) => {
            Ok(())
        }
        _ => Err(ClientError::MaybeExecuted(
            "the confirmation is for something else".to_owned(),
        )),
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber")
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}
