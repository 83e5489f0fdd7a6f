//! One primary: a standalone server, or the one the sentinels name.

use std::sync::Arc;

use locktopus_protocol::sentinels::Target;
use locktopus_protocol::{ClientError, HostPort, NodeReply, Pipelined, Reply};
use tokio::sync::watch;

use crate::connection::dial::Dialer;
use crate::connection::link::Link;
use crate::connection::send::Live;

/// The connections for commands to the primary.
#[derive(Debug)]
pub(crate) struct Single {
    pub(crate) target: Target,
    pub(crate) link: Arc<Link>,
    /// For commands that may block.
    blocking: Arc<Link>,
    /// Counts how often the server turned out not to be the primary.
    pub(crate) disturbances: watch::Sender<u64>,
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

    /// Whether subscriptions on this server are where commands go.
    pub(crate) fn is_current(&self, server: &HostPort) -> bool {
        self.link
            .peek()
            .is_none_or(|live| live.health().server() == server)
    }

    pub(crate) async fn configuration_epoch(&self) -> Option<u64> {
        let sentinels = self.target.sentinels()?;
        // Connecting asks the sentinels. If that fails, so does the command that needs the epoch.
        let _ = self.link.get().await;
        sentinels.epoch()
    }

    pub(crate) async fn command(&self, args: &[&[u8]]) -> Result<Reply, ClientError> {
        let mut live = self.link.get().await?;
        let answer = live.send(args).await;
        self.check(&live, std::slice::from_ref(&answer));
        answer
    }

    pub(crate) async fn pipeline(&self, commands: &[&[&[u8]]]) -> Result<Pipelined, ClientError> {
        let mut live = self.blocking.get().await?;
        let answers = live.send_each(commands).await?;
        self.check(&live, &answers.replies);
        Ok(answers)
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
        let node = self.link.get().await?.health().server().to_string();
        let reply = self.command(args).await;
        Ok(vec![NodeReply { node, reply }])
    }

    /// Gives up a connection for commands if an answer says that its server is not the primary.
    /// Subscriptions are probably on the same server.
    fn check(&self, live: &Live, answers: &[Result<Reply, ClientError>]) {
        let wrong = answers.iter().find_map(|answer| match answer {
            Err(ClientError::Rejected { code, .. }) => self.means_wrong_server(code),
            _ => None,
        });
        if let Some(reason) = wrong {
            live.health().kill(reason);
            self.disturbances.send_modify(|count| *count += 1);
        }
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
