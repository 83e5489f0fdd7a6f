//! The nodes of a cluster, with what an adapter keeps for each.

mod freshness;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktopus_contract::lock;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use self::freshness::Phase;
use crate::client::options::HostPort;
use crate::client::slot_map::{Redirect, SlotRange};
use crate::client::slot_table::{Informants, SlotTable};

/// How long to keep a node without slots after its last use.
const KEPT: Duration = Duration::from_secs(60);

/// The slot table of a cluster, and the other nodes in use. `N` is the data of a node, such as its
/// connections.
///
/// A node that is importing its first slot owns none yet, so it is in no table. Commands for locks
/// in that slot are redirected to it. If it were not kept, each redirect would open a connection.
///
/// ```
/// use locktopus_protocol::{HostPort, slot_map::{ClusterMap, Redirect}};
///
/// let at = |port| HostPort { host: "10.0.0.1".to_owned(), port };
/// let map = ClusterMap::new(vec![at(7000)], |address| address.port);
/// map.moved(&Redirect { slot: 5, node: at(7001) });
/// assert_eq!(map.table().owner(5).map(|node| **node), Some(7001));
/// assert_eq!((*map.node(&at(7002)), map.nodes().len(), map.seeds().len()), (7002, 2, 1));
/// map.doubt(at(7001));
/// ```
pub struct ClusterMap<N> {
    seeds: Vec<HostPort>,
    make: Box<dyn Fn(&HostPort) -> N + Send + Sync>,
    /// Replaced as a whole.
    table: Mutex<Arc<SlotTable<Arc<N>>>>,
    /// Nodes outside the table, each with the time of its last use.
    others: Mutex<HashMap<HostPort, (Arc<N>, Instant)>>,
    informants: Informants,
    phase: watch::Sender<Phase>,
    wanted: Notify,
    redirected: Notify,
}

impl<N: Send + Sync> ClusterMap<N> {
    /// An empty table. `make` makes the data of a node that is new.
    #[must_use]
    pub fn new(
        seeds: Vec<HostPort>,
        make: impl Fn(&HostPort) -> N + Send + Sync + 'static,
    ) -> Self {
        Self {
            seeds,
            make: Box::new(make),
            table: Mutex::new(Arc::new(SlotTable::empty())),
            others: Mutex::default(),
            informants: Informants::default(),
            phase: watch::Sender::new(Phase::Idle),
            wanted: Notify::new(),
            redirected: Notify::new(),
        }
    }

    /// The nodes to ask first.
    #[must_use]
    pub fn seeds(&self) -> &[HostPort] {
        &self.seeds
    }

    /// The current table.
    #[must_use]
    pub fn table(&self) -> Arc<SlotTable<Arc<N>>> {
        Arc::clone(&lock(&self.table))
    }

    /// The node at this address, even if it is not in the table.
    #[must_use]
    pub fn node(&self, address: &HostPort) -> Arc<N> {
        if let Some(node) = self.table().node_at(address) {
            return Arc::clone(node);
        }
        let now = Instant::now();
        let mut others = lock(&self.others);
        let (node, used) = others
            .entry(address.clone())
            .or_insert_with(|| (Arc::new((self.make)(address)), now));
        *used = now;
        Arc::clone(node)
    }

    /// Applies a `MOVED` answer, and requests a refresh for the other slots. The refresh asks its
    /// node first.
    pub fn moved(&self, to: &Redirect) {
        let mut table = lock(&self.table);
        *table = Arc::new(table.with_moved(to, |address| self.for_table(address)));
        drop(table);
        self.informants.prefer(to.node.clone());
        self.mark_stale();
        self.redirected.notify_one();
    }

    /// Notes that a node failed, and requests a refresh. Refreshes ask this node last, because its
    /// view of the cluster may be old.
    pub fn doubt(&self, node: HostPort) {
        self.informants.doubt(node);
        self.mark_stale();
    }

    /// Replaces the table by the first answer to `ask`, which asks one node. Returns whether the
    /// tables differ.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use locktopus_protocol::{HostPort, slot_map::{ClusterMap, SlotRange}};
    ///
    /// let seed = HostPort { host: "10.0.0.1".to_owned(), port: 7000 };
    /// let map = ClusterMap::new(vec![seed], |address| address.port);
    /// let ask = async |primary| Ok(vec![SlotRange { first: 0, last: 100, primary }]);
    /// assert_eq!(map.refresh("no node is known", ask).await, Ok(true));
    /// assert_eq!(map.table().owner(100).map(|node| **node), Some(7000));
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The last failure if all fail; `nobody` if there is no node to ask.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe, but it loses the hints given before.
    pub async fn refresh<E: Send, A>(
        &self,
        nobody: E,
        ask: impl Fn(HostPort) -> A + Send + Sync,
    ) -> Result<bool, E>
    where
        A: Future<Output = Result<Vec<SlotRange>, E>> + Send,
    {
        let known = self.table();
        let asked = self
            .informants
            .ask(known.servers(), &self.seeds, nobody, ask);
        let ranges = asked.await?;
        let mut table = lock(&self.table);
        let next = table.replaced_by(&ranges, |address| self.for_table(address));
        let differs = !next.agrees_with(&table);
        *table = Arc::new(next);
        drop(table);
        lock(&self.others).retain(|_, (_, used)| used.elapsed() < KEPT);
        Ok(differs)
    }

    /// Every node that this map has.
    #[must_use]
    pub fn nodes(&self) -> Vec<Arc<N>> {
        let mut nodes = self.table().nodes().to_vec();
        let others = lock(&self.others);
        nodes.extend(others.values().map(|(node, _)| Arc::clone(node)));
        nodes
    }

    fn for_table(&self, address: &HostPort) -> Arc<N> {
        let known = lock(&self.others).remove(address);
        known.map_or_else(|| Arc::new((self.make)(address)), |(node, _)| node)
    }
}

impl<N: fmt::Debug + Send + Sync> fmt::Debug for ClusterMap<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterMap")
            .field("nodes", &self.nodes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU16, Ordering};

    use super::*;

    fn at(port: u16) -> HostPort {
        let host = "a".to_owned();
        HostPort { host, port }
    }

    /// Nodes are numbered as they are made.
    #[tokio::test(start_paused = true)]
    async fn a_node_outside_the_table_is_kept_and_joins_it() {
        let made = AtomicU16::new(0);
        let map = ClusterMap::new(vec![at(1)], move |_| made.fetch_add(1, Ordering::Relaxed));
        let serve = async |port: u16| {
            let (first, last, primary) = (0, 9, at(port));
            let ranges = vec![SlotRange {
                first,
                last,
                primary,
            }];
            let asked = map.refresh("nobody", |_| std::future::ready(Ok(ranges.clone())));
            asked.await.unwrap()
        };
        assert_eq!((*map.node(&at(1)), *map.node(&at(2))), (0, 1));
        assert!(serve(1).await && !serve(1).await);
        let (slot, node) = (3, at(2));
        map.moved(&Redirect { slot, node });
        let table = map.table();
        assert_eq!(
            [2, 3].map(|slot| table.owner(slot).map(|it| **it)),
            [Some(0), Some(1)]
        );
        assert_eq!(*map.node(&at(3)), 2);
        assert!(serve(2).await);
        assert_eq!(map.nodes().len(), 2);
        tokio::time::advance(KEPT).await;
        serve(2).await;
        assert_eq!((map.nodes().len(), *map.node(&at(3))), (1, 3));
    }
}
