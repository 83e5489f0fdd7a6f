//! One primary: a standalone server, or the one that the sentinels name.

use std::sync::Arc;

use locktopus_protocol::{ClientError, Deployment, HostPort, NodeReply, Pipelined, Reply};
use tokio::sync::watch;

use crate::connection::dial::Dialer;
use crate::connection::error::code_of;
use crate::connection::link::{Link, Target};
use crate::connection::send::Live;

/// The connection for commands to the one primary.
#[derive(Debug)]
pub(crate) struct Single {
    target: Target,
    link: Arc<Link>,
    /// For commands that may block.
    blocking: Arc<Link>,
    /// Counts how often the server was found not to be the primary.
    disturbances: watch::Sender<u64>,
}

impl Single {
    pub(crate) fn new(target: Target, dialer: Arc<Dialer>) -> Self {
        Self {
            link: Link::new(target.clone(), Arc::clone(&dialer), None),
            blocking: Link::new(target.clone(), dialer, None),
            disturbances: watch::Sender::new(0),
            target,
        }
    }

    pub(crate) fn deployment(&self) -> Deployment {
        match self.target {
            Target::Server(_) => Deployment::Standalone,
            Target::Primary(_) => Deployment::Sentinel,
        }
    }

    /// Where a second connection to the same primary leads.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Listens for news of another primary, if there is somebody who knows.
    pub(crate) async fn watch(&self) {
        if let Target::Primary(sentinels) = &self.target {
            sentinels.watch().await;
        }
    }

    /// The connection itself.
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Whether subscriptions on this server are where the commands go.
    pub(crate) fn is_current(&self, server: &HostPort) -> bool {
        self.link
            .peek()
            .is_none_or(|live| live.health().server() == server)
    }

    pub(crate) async fn configuration_epoch(&self) -> Option<u64> {
        let Target::Primary(sentinels) = &self.target else {
            return None;
        };
        // They are asked when it is made. If that fails, so does the command that wants to know.
        let _ = self.link.get().await;
        sentinels.epoch()
    }

    pub(crate) async fn command(&self, args: &[&[u8]]) -> Result<Reply, ClientError> {
        self.answer(args).await.1
    }

    pub(crate) async fn pipeline(&self, commands: &[&[&[u8]]]) -> Result<Pipelined, ClientError> {
        let live = self.blocking.get().await?;
        let answers = live.clone().send_each(commands).await?;
        let wrong = |answer: &Result<Reply, ClientError>| {
            code_of(answer).and_then(|code| self.means_wrong_server(code))
        };
        if let Some(reason) = answers.replies.iter().find_map(wrong) {
            self.wrong_server(&live, reason);
        }
        Ok(answers)
    }

    /// Counts how often the server was found not to be the primary.
    pub(crate) fn disturbances(&self) -> watch::Receiver<u64> {
        self.disturbances.subscribe()
    }

    /// A caller gave up waiting for an answer.
    pub(crate) fn timed_out(&self) {
        self.link.suspect();
        self.blocking.suspect();
    }

    /// Drops the connections for good.
    pub(crate) fn close(&self) {
        self.link.close();
        self.blocking.close();
    }

    pub(crate) async fn command_on_primaries(
        &self,
        args: &[&[u8]],
    ) -> Result<Vec<NodeReply>, ClientError> {
        match self.answer(args).await {
            (Some(live), reply) => Ok(vec![NodeReply {
                node: live.health().server().to_string(),
                reply,
            }]),
            (None, Err(error)) => Err(error),
            // An answer always comes from somewhere.
            (None, Ok(reply)) => Ok(vec![NodeReply {
                node: String::new(),
                reply: Ok(reply),
            }]),
        }
    }

    /// An answer, and the connection that it came over.
    async fn answer(&self, args: &[&[u8]]) -> (Option<Live>, Result<Reply, ClientError>) {
        let mut live = match self.link.get().await {
            Ok(live) => live,
            Err(error) => return (None, Err(error)),
        };
        let answer = live.send(args).await;
        if let Some(reason) = code_of(&answer).and_then(|code| self.means_wrong_server(code)) {
            self.wrong_server(&live, reason);
        }
        (Some(live), answer)
    }

    /// Gives up a connection for commands. Subscriptions are likely to be on the same server.
    fn wrong_server(&self, live: &Live, reason: &'static str) {
        live.health().kill(reason);
        self.disturbances.send_modify(|count| *count += 1);
    }

    /// Why the next command should look for the primary again, if it should.
    fn means_wrong_server(&self, code: &str) -> Option<&'static str> {
        match (&self.target, code) {
            // A host name may lead elsewhere by now.
            (_, "READONLY") => Some("it is not the primary (READONLY)"),
            // A primary that just started again is about to be replaced, if the sentinels saw it
            // die.
            (Target::Primary(_), "LOADING") => Some("it was started again (LOADING)"),
            (Target::Primary(_), "MASTERDOWN") => Some("it has lost its primary (MASTERDOWN)"),
            (Target::Primary(_) | Target::Server(_), _) => None,
        }
    }
}
