//! Commands and subscriptions for a single primary: standalone and Sentinel.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use locktopus_protocol::{
    Channel, ChannelFlavour, ClientError, NodeReply, Pipelined, PushEvent, Reply,
};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::task::AbortOnDropHandle;

use crate::connection::dial::{Dialer, Target};
use crate::connection::link::Link;
use crate::connection::messages;
use crate::connection::request::Request;

/// Why a connection to a demoted primary is given up.
const READONLY: &str = "it is not the primary (READONLY)";

/// The primary.
#[derive(Debug)]
pub(crate) struct Single {
    target: Target,
    commands: Link,
    messages: Link,
    dialer: Arc<Dialer>,
    /// For commands that may block. Opened on first use.
    blocking: OnceLock<Link>,
    /// Listens for a new primary, if there are sentinels.
    watching: Option<AbortOnDropHandle<()>>,
}

impl Single {
    /// Starts to connect. [`Self::ready`] returns the outcome.
    pub(crate) fn new(
        dialer: &Arc<Dialer>,
        target: Target,
        events: UnboundedSender<PushEvent>,
    ) -> Self {
        let commands = Link::for_commands(Arc::clone(dialer), target.clone());
        let messages = Link::for_messages(Arc::clone(dialer), target.clone(), events);
        let watching = match &target {
            Target::Node(_) => None,
            Target::Primary(sentinels) => {
                let sentinels = Arc::clone(sentinels);
                let watching = tokio::spawn(async move { sentinels.watch().await });
                Some(AbortOnDropHandle::new(watching))
            }
        };
        Self {
            target,
            commands,
            messages,
            dialer: Arc::clone(dialer),
            blocking: OnceLock::new(),
            watching,
        }
    }

    /// A copy on this runtime.
    pub(crate) fn again(&self, events: UnboundedSender<PushEvent>) -> Self {
        Self::new(&self.dialer, self.target.clone(), events)
    }

    /// Waits for the first attempt to connect.
    pub(crate) async fn ready(&self) -> Result<(), ClientError> {
        self.commands.first_conn().await.map(drop)
    }

    pub(crate) async fn configuration_epoch(&self) -> Option<u64> {
        let Target::Primary(sentinels) = &self.target else {
            return None;
        };
        // Connecting asks the sentinels. If that fails, so does the command that needs the epoch.
        let _ = self.commands.conn().await;
        sentinels.epoch()
    }

    pub(crate) async fn command(&self, words: &[&[u8]]) -> Result<Reply, ClientError> {
        let request = Request::new(words)?;
        let conn = self.commands.conn().await?;
        let outcome = conn.send(request).await;
        if let Err(ClientError::Rejected { code, .. }) = &outcome
            && code == "READONLY"
        {
            // A demoted primary. Dialling again finds the new one. Subscriptions are probably on
            // the same server.
            conn.give_up(READONLY);
            self.messages.suspect();
        }
        outcome
    }

    pub(crate) async fn pipeline(&self, commands: &[&[&[u8]]]) -> Result<Pipelined, ClientError> {
        let requests = Request::each(commands)?;
        let blocking = self
            .blocking
            .get_or_init(|| Link::for_blocking(Arc::clone(&self.dialer), self.target.clone()));
        let conn = blocking.conn().await?;
        let answers = conn.send_each(requests).await?;
        let demoted = |reply: &Result<Reply, ClientError>| matches!(reply, Err(ClientError::Rejected { code, .. }) if code == "READONLY");
        if answers.replies.iter().any(demoted) {
            conn.give_up(READONLY);
            self.messages.suspect();
        }
        Ok(answers)
    }

    pub(crate) async fn command_on_primaries(
        &self,
        words: &[&[u8]],
    ) -> Result<Vec<NodeReply>, ClientError> {
        Request::new(words)?;
        let node = match &self.target {
            Target::Node(node) => node.to_string(),
            Target::Primary(_) => self.commands.conn().await?.server(),
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
            // The subscriptions ended with their connection.
            None => Ok(()),
        }
    }

    /// The primary does not count a subscriber.
    pub(crate) fn subscription_misplaced(&self) {
        self.messages.drop_current();
    }

    pub(crate) fn suspect(&self) {
        self.commands.suspect();
        if let Some(blocking) = self.blocking.get() {
            blocking.suspect();
        }
    }

    pub(crate) fn close(&self) {
        if let Some(watching) = &self.watching {
            watching.abort();
        }
        self.commands.close();
        self.messages.close();
        if let Some(blocking) = self.blocking.get() {
            blocking.close();
        }
    }
}

fn split(channels: &[Channel]) -> (Vec<Bytes>, Vec<Bytes>) {
    let of = |flavour| {
        let wanted = channels.iter().filter(|channel| channel.flavour == flavour);
        wanted.map(|channel| channel.name.clone()).collect()
    };
    (of(ChannelFlavour::Plain), of(ChannelFlavour::Sharded))
}
