//! One measurement.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::measure::model::{Pacing, Provider, Subject, Topology};
use crate::shared::locking::{Client, Kind};
use crate::shared::names::names;

/// The workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// One worker takes and releases a lock that no other worker wants.
    Uncontended,
    /// Every worker has a lock of its own; all share one connection.
    ManyLocks,
    /// All workers want the same lock, from several processes.
    HotLock,
    /// All workers except one want the same lock in one process, and that one wants it in another.
    RemoteWaiter,
    /// Odd workers write, even workers read.
    ReadersWriters,
    /// Many locks are held and renewed by the watchdog.
    Renewal,
    /// Many locks are held, to measure their memory in the process.
    HeldMemory,
    /// Many tasks wait for locks that others hold, to measure their memory in the process.
    WaitingMemory,
}

impl Scenario {
    /// Whether the workers of several processes want one lock.
    #[must_use]
    pub const fn is_contended(self) -> bool {
        matches!(
            self,
            Self::HotLock | Self::RemoteWaiter | Self::ReadersWriters
        )
    }

    /// Whether workers take and release locks again and again.
    #[must_use]
    pub const fn is_loop(self) -> bool {
        self.is_contended() || matches!(self, Self::Uncontended | Self::ManyLocks)
    }
}

/// The library or reference that does the locking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// This library.
    Locktopus,
    /// The floor: a bare hand-off, which is a lock only while no process dies, and not meant for
    /// use (feature `peers`).
    Bare,
    /// The reference: a hash, a message on release, then all waiters retry (feature `peers`).
    R1,
    /// The rslock crate (feature `peers`).
    Rslock,
    /// Redisson itself, in Java (feature `peers`, a JDK and Maven).
    Redisson,
}

impl Strategy {
    /// Whether it can take locks of this kind through this library.
    #[must_use]
    pub const fn can(self, client: Client, kind: Kind) -> bool {
        let java = matches!(client, Client::Redisson);
        match self {
            Self::Locktopus => !java && !matches!(kind, Kind::SpinLock),
            Self::Bare | Self::R1 | Self::Rslock => {
                !java && matches!(kind, Kind::Lock | Kind::Mutex)
            }
            Self::Redisson => {
                java && matches!(
                    kind,
                    Kind::Lock | Kind::FairLock | Kind::SpinLock | Kind::WriteLock
                )
            }
        }
    }
}

names! {
    Scenario: Uncontended = "uncontended", ManyLocks = "many-locks", HotLock = "hot-lock",
        RemoteWaiter = "remote-waiter", ReadersWriters = "readers-writers", Renewal = "renewal",
        HeldMemory = "held-memory", WaitingMemory = "waiting-memory";
    Strategy: Locktopus = "locktopus", Bare = "bare", R1 = "R1", Rslock = "rslock", Redisson = "redisson";
}

/// One measurement, to be repeated in every round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The workload.
    pub scenario: Scenario,
    /// The library or reference that does the locking.
    pub strategy: Strategy,
    /// The client library.
    pub client: Client,
    /// The arrangement of the servers.
    pub topology: Topology,
    /// Kind of lock.
    pub kind: Kind,
    /// Workers over all processes.
    pub workers: u32,
    /// Processes.
    pub processes: u32,
    /// Threads of the runtime in each process.
    pub threads: u32,
    /// Number of servers of a quorum to use; all of them by default. With 1 the server is used
    /// directly, without a quorum.
    pub nodes: Option<u32>,
    /// How often a lock is passed on inside a process before it returns to the server; the
    /// library's default if `None`.
    pub turns: Option<u32>,
    /// How long a process keeps an unwanted lease after the release; zero turns the cache off.
    pub lease_cache: Duration,
    /// The safety mode as in a URL, such as `replicated&replicas=all`; plain if `None`.
    pub safety: Option<String>,
    /// Distinct locks.
    pub locks: u32,
    /// How long each holder keeps the lock.
    pub hold: Duration,
    /// Length of the measured part.
    pub duration: Duration,
    /// Arrivals per second over all workers; `None` for a closed loop.
    pub arrivals_per_second: Option<u64>,
    /// Lease of the held locks, for the renewal scenario.
    pub lease: Duration,
    /// Delay to add to each round trip to the servers; `None` for a direct connection.
    pub round_trip: Option<Duration>,
    /// The number of its rounds; `None` for all.
    pub rounds: Option<u32>,
    /// How long a strategy in Java runs the workload before it counts; zero for the others.
    pub warm_up: Duration,
    /// Name of the group in the scenario file; it has no effect on what is measured.
    pub group: Option<String>,
}

impl Task {
    /// The pacing of the workers.
    #[must_use]
    pub const fn pacing(&self) -> Pacing {
        match self.arrivals_per_second {
            Some(arrivals_per_second) => Pacing::OpenLoop {
                arrivals_per_second,
            },
            None => Pacing::ClosedLoop,
        }
    }

    /// The number of its rounds in a run of `rounds`.
    #[must_use]
    pub fn rounds_of(&self, rounds: u32) -> u32 {
        self.rounds.map_or(rounds, |most| most.min(rounds))
    }

    /// The subject of its cell, as far as the task decides it: the servers are still unknown.
    #[must_use]
    pub fn subject(&self) -> Subject {
        let lock_kind = match self.strategy {
            Strategy::Locktopus | Strategy::Redisson => self.kind.name(),
            Strategy::R1 => "lock",
            Strategy::Bare | Strategy::Rslock => "mutex",
        };
        Subject {
            scenario: self.scenario.name().to_owned(),
            strategy: self.strategy.name().to_owned(),
            client: self.client.name().to_owned(),
            topology: self.topology,
            nodes: 0,
            provider: Provider::External,
            server: None,
            lock_kind: lock_kind.to_owned(),
            workers: self.workers,
            processes: self.processes,
            locks: self.locks,
            pacing: self.pacing(),
            hold_ns: u64::try_from(self.hold.as_nanos()).unwrap_or(u64::MAX),
            through_proxy: self.round_trip.is_some(),
            options: self.options(),
        }
    }

    fn options(&self) -> BTreeMap<String, String> {
        let time = |time: Duration| humantime::format_duration(time).to_string();
        let lease = (self.scenario == Scenario::Renewal).then_some(self.lease);
        let warm_up = (self.strategy == Strategy::Redisson).then_some(self.warm_up);
        let threads = Some(self.threads).filter(|&threads| threads > 1);
        let kept = Some(self.lease_cache).filter(|kept| !kept.is_zero());
        let options = [
            ("lease", lease.map(time)),
            ("JIT warm-up", warm_up.map(time)),
            ("threads", threads.map(|threads| threads.to_string())),
            ("turns", self.turns.map(|turns| turns.to_string())),
            ("lease cache", kept.map(time)),
            ("rounds", self.rounds.map(|rounds| rounds.to_string())),
            ("round trip", self.round_trip.map(time)),
            ("safety", self.safety.clone()),
        ];
        let options = options.into_iter();
        options
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }

    /// Whether both stand for the same measurement.
    #[must_use]
    pub fn measures_as(&self, other: &Self) -> bool {
        let mut other = other.clone();
        other.group.clone_from(&self.group);
        other.rounds = self.rounds;
        *self == other
    }

    /// The task in a few words, for progress lines.
    #[must_use]
    pub fn describe(&self) -> String {
        let Self {
            workers, processes, ..
        } = self;
        let (scenario, strategy, kind) =
            (self.scenario.name(), self.strategy.name(), self.kind.name());
        let (client, topology) = (self.client.name(), self.topology.name());
        let mut words = format!(
            "{scenario} {strategy} {kind} via {client} on {topology}, {workers} workers in {processes}"
        );
        for (name, value) in self.options() {
            words.push_str(&format!(", {name} {value}"));
        }
        if let Some(nodes) = self.nodes {
            words.push_str(&format!(", nodes {nodes}"));
        }
        words
    }
}
