//! A cluster: one connection per primary, and the map that says which of them serves a slot.
//!
//! The cluster connection of redis-rs is not used. It looks up a node and refreshes its map under
//! one lock, so that a single frozen node stops commands to all the others; it sends to a replica or
//! to any node while the right one is away; and it hides which node failed. Here each node has its
//! own [`Link`], and the map is refreshed beside the traffic.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::{join_all, select_ok};
use locktopus_protocol::{ClientError, HostPort, NodeReply, Pipelined, Reply, Route};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::dial::Dialer;
use crate::link::{Link, Target};
use crate::locked::locked;
use crate::slots::{SlotMap, redirect};

/// Nodes asked for their map at the same time: a frozen one then costs no time.
const ASKED_AT_ONCE: usize = 3;

/// The nodes of a cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    seeds: Vec<HostPort>,
    dialer: Arc<Dialer>,
    table: Mutex<Arc<Table>>,
    links: Mutex<HashMap<HostPort, Arc<Link>>>,
    /// Connections for what may block, made for the primaries that were asked for one.
    lanes: Mutex<HashMap<HostPort, Arc<Link>>>,
    clues: Mutex<Clues>,
    stale: AtomicBool,
    refreshing: tokio::sync::Mutex<()>,
    closed: AtomicBool,
    turn: AtomicUsize,
    wanted: Notify,
    /// Counts maps, and nodes that were found not to be primaries.
    unrest: watch::Sender<u64>,
}

/// The map with the links it leads to, replaced as a whole.
#[derive(Debug)]
struct Table {
    map: SlotMap,
    links: Vec<Arc<Link>>,
}

/// What failures told about the nodes since the last refresh.
#[derive(Debug, Default)]
struct Clues {
    /// A node that should know better: another one pointed to it.
    better: Option<HostPort>,
    /// Nodes that failed, whose view of the cluster may be old.
    doubtful: HashSet<HostPort>,
}

impl Cluster {
    pub(crate) fn new(seeds: Vec<HostPort>, dialer: Arc<Dialer>) -> Self {
        Self {
            seeds,
            dialer,
            table: Mutex::new(Arc::new(Table {
                map: SlotMap::empty(),
                links: Vec::new(),
            })),
            links: Mutex::default(),
            lanes: Mutex::default(),
            clues: Mutex::default(),
            stale: AtomicBool::new(false),
            refreshing: tokio::sync::Mutex::default(),
            closed: AtomicBool::new(false),
            turn: AtomicUsize::new(0),
            wanted: Notify::new(),
            unrest: watch::Sender::new(0),
        }
    }

    pub(crate) async fn command(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        let link = self.link_for(route)?;
        let answer = send(&link, args, false).await;
        let Err(error) = &answer else { return answer };
        let Some((to, asking)) = self.learn(error, &link) else {
            return answer;
        };
        // The first node refused, so nothing has run; the second one's answer stands.
        let link = self.link_to(&to);
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
        let link = self.link_for(route)?;
        let Some(server) = link.server() else {
            return Err(self.nobody("it"));
        };
        let lane = self.lane_to(server);
        let answers = match lane.get().await {
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
        if table.links.is_empty() {
            return Err(self.nobody("any slot"));
        }
        let answers = table
            .map
            .primaries()
            .iter()
            .zip(&table.links)
            .map(|(server, link)| async {
                let reply = send(link, args, false).await;
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

    pub(crate) fn timed_out(&self, route: Route) {
        match route {
            Route::Slot(_) => {
                if let Ok(link) = self.link_for(route) {
                    link.doubt();
                    self.doubt_lane(&link);
                    self.suspect(&link);
                }
            }
            Route::Any => self.table().links.iter().for_each(|link| link.doubt()),
        }
    }

    /// The primary that serves a slot, if known.
    pub(crate) fn owner(&self, slot: u16) -> Option<HostPort> {
        let table = self.table();
        table
            .map
            .owner(slot)
            .map(|at| table.map.primaries()[at].clone())
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        locked(&self.links).values().for_each(|link| link.close());
        locked(&self.lanes).values().for_each(|lane| lane.close());
    }

    /// Asks for a refresh of the map in the background and before the next subscription.
    pub(crate) fn mark_stale(&self) {
        self.stale.store(true, Ordering::Release);
        self.wanted.notify_one();
    }

    /// Refreshes the map if something happened that makes it doubtful. Waits for a refresh that is
    /// under way, which may know a better node to ask than a second one would.
    pub(crate) async fn freshen(&self) {
        let _turn = self.refreshing.lock().await;
        if self.stale.swap(false, Ordering::AcqRel)
            && let Err(error) = self.refresh().await
        {
            self.stale.store(true, Ordering::Release);
            tracing::debug!(%error, "the slot map could not be refreshed");
        }
    }

    /// Counts events after which a node may not be the right one for its channels any more.
    pub(crate) fn unrest(&self) -> watch::Receiver<u64> {
        self.unrest.subscribe()
    }

    /// Waits until somebody wants the map refreshed.
    pub(crate) async fn refresh_wanted(&self) {
        self.wanted.notified().await;
    }

    /// A refusal that names a better node.
    pub(crate) fn moved(&self, message: &str, refused: &HostPort) {
        if let Some(better) = redirect(message, refused) {
            locked(&self.clues).better = Some(better);
        }
        self.mark_stale();
    }

    /// Replaces the map by what some node answers now.
    pub(crate) async fn refresh(&self) -> Result<(), ClientError> {
        let map = self.current_map().await?;
        self.adopt(map);
        Ok(())
    }

    async fn current_map(&self) -> Result<SlotMap, ClientError> {
        let clues = std::mem::take(&mut *locked(&self.clues));
        let mut problem = ClientError::NotSent("no cluster node is known".to_owned());
        if let Some(better) = &clues.better {
            match self.ask(better).await {
                Ok(map) => return Ok(map),
                Err(error) => problem = error,
            }
        }
        for some in self.candidates(&clues.doubtful).chunks(ASKED_AT_ONCE) {
            match select_ok(some.iter().map(|server| Box::pin(self.ask(server)))).await {
                Ok((map, _)) => return Ok(map),
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }

    /// Whom to ask for the map: every known node, the doubtful ones last, and not always the same
    /// one first, because a node that was cut off answers quickly and wrongly.
    fn candidates(&self, doubtful: &HashSet<HostPort>) -> Vec<HostPort> {
        let mut nodes = self.table().map.primaries().to_vec();
        for seed in &self.seeds {
            if !nodes.contains(seed) {
                nodes.push(seed.clone());
            }
        }
        if !nodes.is_empty() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % nodes.len();
            nodes.rotate_left(turn);
        }
        nodes.sort_by_key(|node| doubtful.contains(node));
        nodes
    }

    async fn ask(&self, server: &HostPort) -> Result<SlotMap, ClientError> {
        let link = self.link_to(server);
        let Ok(answer) = timeout(
            self.dialer.budget().answer_of_anybody(),
            send(&link, &[b"CLUSTER", b"SLOTS"], false),
        )
        .await
        else {
            link.doubt();
            return Err(ClientError::NotSent(format!(
                "{server} does not tell the slot map"
            )));
        };
        SlotMap::parse(&answer?, server).ok_or_else(|| {
            ClientError::NotSent(format!("{server} knows no cluster node with slots"))
        })
    }

    fn adopt(&self, map: SlotMap) {
        let links: Vec<_> = map
            .primaries()
            .iter()
            .map(|server| self.link_to(server))
            .collect();
        locked(&self.links)
            .retain(|server, _| map.primaries().contains(server) || self.seeds.contains(server));
        locked(&self.lanes).retain(|server, _| map.primaries().contains(server));
        *locked(&self.table) = Arc::new(Table { map, links });
        self.unrest.send_modify(|count| *count += 1);
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&locked(&self.table))
    }

    fn link_for(&self, route: Route) -> Result<Arc<Link>, ClientError> {
        let table = self.table();
        match route {
            Route::Slot(slot) => table
                .map
                .owner(slot)
                .and_then(|at| table.links.get(at))
                .cloned(),
            Route::Any => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                let mut links = table
                    .links
                    .iter()
                    .cycle()
                    .skip(turn % table.links.len().max(1));
                let first = links.next();
                // A node that is away must not fail what any other one could do.
                let others = links.take(table.links.len().saturating_sub(1));
                let connected = first
                    .into_iter()
                    .chain(others)
                    .find(|link| link.peek().is_some());
                connected.or(first).cloned()
            }
        }
        .ok_or_else(|| match route {
            Route::Slot(slot) => self.nobody(&format!("slot {slot}")),
            Route::Any => self.nobody("any slot"),
        })
    }

    fn link_to(&self, server: &HostPort) -> Arc<Link> {
        self.one_of(&self.links, server)
    }

    fn lane_to(&self, server: &HostPort) -> Arc<Link> {
        self.one_of(&self.lanes, server)
    }

    fn doubt_lane(&self, link: &Link) {
        if let Some(server) = link.server()
            && let Some(lane) = locked(&self.lanes).get(server)
        {
            lane.doubt();
        }
    }

    fn one_of(&self, links: &Mutex<HashMap<HostPort, Arc<Link>>>, server: &HostPort) -> Arc<Link> {
        let mut links = locked(links);
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

    /// Draws conclusions from a failure; the node to ask instead and whether with `ASKING`.
    fn learn(&self, error: &ClientError, link: &Link) -> Option<(HostPort, bool)> {
        let ClientError::Rejected { code, message } = error else {
            self.suspect(link);
            return None;
        };
        let refused = link.server()?;
        match code.as_str() {
            "MOVED" => {
                let to = redirect(message, refused)?;
                self.moved(message, refused);
                Some((to, false))
            }
            "ASK" => Some((redirect(message, refused)?, true)),
            "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" | "LOADING" => {
                self.suspect(link);
                if code == "READONLY" {
                    self.unrest.send_modify(|count| *count += 1);
                }
                None
            }
            _ => None,
        }
    }

    fn suspect(&self, link: &Link) {
        if let Some(server) = link.server() {
            locked(&self.clues).doubtful.insert(server.clone());
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
