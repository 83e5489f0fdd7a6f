//! One server of a deployment: its addresses and the verbs on it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::topology::admin;
use crate::topology::error::TopologyError;
use crate::topology::host::Host;
use crate::topology::plan::NodePlan;
use crate::topology::poll;
use crate::topology::provider::Isolation;
use crate::topology::resp::Resp;
use crate::topology::unread::unread;

/// Limit for one admin command, far above what a healthy server needs.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// Limit for one of several checks of a server that may be frozen.
const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// Limit for a started server to answer.
const START_WITHIN: Duration = Duration::from_secs(30);

/// Limit for bytes to arrive on the loopback.
const UNREAD_WITHIN: Duration = Duration::from_secs(5);

/// The role that a server reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Accepts writes.
    Primary,
    /// Copies a primary.
    Replica {
        /// Whether the link to the primary is up and the first copy is complete.
        linked: bool,
    },
    /// Watches others.
    Sentinel,
}

/// One server.
///
/// The verbs take effect before they return: a crashed process is gone, a started one answers.
#[derive(Debug)]
pub struct Node {
    name: String,
    addr: SocketAddr,
    admin: SocketAddr,
    /// The port that it listens on for clients.
    port: u16,
    host: Host,
}

impl Node {
    pub(crate) fn new(plan: &NodePlan, host: Host) -> Self {
        Self {
            name: plan.name.clone(),
            addr: (Ipv4Addr::LOCALHOST, plan.public_port).into(),
            admin: (Ipv4Addr::LOCALHOST, plan.admin_port).into(),
            port: plan.port,
            host,
        }
    }

    /// Name within the deployment, such as `node-0` or `sentinel-2`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address for clients; always a literal loopback address.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address for the harness: a plain-text port of the server itself. The same as
    /// [`Node::addr`] except with TLS or behind a proxy.
    #[must_use]
    pub const fn admin_addr(&self) -> SocketAddr {
        self.admin
    }

    /// The port that it listens on for clients, behind its proxy if it has one. The port of its
    /// cluster bus is computed from it.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// The process or container, for reports.
    pub async fn id(&self) -> String {
        self.host.id().await
    }

    /// The server's process id; `None` when it is not running or runs in a container.
    pub async fn pid(&self) -> Option<u32> {
        self.host.pid().await
    }

    /// Whether the server's process exists; a frozen one does.
    pub async fn is_running(&self) -> bool {
        self.host.ending().await.is_none()
    }

    /// The last lines that the server wrote.
    pub async fn last_output(&self) -> String {
        self.host.last_output().await
    }

    /// The last line of its output that contains these words. For a container, only the last lines
    /// are searched.
    pub async fn last_line_with(&self, words: &str) -> Option<String> {
        let output = self.host.output().await;
        let mut lines = output.lines().rev();
        lines
            .find(|line| line.contains(words))
            .map(ToOwned::to_owned)
    }

    /// Sends a command over a fresh connection. An error reply is an `Err`.
    ///
    /// # Errors
    ///
    /// [`TopologyError::NoAnswer`] after twenty seconds, because a whole machine may stop for some
    /// of them, [`TopologyError::Connection`] if the server cannot be reached,
    /// [`TopologyError::Refused`] for an error reply.
    pub async fn command(&self, words: &[&str]) -> Result<Resp, TopologyError> {
        self.command_within(ANSWER_WITHIN, words).await
    }

    /// As [`Node::command`], with another limit.
    ///
    /// # Errors
    ///
    /// As [`Node::command`].
    pub async fn command_within(
        &self,
        within: Duration,
        words: &[&str],
    ) -> Result<Resp, TopologyError> {
        self.answer(
            words,
            admin::ask(&self.name, self.admin, words, within).await?,
        )
    }

    fn answer(&self, words: &[&str], reply: Resp) -> Result<Resp, TopologyError> {
        match reply {
            Resp::Error(message) => Err(TopologyError::Refused {
                node: self.name.clone(),
                command: words.first().copied().unwrap_or_default().to_owned(),
                message,
            }),
            reply => Ok(reply),
        }
    }

    /// The reply to `ROLE`.
    async fn ask_role(&self, within: Duration) -> Result<Resp, TopologyError> {
        let reply = admin::ask_again(&self.name, self.admin, &["ROLE"], within).await?;
        self.answer(&["ROLE"], reply)
    }

    /// As [`Node::command`], for callers that check again soon, perhaps on another server.
    pub(crate) async fn look(&self, words: &[&str]) -> Result<Resp, TopologyError> {
        self.command_within(LOOK_WITHIN, words).await
    }

    /// One field of a section of `INFO`; `None` if the server does not have it.
    ///
    /// # Errors
    ///
    /// As [`Node::command`].
    pub async fn info(&self, section: &str, field: &str) -> Result<Option<String>, TopologyError> {
        let text = self.command(&["INFO", section]).await?.text();
        Ok(text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| *name == field)
            .map(|(_, value)| value.trim().to_owned()))
    }

    /// The role that the server reports. Repeated once if the connection breaks: a server that
    /// becomes a replica closes all of them.
    ///
    /// # Errors
    ///
    /// As [`Node::command`].
    pub async fn role(&self) -> Result<Role, TopologyError> {
        Ok(role_in(&self.ask_role(ANSWER_WITHIN).await?))
    }

    /// The port of the server that this one copies, as it reports; `None` if it copies none.
    /// Repeated as for [`Node::role`].
    ///
    /// # Errors
    ///
    /// As [`Node::command`].
    pub async fn copies_port(&self) -> Result<Option<u16>, TopologyError> {
        let reply = self.ask_role(ANSWER_WITHIN).await?;
        let port = match role_in(&reply) {
            Role::Replica { .. } => reply.items().get(2).map(Resp::text),
            _ => None,
        };
        Ok(port.and_then(|port| port.parse().ok()))
    }

    /// As [`Node::role`], for callers that check again soon.
    pub(crate) async fn role_seen(&self) -> Result<Role, TopologyError> {
        Ok(role_in(&self.ask_role(LOOK_WITHIN).await?))
    }

    /// Stops the server's process, without ending it. Connections still open, and replies never
    /// come.
    ///
    /// # Errors
    ///
    /// [`TopologyError::WrongState`] when it is not running.
    pub async fn freeze(&self) -> Result<(), TopologyError> {
        self.host.freeze().await
    }

    /// Lets a frozen server run on.
    ///
    /// # Errors
    ///
    /// [`TopologyError::WrongState`] when it is not running.
    pub async fn thaw(&self) -> Result<(), TopologyError> {
        self.host.thaw().await
    }

    /// Waits until at least `bytes` bytes have arrived over the connection of `peer`, a client's
    /// address, that the server has not read: a frozen server reads nothing. Only for processes on
    /// Linux.
    ///
    /// # Errors
    ///
    /// [`TopologyError::WrongState`] if it is not running as a process of this machine,
    /// [`TopologyError::NotReached`] after five seconds.
    pub async fn wait_unread(&self, peer: SocketAddr, bytes: usize) -> Result<(), TopologyError> {
        let pid = self.pid().await.ok_or_else(|| TopologyError::WrongState {
            node: self.name.clone(),
            state: "not a running process of this machine",
            hint: "only of one can it be told what it has not read",
        })?;
        let what = || format!("{bytes} bytes from {peer} that {} has not read", self.name);
        poll::until(what, UNREAD_WITHIN, || async {
            match unread(pid, self.addr, peer).map_err(|error| error.to_string())? {
                Some(waits) if waits >= bytes as u64 => Ok(()),
                waits => Err(format!("{waits:?}")),
            }
        })
        .await
    }

    /// Ends the server at once, as a power cut would.
    ///
    /// # Errors
    ///
    /// [`TopologyError::WrongState`] when it is not running.
    pub async fn crash(&self) -> Result<(), TopologyError> {
        self.host.crash().await
    }

    /// Asks the server to end in good order, and ends it by force after `grace`.
    ///
    /// # Errors
    ///
    /// [`TopologyError::WrongState`] when it is not running.
    pub async fn stop(&self, grace: Duration) -> Result<(), TopologyError> {
        self.host.stop(grace).await
    }

    /// Starts an ended server again on the same port with its files, and waits for its answer.
    ///
    /// # Errors
    ///
    /// [`TopologyError::WrongState`] when it is running, [`TopologyError::ServerEnded`] when it
    /// ends at once.
    pub async fn start(&self) -> Result<(), TopologyError> {
        self.host.start().await?;
        self.wait_answering(START_WITHIN).await
    }

    /// [`Node::stop`] if it runs, then [`Node::start`].
    ///
    /// # Errors
    ///
    /// As [`Node::start`].
    pub async fn restart(&self, grace: Duration) -> Result<(), TopologyError> {
        if self.is_running().await {
            self.stop(grace).await?;
        }
        self.start().await
    }

    /// Keeps the server busy for `span`, so that it answers no one. Returns when the server reports
    /// that the span is over.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Refused`] if the server was built or configured not to allow this.
    pub async fn stall(&self, span: Duration) -> Result<(), TopologyError> {
        let seconds = format!("{:.3}", span.as_secs_f64());
        let within = span + ANSWER_WITHIN;
        self.command_within(within, &["DEBUG", "SLEEP", &seconds])
            .await
            .map(drop)
    }

    /// Cuts traffic of this server until [`Node::heal`].
    ///
    /// # Errors
    ///
    /// [`TopologyError::Unsupported`] when the deployment lacks the capability.
    pub async fn isolate(&self, from: Isolation) -> Result<(), TopologyError> {
        self.host.isolate(from).await
    }

    /// Ends every isolation of this server.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Engine`] when the rules cannot be removed.
    pub async fn heal(&self) -> Result<(), TopologyError> {
        self.host.heal().await
    }

    /// Sets the server's clock this far ahead of the true time. [`Duration::ZERO`] corrects it,
    /// which is a step back. Needs [`Knobs::settable_clock`](super::Knobs::settable_clock). The
    /// clock keeps its setting when the server is restarted.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Unsupported`] if the server has the system's clock, [`TopologyError::Io`]
    /// if its own cannot be written.
    pub fn set_clock_ahead(&self, ahead: Duration) -> Result<(), TopologyError> {
        self.host.set_clock_ahead(ahead)
    }

    /// Waits until the server answers, or reports how it ended.
    pub(crate) async fn wait_answering(&self, within: Duration) -> Result<(), TopologyError> {
        let ended = poll::until(
            || format!("an answer from {}", self.name),
            within,
            async || match self.look(&["PING"]).await {
                Ok(_) => Ok(None),
                Err(error) => match self.host.ending().await {
                    Some(how) => Ok(Some(how)),
                    None => Err(error.to_string()),
                },
            },
        )
        .await?;
        match ended {
            None => Ok(()),
            Some(how) => Err(TopologyError::ServerEnded {
                node: self.name.clone(),
                how,
                log: self.host.last_output().await,
            }),
        }
    }

    #[cfg(feature = "pod")]
    pub(crate) fn into_host(self) -> Host {
        self.host
    }

    /// Starts the teardown without waiting for it.
    pub(crate) fn begin_end(&mut self) {
        self.host.begin_end();
    }
}

fn role_in(reply: &Resp) -> Role {
    let word = |index: usize| reply.items().get(index).map(Resp::text).unwrap_or_default();
    match word(0).as_str() {
        "sentinel" => Role::Sentinel,
        "master" => Role::Primary,
        _ => Role::Replica {
            linked: word(3) == "connected",
        },
    }
}
