//! One primary: a standalone server, or the one the sentinels name.

use std::sync::Arc;

use locktopus_protocol::{ClientError, Deployment, HostPort, NodeReply, Pipelined, Reply};
use tokio::sync::watch;

use crate::connection::dial::Dialer;
use crate::connection::error::code_of;
use crate::connection::link::{Link, Target};
use crate::connection::send::Live;

/// The connections for commands to the primary.
#[derive(Debug)]
pub(crate) struct Single {
    target: Target,
    link: Arc<Link>,
    /// For commands that may block.
    blocking: Arc<Link>,
    /// Counts how often the server turned out not to be the primary.
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

    /// Where to make a second connection to the same primary.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Listens for a new primary, if there are sentinels.
    pub(crate) async fn watch(&self) {
        if let Target::Primary(sentinels) = &self.target {
            sentinels.watch().await;
        }
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Whether subscriptions on this server are where commands go.
    pub(crate) fn is_current(&self, server: &HostPort) -> bool {
        self.link
            .peek()
            .is_none_or(|live| live.health().server() == server)
    }

    pub(crate) async fn configuration_epoch(&self) -> Option<u64> {
        let Target::Primary(sentinels) = &self.target else {
            return None;
        };
        // Connecting asks the sentinels. If that fails, so does the command that needs the epoch.
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

    /// Counts how often the server turned out not to be the primary.
    pub(crate) fn disturbances(&self) -> watch::Receiver<u64> {
        self.disturbances.subscribe()
    }

    /// A caller timed out.
    pub(crate) fn timed_out(&self) {
        self.link.suspect();
        self.blocking.suspect();
    }

    /// Closes the connections for good.
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
            // Every answer comes over a connection.
            (None, Ok(reply)) => Ok(vec![NodeReply {
                node: String::new(),
                reply: Ok(reply),
            }]),
        }
    }

    /// Sends a command. Returns the answer and the connection it came over.
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

    /// Gives up a connection for commands. Subscriptions are probably on the same server.
    fn wrong_server(&self, live: &Live, reason: &'static str) {
        live.health().kill(reason);
        self.disturbances.send_modify(|count| *count += 1);
    }

    /// Why the next command should look for the primary again, if it should.
    fn means_wrong_server(&self, code: &str) -> Option<&'static str> {
        match (&self.target, code) {
            // The host name may have moved to another server.
            (_, "READONLY") => Some("it is not the primary (READONLY)"),
            // A primary that just restarted is about to be replaced, if the sentinels saw it die.
            (Target::Primary(_), "LOADING") => Some("it was started again (LOADING)"),
            (Target::Primary(_), "MASTERDOWN") => Some("it has lost its primary (MASTERDOWN)"),
            (Target::Primary(_) | Target::Server(_), _) => None,
        }
    }
}
