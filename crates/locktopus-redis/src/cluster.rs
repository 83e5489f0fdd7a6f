//! A cluster: one connection per primary, and the map from slots to primaries.
//!
//! The cluster connection of redis-rs is used only if the user asks for it ([`Router`]). It has
//! three weaknesses for locks. It looks up nodes and refreshes its map under one lock, so one
//! frozen node stops commands to all others. It sends to a replica or an arbitrary node while the
//! right one is unreachable. And it hides which node failed. Here each node has its own [`Link`]s,
//! and the map is refreshed in the background.

mod refresh;
mod router;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use locktopus_protocol::sentinels::Target;
use locktopus_protocol::slot_map::{ClusterMap, Redirect, SlotTable};
use locktopus_protocol::{ClientError, HostPort, NodeReply, Pipelined, Reply, Route};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::connection::dial::Dialer;
use crate::connection::link::Link;
use router::Doubt;
pub(crate) use router::Router;

/// The nodes of a cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    dialer: Arc<Dialer>,
    /// Gets every command first, if present.
    router: Option<Router>,
    /// Slots not to route through `router`.
    doubts: Mutex<Vec<Doubt>>,
    pub(crate) map: ClusterMap<Node>,
    turn: AtomicUsize,
    /// Counts new maps, and nodes that are no longer primaries.
    pub(crate) disturbances: watch::Sender<u64>,
}

type Table = SlotTable<Arc<Node>>;

/// A node and the connections for commands to it.
#[derive(Debug)]
pub(crate) struct Node {
    server: HostPort,
    link: Arc<Link>,
    /// For commands that may block.
    blocking: Arc<Link>,
}

impl Node {
    fn new(server: &HostPort, dialer: &Arc<Dialer>) -> Self {
        let link = || Link::new(Target::Server(server.clone()), Arc::clone(dialer), None);
        Self {
            server: server.clone(),
            link: link(),
            blocking: link(),
        }
    }

    async fn send(&self, args: &[&[u8]], asking: bool) -> Result<Reply, ClientError> {
        let mut live = self.link.get().await?;
        match asking {
            true => live.send_asking(args).await,
            false => live.send(args).await,
        }
    }

    fn close(&self) {
        self.link.close();
        self.blocking.close();
    }
}

impl Cluster {
    pub(crate) fn new(seeds: Vec<HostPort>, dialer: Arc<Dialer>, router: Option<Router>) -> Self {
        let dialling = Arc::clone(&dialer);
        Self {
            dialer,
            router,
            doubts: Mutex::default(),
            map: ClusterMap::new(seeds, move |server| Node::new(server, &dialling)),
            turn: AtomicUsize::new(0),
            disturbances: watch::Sender::new(0),
        }
    }

    /// A copy that fetches its own slot map.
    pub(crate) fn again(&self, dialer: Arc<Dialer>) -> Self {
        let router = self.router.as_ref().map(Router::again);
        let again = Self::new(self.map.seeds().to_vec(), dialer, router);
        again.map.mark_stale();
        again
    }

    pub(crate) async fn command(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        if let Some(router) = self.router_for(route) {
            return self.routed(router, route, args).await;
        }
        let Route::Slot(slot) = route else {
            return self.anywhere(args).await;
        };
        let node = self.owner_of(slot)?;
        let answer = node.send(args, false).await;
        let Err(error) = &answer else { return answer };
        let Some((to, asking)) = self.learn(error, &node) else {
            return answer;
        };
        // The first node refused the command, so it has not run. The second node's answer counts.
        self.redirected_to(&to, args, asking).await
    }

    async fn redirected_to(
        &self,
        to: &HostPort,
        args: &[&[u8]],
        asking: bool,
    ) -> Result<Reply, ClientError> {
        let node = self.node(to);
        let answer = node.send(args, asking).await;
        if let Err(error) = &answer {
            self.learn(error, &node);
        }
        answer
    }

    pub(crate) async fn pipeline(
        &self,
        route: Route,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        let node = match route {
            Route::Slot(slot) => self.owner_of(slot)?,
            Route::Any => self
                .connected_first()
                .next()
                .ok_or_else(|| self.nobody("any slot"))?,
        };
        let answers = match node.blocking.get().await {
            Ok(mut live) => live.send_each(commands).await,
            Err(error) => Err(error),
        };
        match &answers {
            Ok(answers) => {
                let mut replies = answers.replies.iter();
                if let Some(error) = replies.find_map(|reply| reply.as_ref().err()) {
                    self.learn(error, &node);
                }
            }
            Err(_) => self.map.doubt(node.server.clone()),
        }
        answers
    }

    pub(crate) async fn command_on_primaries(
        &self,
        args: &[&[u8]],
    ) -> Result<Vec<NodeReply>, ClientError> {
        let table = self.map.table();
        if table.nodes().is_empty() {
            return Err(self.nobody("any slot"));
        }
        let answers = table.nodes().iter().map(|node| async {
            let reply = self.in_time(node, args).await;
            if let Err(error) = &reply {
                self.learn(error, node);
            }
            let node = node.server.to_string();
            NodeReply { node, reply }
        });
        Ok(join_all(answers).await)
    }

    /// Sends a command with a time limit, because a node that hangs must not hide other answers.
    async fn in_time(&self, node: &Node, args: &[&[u8]]) -> Result<Reply, ClientError> {
        let limit = self.dialer.budget().answer();
        timeout(limit, node.send(args, false))
            .await
            .unwrap_or_else(|_| {
                node.link.suspect();
                let silent = format!("nothing heard in {limit:?}");
                Err(ClientError::MaybeExecuted(silent))
            })
    }

    pub(crate) fn timed_out(&self, route: Route) {
        match route {
            Route::Slot(slot) => {
                if let Ok(node) = self.owner_of(slot) {
                    node.link.suspect();
                    node.blocking.suspect();
                    self.map.doubt(node.server.clone());
                    self.doubt(slot);
                }
            }
            Route::Any => {
                let table = self.map.table();
                table.nodes().iter().for_each(|node| node.link.suspect());
            }
        }
    }

    /// The primary that serves a slot, if known.
    pub(crate) fn owner(&self, slot: u16) -> Option<HostPort> {
        self.map.table().server(slot).cloned()
    }

    pub(crate) fn close(&self) {
        self.map.close();
        if let Some(router) = &self.router {
            router.close();
        }
        self.map.nodes().iter().for_each(|node| node.close());
    }

    /// Sends a command that any primary can answer. The first reachable one gets it.
    async fn anywhere(&self, args: &[&[u8]]) -> Result<Reply, ClientError> {
        let mut problem = None;
        for node in self.connected_first() {
            let answer = node.send(args, false).await;
            if let Err(error) = &answer {
                self.learn(error, &node);
            }
            match answer {
                Err(error @ ClientError::NotSent(_)) => problem = Some(error),
                answer => return answer,
            }
        }
        Err(problem.unwrap_or_else(|| self.nobody("any slot")))
    }

    /// All primaries, rotated on each call. Those with a connection come first, so an unreachable
    /// one does not fail what another can do.
    fn connected_first(&self) -> impl Iterator<Item = Arc<Node>> + use<> {
        let mut nodes = self.map.table().nodes().to_vec();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % nodes.len().max(1);
        nodes.rotate_left(turn);
        nodes.sort_by_key(|node| node.link.peek().is_none());
        nodes.into_iter()
    }

    fn owner_of(&self, slot: u16) -> Result<Arc<Node>, ClientError> {
        let node = self.map.table().owner(slot).cloned();
        node.ok_or_else(|| self.nobody(&format!("slot {slot}")))
    }

    fn node(&self, server: &HostPort) -> Arc<Node> {
        let node = self.map.node(server);
        if self.map.is_closed() {
            node.close();
        }
        node
    }

    fn nobody(&self, what: &str) -> ClientError {
        self.map.mark_stale();
        ClientError::NotSent(format!("no node of the cluster is known to serve {what}"))
    }

    /// Acts on a failure. Returns the node to ask instead, and whether with `ASKING`.
    fn learn(&self, error: &ClientError, node: &Node) -> Option<(HostPort, bool)> {
        let ClientError::Rejected { code, message } = error else {
            self.map.doubt(node.server.clone());
            return None;
        };
        match code.as_str() {
            "MOVED" => {
                let to = Redirect::parse(message, &node.server)?.node;
                self.moved(message, &node.server);
                Some((to, false))
            }
            "ASK" => Some((Redirect::parse(message, &node.server)?.node, true)),
            "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" | "LOADING" => {
                self.map.doubt(node.server.clone());
                if code == "READONLY" {
                    self.disturbances.send_modify(|count| *count += 1);
                }
                None
            }
            _ => None,
        }
    }
}
