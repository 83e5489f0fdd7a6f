//! A cluster: one connection per primary, and the map from slots to primaries.
//!
//! The cluster connection of redis-rs is used only if the user asks for it ([`Router`]). It has
//! three weaknesses for locks. It looks up nodes and refreshes its map under one lock, so one
//! frozen node stops commands to all others. It sends to a replica or an arbitrary node while the
//! right one is unreachable. And it hides which node failed. Here each node has its own [`Link`],
//! and the map is refreshed in the background.

mod refresh;
mod router;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use locktopus_protocol::slot_map::{Informants, Redirect, SlotRange, SlotTable};
use locktopus_protocol::{ClientError, HostPort, NodeReply, Pipelined, Reply, Route};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use crate::connection::dial::Dialer;
use crate::connection::link::{Link, Target};
use crate::connection::sync::lock;
use router::Doubt;
pub(crate) use router::Router;

/// How long to keep the connection to a node without slots after the last redirect to it.
const EXTRA_NODES_KEPT: Duration = Duration::from_secs(60);

/// The nodes of a cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    seeds: Vec<HostPort>,
    dialer: Arc<Dialer>,
    /// Gets every command first, if present.
    router: Option<Router>,
    /// Slots not to route through `router`.
    doubts: Mutex<Vec<Doubt>>,
    /// The slot map with a link for each primary. Replaced as a whole.
    table: Mutex<Arc<Table>>,
    links: Mutex<HashMap<HostPort, Arc<Link>>>,
    /// Connections for commands that may block, created on first use for each primary.
    blocking_links: Mutex<HashMap<HostPort, Arc<Link>>>,
    /// Nodes without slots that received redirects during a migration, with the time of the last
    /// redirect.
    extra_nodes: Mutex<HashMap<HostPort, Instant>>,
    informants: Informants,
    stale: AtomicBool,
    refreshing: tokio::sync::Mutex<()>,
    closed: AtomicBool,
    turn: AtomicUsize,
    wanted: Notify,
    redirected: Notify,
    /// Counts new maps, and nodes that are no longer primaries.
    disturbances: watch::Sender<u64>,
}

type Table = SlotTable<Arc<Link>>;

impl Cluster {
    pub(crate) fn new(seeds: Vec<HostPort>, dialer: Arc<Dialer>, router: Option<Router>) -> Self {
        Self {
            seeds,
            dialer,
            router,
            doubts: Mutex::default(),
            table: Mutex::new(Arc::new(Table::empty())),
            links: Mutex::default(),
            blocking_links: Mutex::default(),
            extra_nodes: Mutex::default(),
            informants: Informants::default(),
            stale: AtomicBool::new(false),
            refreshing: tokio::sync::Mutex::default(),
            closed: AtomicBool::new(false),
            turn: AtomicUsize::new(0),
            wanted: Notify::new(),
            redirected: Notify::new(),
            disturbances: watch::Sender::new(0),
        }
    }

    /// A copy that fetches its own slot map.
    pub(crate) fn again(&self, dialer: Arc<Dialer>) -> Self {
        let router = self.router.as_ref().map(Router::again);
        let again = Self::new(self.seeds.clone(), dialer, router);
        again.mark_stale();
        again
    }

    pub(crate) async fn command(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        match &self.router {
            Some(router) => self.routed(router, route, args).await,
            None => self.by_own_map(route, args).await,
        }
    }

    async fn by_own_map(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        let slot = match route {
            Route::Slot(slot) => slot,
            Route::Any => return self.anywhere(args).await,
        };
        let link = self.link_for(slot)?;
        let answer = send(&link, args, false).await;
        let Err(error) = &answer else { return answer };
        let Some((to, asking)) = self.learn(error, &link) else {
            return answer;
        };
        // The first node refused the command, so it has not run. The second node's answer counts.
        self.redirected_to(to, args, asking).await
    }

    async fn redirected_to(
        &self,
        to: HostPort,
        args: &[&[u8]],
        asking: bool,
    ) -> Result<Reply, ClientError> {
        let link = self.link_to(&to);
        if asking {
            lock(&self.extra_nodes).insert(to, Instant::now());
        }
        let answer = send(&link, args, asking).await;
        if let Err(error) = &answer {
            self.learn(error, &link);
        }
        answer
    }

    pub(crate) async fn pipeline(
        &self,
        route: Route,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        let link = match route {
            Route::Slot(slot) => self.link_for(slot)?,
            Route::Any => self
                .links_for_any()
                .next()
                .ok_or_else(|| self.nobody("any slot"))?,
        };
        let Some(server) = link.server() else {
            return Err(self.nobody("it"));
        };
        let blocking = self.blocking_link_to(server);
        let answers = match blocking.get().await {
            Ok(mut live) => live.send_each(commands).await,
            Err(error) => Err(error),
        };
        match &answers {
            Ok(answers) => {
                let refused = answers
                    .replies
                    .iter()
                    .find_map(|reply| reply.as_ref().err());
                if let Some(error) = refused {
                    self.learn(error, &link);
                }
            }
            Err(_) => self.suspect(&link),
        }
        answers
    }

    pub(crate) async fn command_on_primaries(
        &self,
        args: &[&[u8]],
    ) -> Result<Vec<NodeReply>, ClientError> {
        let table = self.table();
        if table.nodes().is_empty() {
            return Err(self.nobody("any slot"));
        }
        let answers = table
            .servers()
            .iter()
            .zip(table.nodes())
            .map(|(server, link)| async {
                let reply = self.in_time(link, args).await;
                if let Err(error) = &reply {
                    self.learn(error, link);
                }
                NodeReply {
                    node: server.to_string(),
                    reply,
                }
            });
        Ok(join_all(answers).await)
    }

    /// Sends a command with a time limit, because a node that hangs must not hide other answers.
    async fn in_time(&self, link: &Arc<Link>, args: &[&[u8]]) -> Result<Reply, ClientError> {
        let limit = self.dialer.budget().answer();
        timeout(limit, send(link, args, false))
            .await
            .unwrap_or_else(|_| {
                link.suspect();
                Err(ClientError::MaybeExecuted(format!(
                    "nothing heard in {limit:?}"
                )))
            })
    }

    pub(crate) fn timed_out(&self, route: Route) {
        match route {
            Route::Slot(slot) => {
                if let Ok(link) = self.link_for(slot) {
                    link.suspect();
                    self.suspect_blocking_link(&link);
                    self.suspect(&link);
                    self.doubt(slot);
                }
            }
            Route::Any => self.table().nodes().iter().for_each(|link| link.suspect()),
        }
    }

    /// The primary that serves a slot, if known.
    pub(crate) fn owner(&self, slot: u16) -> Option<HostPort> {
        self.table().server(slot).cloned()
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if let Some(router) = &self.router {
            router.close();
        }
        lock(&self.links).values().for_each(|link| link.close());
        lock(&self.blocking_links)
            .values()
            .for_each(|blocking| blocking.close());
    }

    /// Requests a refresh of the map, in the background and before the next subscription.
    pub(crate) fn mark_stale(&self) {
        self.stale.store(true, Ordering::Release);
        self.wanted.notify_one();
    }

    /// Replaces the table by one with these ranges. Returns whether it differs.
    fn adopt(&self, ranges: &[SlotRange]) -> bool {
        let table = self
            .table()
            .replaced_by(ranges, |server| self.link_to(server));
        let mut extra_nodes = lock(&self.extra_nodes);
        extra_nodes.retain(|_, last| last.elapsed() < EXTRA_NODES_KEPT);
        lock(&self.links).retain(|server, _| {
            table.servers().contains(server)
                || self.seeds.contains(server)
                || extra_nodes.contains_key(server)
        });
        lock(&self.blocking_links).retain(|server, _| table.servers().contains(server));
        let table = Arc::new(table);
        let before = std::mem::replace(&mut *lock(&self.table), Arc::clone(&table));
        let news = !table.agrees_with(&before);
        if news {
            self.dialer.note_change();
        }
        self.disturbances.send_modify(|count| *count += 1);
        news
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&lock(&self.table))
    }

    /// Sends a command that any primary can answer. The first reachable one gets it.
    async fn anywhere(&self, args: &[&[u8]]) -> Result<Reply, ClientError> {
        let mut problem = None;
        for link in self.links_for_any() {
            let answer = send(&link, args, false).await;
            if let Err(error) = &answer {
                self.learn(error, &link);
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
    fn links_for_any(&self) -> impl Iterator<Item = Arc<Link>> + use<> {
        let mut links = self.table().nodes().to_vec();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % links.len().max(1);
        links.rotate_left(turn);
        links.sort_by_key(|link| link.peek().is_none());
        links.into_iter()
    }

    fn link_for(&self, slot: u16) -> Result<Arc<Link>, ClientError> {
        let table = self.table();
        let link = table.owner(slot).cloned();
        link.ok_or_else(|| self.nobody(&format!("slot {slot}")))
    }

    fn link_to(&self, server: &HostPort) -> Arc<Link> {
        self.one_of(&self.links, server)
    }

    fn blocking_link_to(&self, server: &HostPort) -> Arc<Link> {
        self.one_of(&self.blocking_links, server)
    }

    fn suspect_blocking_link(&self, link: &Link) {
        if let Some(server) = link.server()
            && let Some(blocking) = lock(&self.blocking_links).get(server)
        {
            blocking.suspect();
        }
    }

    fn one_of(&self, links: &Mutex<HashMap<HostPort, Arc<Link>>>, server: &HostPort) -> Arc<Link> {
        let mut links = lock(links);
        if let Some(link) = links.get(server) {
            return Arc::clone(link);
        }
        let link = Link::new(
            Target::Server(server.clone()),
            Arc::clone(&self.dialer),
            None,
        );
        if self.closed.load(Ordering::Acquire) {
            link.close();
        }
        links.insert(server.clone(), Arc::clone(&link));
        link
    }

    fn nobody(&self, what: &str) -> ClientError {
        self.mark_stale();
        ClientError::NotSent(format!("no node of the cluster is known to serve {what}"))
    }

    /// Acts on a failure. Returns the node to ask instead, and whether with `ASKING`.
    fn learn(&self, error: &ClientError, link: &Link) -> Option<(HostPort, bool)> {
        let ClientError::Rejected { code, message } = error else {
            self.suspect(link);
            return None;
        };
        let refused = link.server()?;
        match code.as_str() {
            "MOVED" => {
                let to = Redirect::parse(message, refused)?.node;
                self.moved(message, refused);
                Some((to, false))
            }
            "ASK" => Some((Redirect::parse(message, refused)?.node, true)),
            "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" | "LOADING" => {
                self.suspect(link);
                if code == "READONLY" {
                    self.disturbances.send_modify(|count| *count += 1);
                }
                None
            }
            _ => None,
        }
    }

    fn suspect(&self, link: &Link) {
        if let Some(server) = link.server() {
            self.informants.doubt(server.clone());
        }
        self.mark_stale();
    }
}

async fn send(link: &Arc<Link>, args: &[&[u8]], asking: bool) -> Result<Reply, ClientError> {
    let mut live = link.get().await?;
    if asking {
        live.send_asking(args).await
    } else {
        live.send(args).await
    }
}
