//! One schedule as data: what processes do, and what is done to them and to the servers. A seed
//! draws one; shrinking takes parts away.

use locktopus_core::SafetyMode;
use locktopus_model::redis::ScriptTime;

/// A schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Decides how long messages take, and the random numbers of processes.
    pub seed: u64,
    /// What was chosen when connecting.
    pub safety: SafetyMode,
    /// A majority of so many independent servers, if any.
    pub quorum: Option<usize>,
    /// How many replicas the primary has; in a cluster, that of each shard.
    pub replicas: Vec<usize>,
    /// The least that a message takes, in ms.
    pub travel: u64,
    /// Every message takes just that: nothing goes wrong, and what is late is somebody's fault.
    pub steady: bool,
    /// The lease that is renewed, in ms.
    pub lease: u64,
    /// The locks that are in use.
    pub locks: Vec<Lock>,
    /// What runs.
    pub processes: Vec<ProcessPlan>,
    /// What goes wrong, and when in ms.
    pub faults: Vec<(u64, Fault)>,
}

/// A process.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessPlan {
    /// How many ms its clock loses or gains in 1,000.
    pub drift: i64,
    /// It is of another library.
    pub neighbour: bool,
    /// For how many ms a lease that was given back stays in the process.
    pub keep: u64,
    /// How many of its tasks a lease serves at most.
    pub turns: u32,
    /// Its tasks, and what each does in turn.
    pub tasks: Vec<Vec<Act>>,
}

/// A lock that is in use.
#[derive(Debug, Clone, PartialEq)]
pub struct Lock {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// What a lock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The default.
    Lock,
    /// In order of arrival.
    Fair,
    /// A string, a token and a queue.
    Mutex,
    /// A string alone.
    SingleKey,
    /// A string as redis-py has it.
    RedisPy,
    /// Read-write.
    ReadWrite,
    /// So many permits.
    Semaphore(u32),
    /// So many, each with an expiry.
    Permits(u32),
    /// Nobody holds it.
    Latch,
}

/// What a task does with a lock once.
#[derive(Debug, Clone, PartialEq)]
pub struct Act {
    /// For how many ms it does something else before.
    pub pause: u64,
    /// Which lock.
    pub lock: usize,
    /// Together with this one, if they can be.
    pub also: Option<usize>,
    /// Alone, or with other readers or holders of permits.
    pub exclusive: bool,
    /// How long it waits.
    pub wait: Wait,
    /// And in which way.
    pub strategy: Strategy,
    /// For how many ms it stays held at least, if it can.
    pub at_least: Option<u64>,
    /// For how many ms it works.
    pub hold: u64,
    /// A lease that is not renewed, in ms.
    pub fixed_lease: Option<u64>,
    /// How it ends.
    pub end: End,
}

/// How an act waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// As long as it takes.
    Forever,
    /// At most so many ms.
    AtMost(u64),
    /// Not at all.
    Try,
    /// The future is dropped after so many ms.
    Dropped(u64),
}

/// In which way an act waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// In the queue, and believes what it is told.
    HandOff,
    /// In the queue, and asks before it believes.
    Confirm,
    /// Until it is announced that the lock is free.
    Notify,
    /// It asks again and again.
    Poll,
}

/// How a hold ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is released.
    Release,
    /// The guard is dropped.
    Drop,
    /// It is extended half-way, and released.
    Extend,
    /// It is taken once more by its holder, and both are released.
    Again,
    /// It is turned into a ticket half-way, and taken up again by that.
    Ticket,
    /// What was written under is read under for the rest of the time.
    Downgrade,
    /// It is no hold at all: as an administrator, the task takes the lock away from whoever holds
    /// it.
    Evict,
    /// Half-way it writes something that only later holders may overwrite.
    Write,
    /// Nor is this: it looks who holds it.
    Inspect,
    /// Nor this: of a semaphore or a latch it changes the number.
    Count(Count),
}

/// What is done to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// A permit less, and one more after the time of the act.
    Fewer,
    /// What is free is taken away, and given back.
    Drain,
    /// It is deleted, and given anew.
    Delete,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The primary of a shard dies, and comes back later; its best replica is promoted.
    Kill(usize),
    /// A replica of a shard is promoted once it has everything.
    Orderly(usize),
    /// A replica of a shard is promoted, and the primary goes on for so many ms.
    Split(usize, u64),
    /// The primary of a shard stands still, and its best replica is promoted; that one dies after
    /// so many ms, and the old primary is promoted again, as it was.
    Return(usize, u64),
    /// A server is away for so many ms; whether it keeps its data.
    Restart(usize, u64, bool),
    /// A server forgets the scripts that it knows.
    FlushScripts(usize),
    /// A server is out of memory for so many ms.
    OutOfMemory(usize, u64),
    /// A primary is told to write nothing without replicas for so many ms.
    LacksReplicas(usize, u64),
    /// A replica hears of everything so many ms later, for as long.
    Lag(usize, u64),
    /// The connections of a process break.
    Break(usize),
    /// Nothing reaches a process, or leaves it, for so many ms.
    Stall(usize, u64),
    /// A process is stopped for so many ms.
    Suspend(usize, u64),
    /// Its machine sleeps for so many ms.
    Sleep(usize, u64),
    /// It dies.
    Die(usize),
    /// A server's clock is set by so many ms.
    SetClock(usize, i64),
    /// A client listens to a replica.
    Misplace(usize),
    /// The slot of a lock moves to another shard, key by key, for which it takes about so many ms.
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

    /// After it a server may have forgotten what it acknowledged.
    #[must_use]
    pub fn forgets(self) -> bool {
        matches!(
            self,
            Self::Kill(_) | Self::Split(..) | Self::Return(..) | Self::Restart(_, _, false)
        )
    }
}

impl Plan {
    /// Whether the servers' clocks go on while scripts run: newer ones let it stand still.
    #[must_use]
    pub fn script_time(&self) -> ScriptTime {
        let times = [
            ScriptTime::Advances(1),
            ScriptTime::Frozen,
            ScriptTime::Advances(150),
        ];
        times[usize::try_from(self.seed % 3).unwrap_or(0)]
    }

    /// How long a call may take, in ms.
    #[must_use]
    pub fn call_timeout(&self) -> u64 {
        400 + self.travel * 20
    }

    /// How many servers there are.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.shards_of_servers().len()
    }

    /// How many primaries share the slots of a cluster; 1: it is none.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.replicas.len()
    }

    /// The shard of each server: the first primary and its replicas, the other primaries, and their
    /// replicas. Servers of a quorum have nothing to do with each other.
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

    /// The replicas of a shard, to begin with.
    pub(crate) fn replicas_of(&self, shard: usize) -> Vec<usize> {
        let servers = self.shards_of_servers().into_iter().enumerate();
        let of_it = servers.filter(|(_, of)| *of == shard);
        of_it.map(|(server, _)| server).skip(1).collect()
    }
}
