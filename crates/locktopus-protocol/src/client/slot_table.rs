//! The slot table of a cluster, and the order of the nodes that a client asks for a new one.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::select_ok;
use locktopus_contract::lock;

use crate::client::options::HostPort;
use crate::client::slot_map::{Redirect, SlotRange};
use crate::layout::slot::SLOTS;

/// No node is known for the slot.
const NOBODY: u16 = u16::MAX;
/// A client asks this many nodes at the same time, so that a frozen one costs no time.
const ASKED_AT_ONCE: usize = 3;

/// Which primary serves which hash slot. `N` is the data that an adapter keeps for each primary.
///
/// A table is immutable: a change creates a new one, so readers never wait.
///
/// ```
/// use locktopus_protocol::{HostPort, slot_map::{SlotRange, SlotTable}};
///
/// let primary = HostPort { host: "10.0.0.1".to_owned(), port: 7000 };
/// let ranges = [SlotRange { first: 0, last: 100, primary: primary.clone() }];
/// let table = SlotTable::empty().replaced_by(&ranges, |address| address.port);
/// assert_eq!((table.owner(100), table.owner(101)), (Some(&7000), None));
/// assert_eq!(table.servers(), [primary]);
/// ```
#[derive(Debug, Clone)]
pub struct SlotTable<N> {
    owners: Box<[u16]>,
    servers: Vec<HostPort>,
    nodes: Vec<N>,
}

impl<N: Clone> SlotTable<N> {
    /// A table without primaries.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            owners: vec![NOBODY; usize::from(SLOTS)].into(),
            servers: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// The table that these ranges describe. It keeps this table's data for known primaries and
    /// calls `make` for the others.
    #[must_use]
    pub fn replaced_by(&self, ranges: &[SlotRange], mut make: impl FnMut(&HostPort) -> N) -> Self {
        let mut next = Self::empty();
        for range in ranges {
            let number = next.number(&range.primary, |address| {
                self.node_at(address)
                    .map_or_else(|| make(address), Clone::clone)
            });
            next.owners[usize::from(range.first)..=usize::from(range.last)].fill(number);
        }
        next
    }

    /// This table with one slot moved.
    #[must_use]
    pub fn with_moved(&self, to: &Redirect, make: impl FnOnce(&HostPort) -> N) -> Self {
        let mut next = self.clone();
        let number = next.number(&to.node, make);
        next.owners[usize::from(to.slot)] = number;
        next
    }

    fn number(&mut self, primary: &HostPort, make: impl FnOnce(&HostPort) -> N) -> u16 {
        let number = self.number_of(primary).unwrap_or_else(|| {
            self.nodes.push(make(primary));
            self.servers.push(primary.clone());
            self.servers.len() - 1
        });
        u16::try_from(number).unwrap_or(NOBODY)
    }

    fn number_of(&self, server: &HostPort) -> Option<usize> {
        self.servers.iter().position(|known| known == server)
    }

    /// The data of the primary at this address, if there is one.
    #[must_use]
    pub fn node_at(&self, server: &HostPort) -> Option<&N> {
        self.nodes.get(self.number_of(server)?)
    }

    /// Whether both tables agree on every slot.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        self.owners == other.owners && self.servers == other.servers
    }

    /// The data of the primary that serves `slot`, if it is known.
    #[must_use]
    pub fn owner(&self, slot: u16) -> Option<&N> {
        self.nodes.get(self.position(slot)?)
    }

    /// The address of the primary that serves `slot`, if it is known.
    #[must_use]
    pub fn server(&self, slot: u16) -> Option<&HostPort> {
        self.servers.get(self.position(slot)?)
    }

    fn position(&self, slot: u16) -> Option<usize> {
        self.owners.get(usize::from(slot)).copied().map(usize::from)
    }

    /// The addresses of the primaries, each once.
    #[must_use]
    pub fn servers(&self) -> &[HostPort] {
        &self.servers
    }

    /// The data of each primary, in the order of [`servers`](Self::servers).
    #[must_use]
    pub fn nodes(&self) -> &[N] {
        &self.nodes
    }
}

/// Chooses which nodes to ask for the slot table.
///
/// The node that a `MOVED` named comes first. Nodes that failed come last, because their view of
/// the cluster may be old. The others take turns, because a node cut off from the rest answers
/// fast, and wrongly.
#[derive(Debug, Default)]
pub(crate) struct Informants {
    hints: Mutex<Hints>,
    turn: AtomicUsize,
}

/// Hints since the client last asked for the table.
#[derive(Debug, Default)]
struct Hints {
    better: Option<HostPort>,
    doubtful: HashSet<HostPort>,
}

impl Informants {
    /// Notes that a refusal named this node.
    pub(crate) fn prefer(&self, node: HostPort) {
        lock(&self.hints).better = Some(node);
    }

    /// Notes that this node failed.
    pub(crate) fn doubt(&self, node: HostPort) {
        lock(&self.hints).doubtful.insert(node);
    }

    /// Calls `ask` for the primaries of a table and for `seeds`, three at a time, until one call
    /// succeeds.
    ///
    /// # Errors
    ///
    /// The last failure if all fail; `nobody` if there is no node to ask.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe, but it loses the hints given before.
    pub(crate) async fn ask<T, E, A>(
        &self,
        primaries: &[HostPort],
        seeds: &[HostPort],
        nobody: E,
        ask: impl Fn(HostPort) -> A,
    ) -> Result<T, E>
    where
        A: Future<Output = Result<T, E>>,
    {
        let Hints { better, doubtful } = std::mem::take(&mut *lock(&self.hints));
        let mut failure = nobody;
        if let Some(better) = better {
            match ask(better).await {
                Ok(answer) => return Ok(answer),
                Err(error) => failure = error,
            }
        }
        let [likely, others] = self.in_turn(primaries, seeds, &doubtful);
        let likely = likely.chunks(ASKED_AT_ONCE);
        for some in likely.chain(others.chunks(ASKED_AT_ONCE)) {
            let asked = some.iter().map(|server| Box::pin(ask(server.clone())));
            match select_ok(asked).await {
                Ok((answer, _slower)) => return Ok(answer),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// The primaries without a failure, then all others. It does not ask seeds together with
    /// primaries, because a seed that is no primary may need a connection of its own.
    fn in_turn(
        &self,
        primaries: &[HostPort],
        seeds: &[HostPort],
        doubtful: &HashSet<HostPort>,
    ) -> [Vec<HostPort>; 2] {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut known = primaries.to_vec();
        known.rotate_left(turn % primaries.len().max(1));
        let seeds = seeds.iter().filter(|seed| !primaries.contains(seed));
        let (failed, likely) = known.into_iter().partition(|node| doubtful.contains(node));
        let mut others: Vec<_> = seeds.cloned().chain::<Vec<_>>(failed).collect();
        others.sort_by_key(|node| doubtful.contains(node));
        [likely, others]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> HostPort {
        let host = "a".to_owned();
        HostPort { host, port }
    }

    fn range(first: u16, last: u16, port: u16) -> SlotRange {
        SlotRange {
            first,
            last,
            primary: at(port),
        }
    }

    #[test]
    fn slots_find_their_primary() {
        let ranges = [range(0, 100, 1), range(200, 16_383, 2), range(150, 160, 1)];
        let table = SlotTable::empty().replaced_by(&ranges, |address| address.port);
        assert_eq!(
            (table.servers(), table.nodes()),
            (&[at(1), at(2)][..], &[1, 2][..])
        );
        let owners = [100, 155, 101, 16_383].map(|slot| table.owner(slot).copied());
        assert_eq!(owners, [Some(1), Some(1), None, Some(2)]);
        let to = Redirect {
            slot: 101,
            node: at(3),
        };
        let moved = table.with_moved(&to, |address| address.port);
        assert_eq!(
            (moved.owner(101), moved.server(100)),
            (Some(&3), Some(&at(1)))
        );
        assert!(table.agrees_with(&table.clone()) && !table.agrees_with(&moved));
        // Known primaries keep their data; `make` is not called for them.
        let again = moved.replaced_by(&[range(0, 5, 3), range(6, 9, 4)], |_| 40);
        assert_eq!(again.nodes(), [3, 40]);
        assert_eq!(
            (again.node_at(&at(4)), again.node_at(&at(1))),
            (Some(&40), None)
        );
    }

    /// The nodes in the order of the questions, if none answers.
    async fn asked(informants: &Informants, primaries: &[HostPort]) -> Vec<u16> {
        let asked = Mutex::new(Vec::new());
        let fails = |node: HostPort| {
            asked.lock().unwrap().push(node.port);
            async { Err::<(), _>("no answer") }
        };
        let failure = informants
            .ask(primaries, &[at(1), at(9)], "nobody", fails)
            .await;
        assert_eq!(failure, Err("no answer"));
        asked.into_inner().unwrap()
    }

    #[tokio::test]
    async fn a_named_node_is_asked_first_and_a_failed_one_last() {
        let informants = Informants::default();
        let primaries = [at(1), at(2), at(3)];
        assert_eq!(asked(&informants, &primaries).await, [1, 2, 3, 9]);
        assert_eq!(asked(&informants, &primaries).await, [2, 3, 1, 9]);
        informants.prefer(at(7));
        informants.doubt(at(3));
        assert_eq!(asked(&informants, &primaries).await, [7, 1, 2, 9, 3]);
        // Each hint counts once.
        assert_eq!(asked(&informants, &primaries).await, [1, 2, 3, 9]);
        let ask = |_| async { Ok::<(), _>(()) };
        assert_eq!(informants.ask(&[], &[], "nobody", ask).await, Err("nobody"));
    }

    #[tokio::test(start_paused = true)]
    async fn frozen_nodes_cost_no_time() {
        let ask = |node: HostPort| async move {
            if node.port < 3 {
                std::future::pending::<()>().await;
            }
            Ok::<_, &str>(node.port)
        };
        let primaries = [at(1), at(2), at(3)];
        let informants = Informants::default();
        let answer = informants.ask(&primaries, &[], "nobody", ask);
        assert_eq!(answer.await, Ok(3));
    }
}
