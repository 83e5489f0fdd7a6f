//! Checks that a cell makes sense.

use locktopus::url::BackendUrl;

use super::cell::CellSpec;
use super::{Client, Kind, Scenario, Strategy};
use crate::measure::model::Topology;

impl CellSpec {
    /// Rules for files and for what flags turn them into.
    pub(super) fn check(&self) -> Result<(), String> {
        let lists_full =
            !(self.strategies.is_empty() || self.clients.is_empty() || self.kinds.is_empty());
        if !lists_full || self.workers.is_empty() || self.workers.contains(&0) {
            return Err("strategies, clients, kinds and workers must each have a value".to_owned());
        }
        if self.processes == 0 || self.workers.iter().any(|&workers| workers < self.processes) {
            return Err("there must be at least one process, and a worker for each".to_owned());
        }
        if self.scenario == Scenario::Uncontended
            && self.workers.iter().any(|&workers| workers != 1)
        {
            return Err("uncontended means one worker".to_owned());
        }
        if self.duration.is_zero() {
            return Err("duration must be longer than zero".to_owned());
        }
        if self
            .topologies
            .iter()
            .any(|t| matches!(t, Topology::InProcess | Topology::Replicated))
        {
            return Err("topologies are standalone, sentinel, cluster and quorum".to_owned());
        }
        if self.rounds == Some(0) {
            return Err("rounds must be at least 1".to_owned());
        }
        self.check_distance()?;
        self.check_quorum()?;
        self.check_scenario()?;
        if self.arrivals_per_second == Some(0) {
            return Err("arrivals_per_second must be at least 1".to_owned());
        }
        Ok(())
    }

    fn check_quorum(&self) -> Result<(), String> {
        let quorum = self.topologies.contains(&Topology::Quorum);
        if quorum && (self.kinds != [Kind::Mutex] || self.strategies != [Strategy::Locktopus]) {
            return Err("a quorum has mutexes of locktopus and nothing else".to_owned());
        }
        match self.nodes {
            Some(_) if self.topologies != [Topology::Quorum] => {
                Err("nodes are chosen of a quorum only".to_owned())
            }
            Some(nodes) if nodes % 2 == 0 => Err("nodes must be an odd number".to_owned()),
            _ => Ok(()),
        }
    }

    /// Only servers that the run starts can have a slow line before them, and clients of Sentinel
    /// and clusters bypass it: they connect to the addresses that nodes give them.
    fn check_distance(&self) -> Result<(), String> {
        if self.round_trips.is_empty() {
            return Ok(());
        }
        if self.clients.contains(&Client::Memory) || self.strategies.contains(&Strategy::Redisson) {
            return Err(
                "only servers are far, and only for clients in Rust: no round_trips".to_owned(),
            );
        }
        let mut topologies = self.topologies.iter();
        if !topologies.all(|t| matches!(t, Topology::Standalone | Topology::Quorum)) {
            return Err(
                "only standalone servers and quorums are put far away: no round_trips".to_owned(),
            );
        }
        Ok(())
    }

    /// Needs of single scenarios.
    fn check_scenario(&self) -> Result<(), String> {
        if self.threads == 0 {
            return Err("there must be at least one thread".to_owned());
        }
        if self.turns.is_some() && self.strategies != [Strategy::Locktopus] {
            return Err("only locktopus passes locks on inside a process: no turns".to_owned());
        }
        self.check_lease_cache()?;
        self.check_safety()?;
        if self.scenario == Scenario::RemoteWaiter && self.processes != 2 {
            return Err("a remote waiter needs two processes".to_owned());
        }
        let rw_lock = self.kinds.contains(&Kind::RwLock);
        let both = self.scenario == Scenario::ReadersWriters;
        if rw_lock != both || (both && self.kinds.len() > 1) {
            return Err("readers-writers has the kind rw-lock, and nothing else has".to_owned());
        }
        let shared = self.kinds.contains(&Kind::ReadLock);
        if shared && self.scenario.is_contended() {
            return Err("read locks do not contend: use readers-writers".to_owned());
        }
        if self.scenario == Scenario::Renewal && self.duration < self.lease * 2 / 3 {
            return Err(
                "renewal needs a duration of two renewal periods, that is two thirds of the lease"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn check_lease_cache(&self) -> Result<(), String> {
        if self.lease_cache.is_zero() {
            return Ok(());
        }
        if self.strategies != [Strategy::Locktopus] {
            return Err("only locktopus keeps leases: no lease_cache".to_owned());
        }
        if self.topologies.contains(&Topology::Quorum) {
            return Err("a quorum keeps no leases: no lease_cache".to_owned());
        }
        let mut kinds = self.kinds.iter();
        if !kinds.all(|kind| matches!(kind, Kind::Lock | Kind::Mutex)) {
            return Err(
                "leases of lock and mutex can be kept, no others: no lease_cache".to_owned(),
            );
        }
        if !self.scenario.is_loop() {
            return Err("lease_cache is for locks that are taken again and again".to_owned());
        }
        Ok(())
    }

    fn check_safety(&self) -> Result<(), String> {
        let Some(safety) = &self.safety else {
            return Ok(());
        };
        if self.strategies != [Strategy::Locktopus] || self.clients.contains(&Client::Memory) {
            return Err("only locktopus on servers has safety modes: no safety".to_owned());
        }
        if self.topologies.contains(&Topology::Quorum) {
            return Err("a quorum is a safety mode of its own: no safety".to_owned());
        }
        let url = format!("redis://127.0.0.1:6379?safety={safety}");
        match url.parse::<BackendUrl>() {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("safety = {safety:?}: {error}")),
        }
    }

    /// Flags may leave a strategy without a kind, and it is then not measured; a file may not.
    pub(super) fn check_strategies(&self) -> Result<(), String> {
        for &strategy in &self.strategies {
            let possible = self.clients.iter().any(|&client| {
                let mut kinds = self.kinds.iter();
                kinds.any(|&kind| strategy.can(client, kind))
            });
            if !possible {
                return Err(format!(
                    "{} can have none of these kinds through any of these clients",
                    strategy.name()
                ));
            }
        }
        let plain = matches!(
            self.scenario,
            Scenario::Uncontended | Scenario::ManyLocks | Scenario::HotLock
        );
        if self.strategies.contains(&Strategy::Redisson)
            && !(plain && self.arrivals_per_second.is_none())
        {
            return Err(
                "redisson is measured in closed loops that take and release locks".to_owned(),
            );
        }
        if !plain && self.strategies != [Strategy::Locktopus] {
            return Err("only locktopus is measured in this scenario".to_owned());
        }
        Ok(())
    }
}
