//! One deployment with everything on it, as a fault sees it and acts on it.

use std::collections::BTreeMap;
use std::time::Duration;

use locktopus_history::WorkerLog;
use locktopus_servers::topology::{Deployment, Node, Vip};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::load::Load;
use super::worker_pool::WorkerPool;
use super::{RunError, cut_replication};
use crate::failover::plan::{Cell, Verb};
use crate::failover::resource::{Entered, Resource};
use crate::shared::random::Random;

/// How long recovery may take: failovers, quarantines, and until new nodes of a quorum vote.
pub(super) const RECOVERY: Duration = Duration::from_secs(60);

pub(super) struct FaultContext<'a> {
    pub(super) cell: &'a Cell,
    pub(super) place: &'a Deployment,
    /// The address that clients use, if it is not the servers' own.
    pub(super) vip: Option<&'a Vip>,
    pub(super) resource: &'a Resource,
    pub(super) pool: WorkerPool,
    pub(super) log: WorkerLog,
    pub(super) prefix: String,
    pub(super) random: Random,
    /// How often each event happened.
    pub(super) happened: BTreeMap<String, u64>,
    pub(super) done: u32,
}

impl<'a> FaultContext<'a> {
    /// Records the fault that starts now.
    pub(super) fn fault(&mut self, target: &str) -> Result<(), RunError> {
        self.also(self.cell.scenario.fault, target)
    }

    /// Records a fault that is part of a recorded one.
    pub(super) fn also(&mut self, verb: Verb, target: &str) -> Result<(), RunError> {
        self.note(verb.name());
        self.log
            .fault(verb.name(), target)
            .map_err(|error| RunError::History(error.to_string()))
    }

    /// Notes a consequence.
    pub(super) fn note(&mut self, what: &str) {
        *self.happened.entry(what.to_owned()).or_default() += 1;
    }

    /// The locks that faults follow; all locks if none is marked.
    pub(super) fn targets(&self) -> Vec<String> {
        let groups = &self.cell.scenario.groups;
        let some = groups.iter().any(|group| group.target);
        groups
            .iter()
            .filter(|group| group.target || !some)
            .flat_map(|group| group.lock_names(&self.prefix))
            .collect()
    }

    /// One of the target locks, and the server that has it.
    pub(super) async fn target(&mut self) -> Result<(String, &'a Node), RunError> {
        let locks = self.targets();
        let lock = locks[self.below(locks.len())].clone();
        let node = self.place.wait_writable(&lock, RECOVERY).await?;
        Ok((lock, node))
    }

    /// Waits until the servers of all target locks take writes.
    pub(super) async fn writable(&self) -> Result<(), RunError> {
        for lock in self.targets() {
            self.place.wait_writable(&lock, RECOVERY).await?;
        }
        Ok(())
    }

    /// The target locks that are on `node`.
    pub(super) async fn on(&self, node: &Node) -> Vec<String> {
        let mut here = Vec::new();
        for lock in self.targets() {
            if let Ok(primary) = self.place.primary_for(&lock).await
                && primary.addr() == node.addr()
            {
                here.push(lock);
            }
        }
        here
    }

    /// Waits for the next grant of one of these locks.
    pub(super) async fn grant(&self, locks: &[String]) -> Result<Entered, RunError> {
        let mut heard = self.resource.listen();
        tokio::time::timeout(RECOVERY, next(&mut heard, locks))
            .await
            .ok()
            .flatten()
            .ok_or(RunError::NoGrant(RECOVERY))
    }

    /// Starts writes by others to this server, if the plan asks for them.
    pub(super) fn load(&self, node: &Node, lock: &str) -> Option<Load> {
        let wanted = self.cell.scenario.write_load;
        wanted.then(|| Load::start(node.addr(), lock))
    }

    /// Cuts the replicas of this server off for good if the plan asks for it; returns whether.
    pub(super) async fn cut_off(&mut self, node: &Node) -> Result<bool, RunError> {
        let wanted = self.cell.scenario.cut_replication;
        if wanted {
            cut_replication::off(node.addr())
                .await
                .map_err(RunError::io("cut off replicas"))?;
            self.note("cut off from replicas");
        }
        Ok(wanted)
    }

    pub(super) async fn pause(&mut self) {
        let (shortest, longest) = self.cell.scenario.pause;
        let span = (longest - shortest).mul_f64(self.random.unit());
        tokio::time::sleep(shortest + span).await;
    }

    /// A random number below `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        self.random.below(count)
    }
}

async fn next(heard: &mut Receiver<Entered>, locks: &[String]) -> Option<Entered> {
    loop {
        match heard.recv().await {
            Ok(entered) if locks.contains(&entered.lock) => return Some(entered),
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}
