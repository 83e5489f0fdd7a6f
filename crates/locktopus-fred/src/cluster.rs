//! Commands on a cluster: finds the node, follows redirects, keeps the slot table fresh.

mod placements;
mod refresh;
mod shared;
mod subscriptions;

use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;
use locktopus_protocol::slot_map::Redirect;
use locktopus_protocol::{ClientError, HostPort, NodeReply, Pipelined, PushEvent, Reply, Route};
use tokio::sync::mpsc::UnboundedSender;

use crate::connection::dial::Dialer;
use crate::connection::request::Request;
use shared::{Node, Shared};

/// How many redirects in a row a command follows before it fails.
const REDIRECTS: usize = 5;

/// A cluster client. Each primary has its own link, so a dead node delays no other.
pub(crate) struct Cluster {
    shared: Arc<Shared>,
}

impl Cluster {
    /// Asks `seeds` for the slot table and keeps it fresh. Returns the reason if none knew it.
    pub(crate) async fn connect(
        dialer: Arc<Dialer>,
        seeds: Vec<HostPort>,
        events: UnboundedSender<PushEvent>,
    ) -> (Self, Option<String>) {
        let shared = Arc::new(Shared::new(dialer, seeds, events));
        let failure = refresh::once(&shared).await.err();
        tokio::spawn(refresh::run(Arc::clone(&shared)));
        (Self { shared }, failure)
    }

    /// A copy on this runtime, which fetches the slot table anew.
    pub(crate) fn again(&self, events: UnboundedSender<PushEvent>) -> Self {
        let (dialer, seeds) = (
            Arc::clone(&self.shared.dialer),
            self.shared.map.seeds().to_vec(),
        );
        let shared = Arc::new(Shared::new(dialer, seeds, events));
        shared.map.mark_stale();
        tokio::spawn(refresh::run(Arc::clone(&shared)));
        Self { shared }
    }

    /// Sends one command to the node for `route`. Follows redirects.
    pub(crate) async fn command(
        &self,
        route: Route,
        words: &[&[u8]],
    ) -> Result<Reply, ClientError> {
        let mut node = self.shared.find(route).await?;
        if route == Route::Any {
            return self.anywhere(words).await;
        }
        let mut refusals = 0;
        loop {
            let conn = match node.links.commands().conn().await {
                Ok(conn) => conn,
                // Nothing was sent yet, so another owner may be tried if there is one now.
                Err(unreachable) => {
                    node = self.shared.successor(&node, route, unreachable).await?;
                    continue;
                }
            };
            let refusal = match conn.send(Request::new(words)?).await {
                Err(ClientError::Rejected { code, message }) => (code, message),
                Err(failure) => {
                    self.shared.map.doubt(node.address.clone());
                    return Err(failure);
                }
                Ok(reply) => return Ok(reply),
            };
            let target = Redirect::parse(&refusal.1, &node.address);
            refusals += 1;
            if matches!(refusal.0.as_str(), "MOVED" | "READONLY") {
                // The node may be a replica now, and its subscriptions with it.
                if let Some(link) = node.links.open_messages() {
                    link.suspect();
                }
            }
            match (refusal.0.as_str(), target) {
                ("MOVED", Some(to)) if refusals <= REDIRECTS => {
                    node = self.shared.moved(&to);
                }
                ("ASK", Some(to)) => return self.shared.map.node(&to.node).links.ask(words).await,
                (code, _) => {
                    if matches!(code, "MOVED" | "CLUSTERDOWN" | "READONLY" | "MASTERDOWN") {
                        self.shared.map.doubt(node.address.clone());
                    }
                    return Err(ClientError::Rejected {
                        code: refusal.0,
                        message: refusal.1,
                    });
                }
            }
        }
    }

    /// Sends a command that any primary can answer to the first reachable one, connected ones
    /// first. An unreachable primary must not fail what another can do.
    async fn anywhere(&self, words: &[&[u8]]) -> Result<Reply, ClientError> {
        let mut nodes = self.shared.map.table().nodes().to_vec();
        nodes.sort_by_key(|node| !node.is_up());
        let mut problem = ClientError::NotSent("the cluster has no primary".to_owned());
        for node in nodes {
            match node.links.commands().conn().await {
                Ok(conn) => return conn.send(Request::new(words)?).await,
                Err(unreachable) => problem = unreachable,
            }
        }
        self.shared.map.mark_stale();
        Err(problem)
    }

    /// Sends several commands at once to the node for `route`, over the link for blocking commands.
    pub(crate) async fn pipeline(
        &self,
        route: Route,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        let requests = Request::each(commands)?;
        let node = self.shared.find(route).await?;
        let answers = match node.links.blocking().conn().await {
            Ok(conn) => conn.send_each(requests).await,
            Err(unreachable) => Err(unreachable),
        };
        let refused = match &answers {
            Ok(answers) => answers.replies.iter().find_map(|reply| match reply {
                Err(ClientError::Rejected { code, message }) => Some((code.as_str(), message)),
                _ => None,
            }),
            Err(_) => {
                self.shared.map.doubt(node.address.clone());
                None
            }
        };
        match refused {
            Some(("MOVED", message)) => {
                if let Some(to) = Redirect::parse(message, &node.address) {
                    self.shared.moved(&to);
                }
            }
            Some(("CLUSTERDOWN" | "READONLY" | "MASTERDOWN", _)) => {
                self.shared.map.doubt(node.address.clone())
            }
            Some(_) | None => {}
        }
        answers
    }

    /// Sends one command to all primaries at once.
    pub(crate) async fn command_on_primaries(
        &self,
        words: &[&[u8]],
    ) -> Result<Vec<NodeReply>, ClientError> {
        Request::new(words)?;
        let map = self.shared.map.table();
        if map.nodes().is_empty() {
            self.shared.map.mark_stale();
            let nobody = "no primary of the cluster is known";
            return Err(ClientError::NotSent(nobody.to_owned()));
        }
        let replies = map.nodes().iter().map(|node| async move {
            NodeReply {
                node: node.address.to_string(),
                reply: self.in_time(node, words).await,
            }
        });
        Ok(join_all(replies).await)
    }

    /// Drops the connection that carries a channel: the primary does not count its subscriber.
    pub(crate) fn subscription_misplaced(&self, channel: &[u8]) {
        self.shared.map.mark_stale();
        let Some(place) = self.shared.placements.find(channel) else {
            return;
        };
        if let Some(node) = self.shared.map.table().node_at(&place)
            && let Some(link) = node.links.open_messages()
        {
            link.drop_current();
        }
    }

    /// Sends a command with a time limit, because a node that hangs must not hide other answers.
    async fn in_time(&self, node: &Node, words: &[&[u8]]) -> Result<Reply, ClientError> {
        let limit = self.shared.dialer.budget().answer();
        let answer = async {
            let conn = node.links.commands().conn().await?;
            conn.send(Request::new(words)?).await
        };
        let answer = tokio::time::timeout(limit, answer).await;
        answer.unwrap_or_else(|_elapsed| {
            node.links.suspect();
            Err(ClientError::MaybeExecuted(format!(
                "nothing heard in {limit:?}"
            )))
        })
    }

    /// Triggers a check of the connection to the node for `route`, and of the slot table.
    pub(crate) fn suspect(&self, route: Route) {
        let map = self.shared.map.table();
        match route {
            Route::Slot(slot) => {
                if let Some(node) = map.owner(slot) {
                    node.links.suspect();
                    self.shared.map.doubt(node.address.clone());
                }
            }
            Route::Any => map.nodes().iter().for_each(|node| node.links.suspect()),
        }
        self.shared.map.mark_stale();
    }

    pub(crate) fn close(&self) {
        self.shared.map.close();
        let nodes = self.shared.map.nodes();
        nodes.iter().for_each(|node| node.links.close());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("nodes", &self.shared.map.table().nodes())
            .finish_non_exhaustive()
    }
}
