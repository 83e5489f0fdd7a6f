//! Checks that a cell makes sense.

use locktopus::url::BackendUrl;

use super::cell::CellSpec;
use super::{Client, Kind, Scenario, Strategy};
use crate::measure::model::Topology;

/// Rules that a cell may break, each with the sentence that says so.
type Broken = (bool, &'static str);

fn first(rules: &[Broken]) -> Result<(), String> {
    match rules.iter().find(|(is_broken, _)| *is_broken) {
        Some((_, problem)) => Err((*problem).to_owned()),
        None => Ok(()),
    }
}

impl CellSpec {
    /// Rules for files and for what flags turn them into.
    pub(super) fn check(&self) -> Result<(), String> {
        let fewest = self.workers.iter().min().copied().unwrap_or(0);
        let only_ours = self.only_ours();
        let quorum = self.topologies.contains(&Topology::Quorum);
        let lists = self.strategies.is_empty() || self.clients.is_empty() || self.kinds.is_empty();
        let kinds = |kinds: &[Kind]| self.kinds.iter().all(|kind| kinds.contains(kind));
        let places = |places: &[Topology]| self.topologies.iter().all(|one| places.contains(one));
        let far = !self.round_trips.is_empty();
        let kept = !self.lease_cache.is_zero();
        let rw_lock = self.kinds.contains(&Kind::RwLock);
        let both = self.scenario == Scenario::ReadersWriters;
        let known = [
            Topology::Standalone,
            Topology::Sentinel,
            Topology::Cluster,
            Topology::Quorum,
        ];
        first(&[
            (
                lists || fewest == 0,
                "strategies, clients, kinds and workers must each have a value",
            ),
            (
                self.processes == 0 || fewest < self.processes,
                "there must be at least one process, and a worker for each",
            ),
            (
                self.scenario == Scenario::Uncontended && self.workers != [1],
                "uncontended means one worker",
            ),
            (self.duration.is_zero(), "duration must be longer than zero"),
            (
                !places(&known),
                "topologies are standalone, sentinel, cluster and quorum",
            ),
            (self.rounds == Some(0), "rounds must be at least 1"),
            (
                self.arrivals_per_second == Some(0),
                "arrivals_per_second must be at least 1",
            ),
            (self.threads == 0, "there must be at least one thread"),
            // Only servers that the run starts can have a slow line before them, and clients of
            // Sentinel and clusters bypass it: they connect to the addresses that nodes give them.
            (
                far && (self.clients.contains(&Client::Memory)
                    || self.strategies.contains(&Strategy::Redisson)),
                "only servers are far, and only for clients in Rust: no round_trips",
            ),
            (
                far && !places(&[Topology::Standalone, Topology::Quorum]),
                "only standalone servers and quorums are put far away: no round_trips",
            ),
            (
                quorum && (self.kinds != [Kind::Mutex] || !only_ours),
                "a quorum has mutexes of locktopus and nothing else",
            ),
            (
                self.nodes.is_some() && self.topologies != [Topology::Quorum],
                "nodes are chosen of a quorum only",
            ),
            (
                self.nodes.is_some_and(|nodes| nodes % 2 == 0),
                "nodes must be an odd number",
            ),
            (
                self.turns.is_some() && !only_ours,
                "only locktopus passes locks on inside a process: no turns",
            ),
            (
                kept && !only_ours,
                "only locktopus keeps leases: no lease_cache",
            ),
            (kept && quorum, "a quorum keeps no leases: no lease_cache"),
            (
                kept && !kinds(&[Kind::Lock, Kind::Mutex]),
                "leases of lock and mutex can be kept, no others: no lease_cache",
            ),
            (
                kept && !self.scenario.is_loop(),
                "lease_cache is for locks that are taken again and again",
            ),
            (
                self.scenario == Scenario::RemoteWaiter && self.processes != 2,
                "a remote waiter needs two processes",
            ),
            (
                rw_lock != both || (both && self.kinds.len() > 1),
                "readers-writers has the kind rw-lock, and nothing else has",
            ),
            (
                self.kinds.contains(&Kind::ReadLock) && self.scenario.is_contended(),
                "read locks do not contend: use readers-writers",
            ),
            (
                self.scenario == Scenario::Renewal && self.duration < self.lease * 2 / 3,
                "renewal needs a duration of two renewal periods, that is two thirds of the lease",
            ),
        ])?;
        self.check_safety(quorum)
    }

    fn only_ours(&self) -> bool {
        self.strategies == [Strategy::Locktopus]
    }

    fn check_safety(&self, quorum: bool) -> Result<(), String> {
        let Some(safety) = &self.safety else {
            return Ok(());
        };
        first(&[
            (
                !self.only_ours() || self.clients.contains(&Client::Memory),
                "only locktopus on servers has safety modes: no safety",
            ),
            (quorum, "a quorum is a safety mode of its own: no safety"),
        ])?;
        let url = format!("redis://127.0.0.1:6379?safety={safety}");
        match url.parse::<BackendUrl>() {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("safety = {safety:?}: {error}")),
        }
    }

    /// Flags may leave a strategy without a kind, and it is then not measured; a file may not.
    pub(super) fn check_strategies(&self) -> Result<(), String> {
        let impossible = self.strategies.iter().find(|strategy| {
            let mut clients = self.clients.iter();
            !clients.any(|&client| self.kinds.iter().any(|&kind| strategy.can(client, kind)))
        });
        if let Some(strategy) = impossible {
            return Err(format!(
                "{} can have none of these kinds through any of these clients",
                strategy.name()
            ));
        }
        let plain = matches!(
            self.scenario,
            Scenario::Uncontended | Scenario::ManyLocks | Scenario::HotLock
        );
        let closed = plain && self.arrivals_per_second.is_none();
        first(&[
            (
                self.strategies.contains(&Strategy::Redisson) && !closed,
                "redisson is measured in closed loops that take and release locks",
            ),
            (
                !plain && !self.only_ours(),
                "only locktopus is measured in this scenario",
            ),
        ])
    }
}
