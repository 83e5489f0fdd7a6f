//! One schedule as data: what processes do, and which faults happen. A seed draws one; shrinking
//! removes parts.

use locktopus_core::SafetyMode;
use locktopus_model::redis::ScriptTime;

/// A schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Decides how long messages take, and the random numbers of processes.
    pub seed: u64,
    /// The safety mode chosen when connecting.
    pub safety: SafetyMode,
    /// The number of independent servers, if the backend is a quorum.
    pub quorum: Option<usize>,
    /// The number of replicas of the primary; in a cluster, of each shard's.
    pub replicas: Vec<usize>,
    /// The shortest time that a message takes, in ms.
    pub travel: u64,
    /// Every message takes exactly that time and nothing goes wrong, so every delay is a bug.
    pub steady: bool,
    /// The renewed lease, in ms.
    pub lease: u64,
    /// The locks in use.
    pub locks: Vec<Lock>,
    /// The processes.
    pub processes: Vec<ProcessPlan>,
    /// The faults, and when each happens, in ms.
    pub faults: Vec<(u64, Fault)>,
}

/// A process.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessPlan {
    /// How many ms its clock gains (or loses, if negative) in 1,000.
    pub drift: i64,
    /// It uses another library.
    pub neighbour: bool,
    /// For how many ms it caches a lease that was given back.
    pub keep: u64,
    /// How many of its tasks one lease serves at most.
    pub turns: u32,
    /// Its tasks, each with its acts in order.
    pub tasks: Vec<Vec<Act>>,
}

/// A lock in use.
#[derive(Debug, Clone, PartialEq)]
pub struct Lock {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
}

/// The kind of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The default.
    Lock,
    /// A fair lock: in order of arrival.
    Fair,
    /// A mutex: a string, a token and a queue.
    Mutex,
    /// A mutex that is only a string.
    SingleKey,
    /// A mutex in the format of redis-py.
    RedisPy,
    /// Read-write.
    ReadWrite,
    /// A semaphore with so many permits.
    Semaphore(u32),
    /// A semaphore with so many permits, each with an expiry.
    Permits(u32),
    /// A latch. It has no holder.
    Latch,
}

/// One use of a lock by a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Act {
    /// The pause before it, in ms.
    pub pause: u64,
    /// Which lock.
    pub lock: usize,
    /// Another lock to take with it, if they can be taken together.
    pub also: Option<usize>,
    /// Alone (`true`), or with other readers or holders of permits.
    pub exclusive: bool,
    /// How long it waits.
    pub wait: Wait,
    /// How it learns that the lock is free.
    pub strategy: Strategy,
    /// For how many ms the lock stays held at least, if it can.
    pub at_least: Option<u64>,
    /// How long it works under the lock, in ms.
    pub hold: u64,
    /// A fixed lease, in ms.
    pub fixed_lease: Option<u64>,
    /// How it ends.
    pub end: End,
}

/// How an act waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// With no limit.
    Forever,
    /// At most so many ms.
    AtMost(u64),
    /// It does not wait.
    Try,
    /// It drops the future after so many ms.
    Dropped(u64),
}

/// How an act learns that the lock is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// It queues, and believes a pushed grant.
    HandOff,
    /// It queues, and confirms a pushed grant with the server.
    Confirm,
    /// It waits for a message that the lock is free.
    Notify,
    /// It polls.
    Poll,
}

/// How a hold ends, or what the act does instead of holding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is released.
    Release,
    /// The guard is dropped.
    Drop,
    /// It is extended half-way, and released.
    Extend,
    /// Its holder takes it once more half-way, and both are released.
    Again,
    /// Half-way it becomes a ticket, which the task adopts again.
    Ticket,
    /// Half-way a write lock becomes a read lock.
    Downgrade,
    /// No hold: as an administrator, the task forces the release of the lock.
    Evict,
    /// Half-way it writes data that only later holders may overwrite.
    Write,
    /// No hold: it inspects who holds the lock.
    Inspect,
    /// No hold: it changes the number of a semaphore or a latch.
    Count(Count),
}

/// A change of the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// One permit less, until the act ends.
    Fewer,
    /// Drains the free permits, and restores them.
    Drain,
    /// Deletes the semaphore, and initialises it again.
    Delete,
}

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The primary of a shard dies, and starts again later; its best replica is promoted.
    Kill(usize),
    /// A replica of a shard is promoted once it has all data.
    Orderly(usize),
    /// A replica of a shard is promoted, and the old primary keeps serving for so many ms.
    Split(usize, u64),
    /// The primary of a shard freezes, and its best replica is promoted. That one dies after so
    /// many ms, and the old primary is promoted again, as it was.
    Return(usize, u64),
    /// A server is down for so many ms; whether it keeps its data.
    Restart(usize, u64, bool),
    /// A server forgets its script cache.
    FlushScripts(usize),
    /// A server is out of memory for so many ms.
    OutOfMemory(usize, u64),
    /// A primary refuses writes for so many ms because it lacks replicas.
    LacksReplicas(usize, u64),
    /// A replica receives everything so many ms later, for as long.
    Lag(usize, u64),
    /// The connections of a process break.
    Break(usize),
    /// No message reaches a process or leaves it for so many ms.
    Stall(usize, u64),
    /// A process is paused for so many ms.
    Suspend(usize, u64),
    /// The machine of a process sleeps for so many ms.
    Sleep(usize, u64),
    /// A process dies.
    Die(usize),
    /// A server's clock jumps by so many ms.
    SetClock(usize, i64),
    /// A client listens to a replica.
    Misplace(usize),
    /// The slot of a lock moves to another shard, key by key, in about so many ms.
    MoveSlot(usize, u64),
}

impl Fault {
    /// Its name in counts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill(_) => "kill",
            Self::Orderly(_) => "orderly failover",
            Self::Split(..) => "split brain",
            Self::Return(..) => "promoted again",
            Self::Restart(_, _, true) => "restart with data",
            Self::Restart(_, _, false) => "restart without data",
            Self::FlushScripts(_) => "scripts flushed",
            Self::OutOfMemory(..) => "out of memory",
            Self::LacksReplicas(..) => "replicas lacking",
            Self::Lag(..) => "replica lags",
            Self::Break(_) => "connections broken",
            Self::Stall(..) => "network stalled",
            Self::Suspend(..) => "process stopped",
            Self::Sleep(..) => "machine asleep",
            Self::Die(_) => "process dead",
            Self::SetClock(..) => "clock set",
            Self::Misplace(_) => "listens to a replica",
            Self::MoveSlot(..) => "slot moves",
        }
    }

    /// Whether a server may forget writes that it acknowledged.
    #[must_use]
    pub fn forgets(self) -> bool {
        matches!(
            self,
            Self::Kill(_) | Self::Split(..) | Self::Return(..) | Self::Restart(_, _, false)
        )
    }
}

impl Plan {
    /// Whether a server's clock advances while a script runs: on newer servers it stands still.
    #[must_use]
    pub fn script_time(&self) -> ScriptTime {
        let times = [
            ScriptTime::Advances(1),
            ScriptTime::Frozen,
            ScriptTime::Advances(150),
        ];
        times[usize::try_from(self.seed % 3).unwrap_or(0)]
    }

    /// The timeout of a call, in ms.
    #[must_use]
    pub fn call_timeout(&self) -> u64 {
        400 + self.travel * 20
    }

    /// How many servers there are.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.shards_of_servers().len()
    }

    /// How many primaries share the slots of a cluster. One means that it is no cluster.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.replicas.len()
    }

    /// The shard of each server: the first primary and its replicas, the other primaries, then
    /// their replicas. Each server of a quorum is a shard of its own.
    pub(crate) fn shards_of_servers(&self) -> Vec<usize> {
        if let Some(servers) = self.quorum {
            return (0..servers).collect();
        }
        let all = || self.replicas.iter().enumerate();
        let mut shards: Vec<_> = all()
            .take(1)
            .flat_map(|(shard, replicas)| vec![shard; 1 + replicas])
            .collect();
        shards.extend(all().skip(1).map(|(shard, _)| shard));
        shards.extend(
            all()
                .skip(1)
                .flat_map(|(shard, replicas)| vec![shard; *replicas]),
        );
        shards
    }

    /// The replicas of a shard at the start.
    pub(crate) fn replicas_of(&self, shard: usize) -> Vec<usize> {
        let servers = self.shards_of_servers().into_iter().enumerate();
        let of_it = servers.filter(|(_, of)| *of == shard);
        of_it.map(|(server, _)| server).skip(1).collect()
    }
}
