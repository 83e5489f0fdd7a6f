//! Commands and subscriptions when there is exactly one primary: standalone and Sentinel.

use std::sync::Arc;

use bytes::Bytes;
use locktopus_protocol::{Channel, ChannelFlavour, ClientError, NodeReply, PushEvent, Reply};
use tokio::sync::mpsc::UnboundedSender;

use crate::dial::{Dialer, Target};
use crate::link::Link;
use crate::messages;
use crate::request::Request;

/// The one primary.
#[derive(Debug)]
pub(crate) struct Single {
    target: Target,
    commands: Link,
    messages: Link,
}

impl Single {
    /// Starts to connect; [`Self::ready`] tells how that went.
    pub(crate) fn new(
        dialer: &Arc<Dialer>,
        target: Target,
        events: UnboundedSender<PushEvent>,
    ) -> Self {
        let commands = Link::for_commands(Arc::clone(dialer), target.clone());
        let messages = Link::for_messages(Arc::clone(dialer), target.clone(), events);
        Self {
            target,
            commands,
            messages,
        }
    }

    /// Waits for the outcome of one attempt to connect.
    pub(crate) async fn ready(&self) -> Result<(), ClientError> {
        self.commands.conn().await.map(drop)
    }

    pub(crate) async fn command(&self, words: &[&[u8]]) -> Result<Reply, ClientError> {
        let request = Request::new(words)?;
        let conn = self.commands.conn().await?;
        let outcome = conn.send(request).await;
        if let Err(ClientError::Rejected { code, .. }) = &outcome
            && code == "READONLY"
        {
            // A demoted primary. Whoever is the primary now is found by dialling again.
            conn.kill();
        }
        outcome
    }

    pub(crate) async fn command_on_primaries(
        &self,
        words: &[&[u8]],
    ) -> Result<Vec<NodeReply>, ClientError> {
        Request::new(words)?;
        let node = match &self.target {
            Target::Node(node) => node.to_string(),
            Target::Primary { .. } => self.commands.conn().await?.server(),
        };
        Ok(vec![NodeReply {
            node,
            reply: self.command(words).await,
        }])
    }

    pub(crate) async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        let conn = self.messages.conn().await?;
        let (plain, sharded) = split(channels);
        if !plain.is_empty() {
            messages::subscribe_plain(&conn, &plain).await?;
        }
        messages::subscribe_sharded(&conn, &sharded)
            .await
            .into_iter()
            .collect()
    }

    pub(crate) async fn unsubscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        let (plain, sharded) = split(channels);
        match self.messages.current() {
            Some(conn) => messages::unsubscribe(&conn, plain, sharded).await,
            // The subscriptions went with their connection.
            None => Ok(()),
        }
    }

    pub(crate) fn suspect(&self) {
        self.commands.suspect();
    }

    pub(crate) fn close(&self) {
        self.commands.close();
        self.messages.close();
    }
}

fn split(channels: &[Channel]) -> (Vec<Bytes>, Vec<Bytes>) {
    let of = |flavour| {
        let wanted = channels.iter().filter(|channel| channel.flavour == flavour);
        wanted.map(|channel| channel.name.clone()).collect()
    };
    (of(ChannelFlavour::Plain), of(ChannelFlavour::Sharded))
}
