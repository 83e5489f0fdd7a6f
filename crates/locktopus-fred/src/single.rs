//! Commands and subscriptions for a single primary: standalone and Sentinel.

use std::sync::Arc;

use locktopus_protocol::sentinels::Target;
use locktopus_protocol::{Channel, ClientError, NodeReply, Pipelined, PushEvent, Reply};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::task::AbortOnDropHandle;

use crate::connection::conn::Conn;
use crate::connection::dial::Dialer;
use crate::connection::links::Links;
use crate::connection::messages;
use crate::connection::request::Request;

/// The primary.
#[derive(Debug)]
pub(crate) struct Single {
    pub(crate) links: Links,
    /// Listens for a new primary, if there are sentinels.
    watching: Option<AbortOnDropHandle<()>>,
}

impl Single {
    /// Starts to connect. The first connection for commands tells the outcome.
    pub(crate) fn new(
        dialer: &Arc<Dialer>,
        target: Target,
        events: UnboundedSender<PushEvent>,
    ) -> Self {
        let watching = target.sentinels().map(|sentinels| {
            let sentinels = Arc::clone(sentinels);
            let watching = tokio::spawn(async move { sentinels.watch().await });
            AbortOnDropHandle::new(watching)
        });
        let links = Links::new(target, Arc::clone(dialer), events);
        links.commands();
        links.messages();
        Self { links, watching }
    }

    /// A copy on this runtime.
    pub(crate) fn again(&self, events: UnboundedSender<PushEvent>) -> Self {
        Self::new(&self.links.dialer, self.links.target.clone(), events)
    }

    /// Waits for a connection, as a command does.
    pub(crate) async fn can_send(&self) -> Result<(), ClientError> {
        self.links.commands().conn().await.map(drop)
    }

    pub(crate) async fn configuration_epoch(&self) -> Option<u64> {
        let sentinels = self.links.target.sentinels()?;
        // Connecting asks the sentinels. If that fails, so does the command that needs the epoch.
        let _ = self.links.commands().conn().await;
        sentinels.epoch()
    }

    pub(crate) async fn command(&self, words: &[&[u8]]) -> Result<Reply, ClientError> {
        let request = Request::new(words)?;
        let conn = self.links.commands().conn().await?;
        let answer = conn.send(request).await;
        self.check(&conn, std::slice::from_ref(&answer));
        answer
    }

    pub(crate) async fn pipeline(&self, commands: &[&[&[u8]]]) -> Result<Pipelined, ClientError> {
        let requests = Request::each(commands)?;
        let conn = self.links.blocking().conn().await?;
        let answers = conn.send_each(requests).await?;
        self.check(&conn, &answers.replies);
        Ok(answers)
    }

    /// Gives up a connection to a demoted primary. Dialling again finds the new one. Subscriptions
    /// are probably on the same server.
    fn check(&self, conn: &Conn, answers: &[Result<Reply, ClientError>]) {
        let demoted = |answer: &Result<Reply, ClientError>| matches!(answer, Err(ClientError::Rejected { code, .. }) if code == "READONLY");
        if answers.iter().any(demoted) {
            conn.give_up("it is not the primary (READONLY)");
            self.links.messages().suspect();
        }
    }

    pub(crate) async fn command_on_primaries(
        &self,
        words: &[&[u8]],
    ) -> Result<Vec<NodeReply>, ClientError> {
        Request::new(words)?;
        let node = match &self.links.target {
            Target::Server(server) => server.to_string(),
            Target::Primary(_) => self.links.commands().conn().await?.server(),
        };
        let reply = self.command(words).await;
        Ok(vec![NodeReply { node, reply }])
    }

    pub(crate) async fn subscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        let conn = self.links.messages().conn().await?;
        let outcomes = messages::subscribe(&conn, channels).await;
        outcomes.into_iter().collect()
    }

    pub(crate) async fn unsubscribe(&self, channels: &[Channel]) -> Result<(), ClientError> {
        match self.links.messages().current() {
            Some(conn) => messages::unsubscribe(&conn, channels).await,
            // The subscriptions ended with their connection.
            None => Ok(()),
        }
    }

    pub(crate) fn close(&self) {
        if let Some(watching) = &self.watching {
            watching.abort();
        }
        self.links.close();
    }
}
