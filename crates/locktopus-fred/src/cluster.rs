//! Commands on a cluster: find the node, follow redirects, keep the slot table fresh.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::future::join_all;
use locktopus_protocol::slot_map::Redirect;
use locktopus_protocol::{ClientError, HostPort, NodeReply, Pipelined, PushEvent, Reply, Route};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::dial::Dialer;
use crate::error;
use crate::node::Node;
use crate::request::Request;
use crate::shards::Placements;
use crate::slots::SlotMap;
use crate::strangers::Strangers;
use crate::survey;

/// How many refusals in a row a command follows before they are reported.
const REDIRECTS: usize = 5;

/// A cluster client: one independent link per primary, so that a dead node delays no other.
pub(crate) struct Cluster {
    shared: Arc<Shared>,
}

/// What the client and its survey task share.
pub(crate) struct Shared {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) seeds: Vec<HostPort>,
    pub(crate) events: UnboundedSender<PushEvent>,
    pub(crate) placements: Placements,
    pub(crate) strangers: Strangers,
    pub(crate) stale: Notify,
    /// Counts finished surveys.
    pub(crate) surveys: watch::Sender<u64>,
    /// Whether the next survey has to wait for the end of a pause.
    pub(crate) resting: AtomicBool,
    pub(crate) closed: CancellationToken,
    map: RwLock<Arc<SlotMap>>,
}

impl Cluster {
    /// Asks `seeds` for the slot table and starts to keep it fresh. Says why if nobody knew it.
    pub(crate) async fn connect(
        dialer: Arc<Dialer>,
        seeds: Vec<HostPort>,
        events: UnboundedSender<PushEvent>,
    ) -> (Self, Option<String>) {
        let shared = Arc::new(Shared {
            dialer,
            seeds,
            events,
            placements: Placements::default(),
            strangers: Strangers::default(),
            stale: Notify::new(),
            surveys: watch::Sender::new(0),
            resting: AtomicBool::new(false),
            closed: CancellationToken::new(),
            map: RwLock::new(Arc::new(SlotMap::empty())),
        });
        let failure = survey::once(&shared, 0).await.err();
        tokio::spawn(survey::run(Arc::clone(&shared)));
        (Self { shared }, failure)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Sends one command to the node that `route` names, following refusals that name another node.
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
            let conn = match node.commands().conn().await {
                Ok(conn) => conn,
                // Nothing was sent yet, so another owner may be tried, if there is one by now.
                Err(unreachable) => {
                    node = self.shared.successor(&node, route, unreachable).await?;
                    continue;
                }
            };
            let refusal = match conn.send(Request::new(words)?).await {
                Err(ClientError::Rejected { code, message }) => (code, message),
                Err(failure) => {
                    self.shared.stale.notify_one();
                    return Err(failure);
                }
                Ok(reply) => return Ok(reply),
            };
            let target = Redirect::parse(&refusal.1, node.address());
            refusals += 1;
            if matches!(refusal.0.as_str(), "MOVED" | "READONLY") {
                // It may be a replica by now, with subscriptions on it.
                node.suspect_messages();
            }
            match (refusal.0.as_str(), target) {
                ("MOVED", Some(to)) if refusals <= REDIRECTS => {
                    node = self.shared.moved(&to);
                }
                ("ASK", Some(to)) => return self.shared.node(&to.node).ask(words).await,
                (code, _) => {
                    if matches!(code, "MOVED" | "CLUSTERDOWN" | "READONLY" | "MASTERDOWN") {
                        self.shared.stale.notify_one();
                    }
                    return Err(ClientError::Rejected {
                        code: refusal.0,
                        message: refusal.1,
                    });
                }
            }
        }
    }

    /// Sends a command that any primary can answer to the first one that can be reached, beginning with those that
    /// are up: one that is away must not fail what any other one could do.
    async fn anywhere(&self, words: &[&[u8]]) -> Result<Reply, ClientError> {
        let mut nodes = self.shared.map().nodes().to_vec();
        nodes.sort_by_key(|node| node.commands().current().is_none());
        let mut problem = ClientError::NotSent("the cluster has no primary".to_owned());
        for node in nodes {
            match node.commands().conn().await {
                Ok(conn) => return conn.send(Request::new(words)?).await,
                Err(unreachable) => problem = unreachable,
            }
        }
        self.shared.stale.notify_one();
        Err(problem)
    }

    /// Sends several commands at once to the node that `route` names, over a connection of their own.
    pub(crate) async fn pipeline(
        &self,
        route: Route,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        let requests = Request::each(commands)?;
        let node = self.shared.find(route).await?;
        let answers = match node.lane().conn().await {
            Ok(conn) => conn.send_each(requests).await,
            Err(unreachable) => Err(unreachable),
        };
        let refused = match &answers {
            Ok(answers) => answers.replies.iter().find_map(|reply| match reply {
                Err(ClientError::Rejected { code, message }) => Some((code.as_str(), message)),
                _ => None,
            }),
            Err(_) => {
                self.shared.stale.notify_one();
                None
            }
        };
        match refused {
            Some(("MOVED", message)) => {
                if let Some(to) = Redirect::parse(message, node.address()) {
                    self.shared.moved(&to);
                }
            }
            Some(("CLUSTERDOWN" | "READONLY" | "MASTERDOWN", _)) => self.shared.stale.notify_one(),
            Some(_) | None => {}
        }
        answers
    }

    /// Sends one command to every primary at once.
    pub(crate) async fn command_on_primaries(
        &self,
        words: &[&[u8]],
    ) -> Result<Vec<NodeReply>, ClientError> {
        Request::new(words)?;
        let map = self.shared.map();
        if map.nodes().is_empty() {
            self.shared.stale.notify_one();
            let nobody = "no primary of the cluster is known";
            return Err(ClientError::NotSent(nobody.to_owned()));
        }
        let replies = map.nodes().iter().map(|node| async move {
            NodeReply {
                node: node.address().to_string(),
                reply: self.in_time(node, words).await,
            }
        });
        Ok(join_all(replies).await)
    }

    /// Drops the connection that carries a channel: somebody who listens to it was not counted on the primary.
    pub(crate) fn misplaced(&self, channel: &[u8]) {
        self.shared.stale.notify_one();
        let Some(place) = self.shared.placements.find(channel) else {
            return;
        };
        let map = self.shared.map();
        if let Some(node) = map.nodes().iter().find(|node| *node.address() == place)
            && let Some(link) = node.open_messages()
        {
            link.drop_current();
        }
    }

    /// One node that hangs must not hide what the others say.
    async fn in_time(&self, node: &Node, words: &[&[u8]]) -> Result<Reply, ClientError> {
        let limit = self.shared.dialer.budget().answer();
        let answer = async {
            let conn = node.commands().conn().await?;
            conn.send(Request::new(words)?).await
        };
        let answer = tokio::time::timeout(limit, answer).await;
        answer.unwrap_or_else(|_elapsed| {
            node.suspect();
            Err(ClientError::MaybeExecuted(format!(
                "nothing heard in {limit:?}"
            )))
        })
    }

    /// Has the connection to the node behind `route` checked, and the slot table too.
    pub(crate) fn suspect(&self, route: Route) {
        let map = self.shared.map();
        match route {
            Route::Slot(slot) => {
                if let Some(node) = map.owner(slot) {
                    node.suspect();
                }
            }
            Route::Any => map.nodes().iter().for_each(|node| node.suspect()),
        }
        self.shared.stale.notify_one();
    }

    pub(crate) fn close(&self) {
        self.shared.closed.cancel();
        for node in self.shared.map().nodes() {
            node.close();
        }
        self.shared.strangers.close();
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
            .field("nodes", &self.shared.map().nodes())
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// The slot table of this moment.
    pub(crate) fn map(&self) -> Arc<SlotMap> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes `change` to the slot table.
    pub(crate) fn update(&self, change: impl FnOnce(&SlotMap) -> SlotMap) {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        *map = Arc::new(change(&map));
    }

    /// A node that the table is about to have.
    pub(crate) fn make(&self, address: &HostPort) -> Arc<Node> {
        let met = self.strangers.take(address);
        met.unwrap_or_else(|| self.new_node(address))
    }

    fn new_node(&self, address: &HostPort) -> Arc<Node> {
        Arc::new(Node::new(
            address.clone(),
            Arc::clone(&self.dialer),
            self.events.clone(),
        ))
    }

    /// Believes a MOVED answer at once and has the rest of the table checked.
    pub(crate) fn moved(&self, to: &Redirect) -> Arc<Node> {
        self.update(|map| map.with_moved(to, |address| self.make(address)));
        self.stale.notify_one();
        self.node(&to.node)
    }

    /// The node at `address`, known or not.
    fn node(&self, address: &HostPort) -> Arc<Node> {
        let map = self.map();
        let known = map.nodes().iter().find(|node| node.address() == address);
        known.map_or_else(
            || self.strangers.visit(address, || self.new_node(address)),
            Arc::clone,
        )
    }

    /// Waits until the slot table was checked once more. In the pause after a check nobody waits: the table is
    /// fresh, as far as it could be, and whoever needs a better one asks again.
    pub(crate) async fn resurvey(&self) {
        let mut done = self.surveys.subscribe();
        self.stale.notify_one();
        if !self.resting.load(Ordering::Acquire) {
            let _closed = done.changed().await;
        }
    }

    async fn find(&self, route: Route) -> Result<Arc<Node>, ClientError> {
        if let Some(node) = self.look_up(route) {
            return Ok(node);
        }
        self.check_open()?;
        self.resurvey().await;
        self.look_up(route).ok_or_else(|| {
            ClientError::NotSent(match route {
                Route::Slot(slot) => format!("no primary of the cluster serves slot {slot}"),
                Route::Any => "the cluster has no primary".to_owned(),
            })
        })
    }

    fn look_up(&self, route: Route) -> Option<Arc<Node>> {
        let map = self.map();
        match route {
            Route::Slot(slot) => map.owner(slot).map(Arc::clone),
            Route::Any => {
                let nodes = map.nodes();
                let up = nodes
                    .iter()
                    .find(|node| node.commands().current().is_some());
                up.or_else(|| nodes.first()).map(Arc::clone)
            }
        }
    }

    /// After `node` could not be reached: the node that serves `route` now, if it is another one.
    pub(crate) async fn successor(
        &self,
        node: &Arc<Node>,
        route: Route,
        unreachable: ClientError,
    ) -> Result<Arc<Node>, ClientError> {
        self.check_open()?;
        self.resurvey().await;
        match self.look_up(route) {
            Some(next) if next.address() != node.address() => Ok(next),
            _ => Err(unreachable),
        }
    }

    pub(crate) fn check_open(&self) -> Result<(), ClientError> {
        if self.closed.is_cancelled() {
            Err(error::closed())
        } else {
            Ok(())
        }
    }
}
