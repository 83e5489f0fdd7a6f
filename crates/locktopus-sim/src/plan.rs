//! One schedule as data: what processes do, and what is done to them and to the servers. A seed draws one; shrinking takes
//! parts away.

use locktopus_core::SafetyMode;

/// A schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Decides how long messages take, and the random numbers of processes.
    pub seed: u64,
    /// What was chosen when connecting.
    pub safety: SafetyMode,
    /// A majority of so many independent servers, if any.
    pub quorum: Option<usize>,
    /// How many replicas the primary has.
    pub replicas: usize,
    /// The least that a message takes, in ms.
    pub travel: u64,
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
    /// How it waits.
    pub wait: Wait,
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

/// How a hold ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is released.
    Release,
    /// The guard is dropped.
    Drop,
    /// It is extended half-way, and released.
    Extend,
    /// It is no hold at all: as an administrator, the task takes the lock away from whoever holds it.
    Evict,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The primary dies, and comes back later; its best replica is promoted.
    Kill,
    /// A replica is promoted once it has everything.
    Orderly,
    /// A replica is promoted, and the primary goes on for so many ms.
    Split(u64),
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
}

impl Fault {
    /// Its name in counts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Orderly => "orderly failover",
            Self::Split(_) => "split brain",
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
        }
    }

    /// After it a server may have forgotten what it acknowledged.
    #[must_use]
    pub fn forgets(self) -> bool {
        matches!(
            self,
            Self::Kill | Self::Split(_) | Self::Restart(_, _, false)
        )
    }
}

impl Plan {
    /// How many servers there are.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.quorum.unwrap_or(1 + self.replicas)
    }

    /// Whether more is promised than by one server that keeps its data.
    #[must_use]
    pub fn guards(&self) -> bool {
        self.quorum.is_some() || self.safety != SafetyMode::Plain
    }

    /// Whether nobody may be let in beside a holder, with these faults.
    #[must_use]
    pub fn promises_exclusion(&self) -> bool {
        let set = |fault: &Fault| matches!(fault, Fault::SetClock(_, by) if *by > 0);
        let any =
            |wrong: &dyn Fn(&Fault) -> bool| self.faults.iter().any(|(_, fault)| wrong(fault));
        if any(&set) {
            return false;
        }
        if self.quorum.is_some() {
            return true;
        }
        match self.safety {
            SafetyMode::Plain => !any(&|fault| fault.forgets()),
            // Of several failovers each may lose what only the others knew.
            SafetyMode::Replicated { .. } => {
                let failovers = self.faults.iter().filter(|(_, fault)| fault.forgets());
                failovers.count() <= 1
                    && !any(&|fault| matches!(fault, Fault::Split(_) | Fault::Restart(..)))
            }
            // Whoever still reaches the old primary is renewed there.
            _ => !any(&|fault| matches!(fault, Fault::Split(_))),
        }
    }

    /// Whether tokens grow in the order of the grants, and not only where one is asked for a second after another one.
    #[must_use]
    pub fn promises_order(&self) -> bool {
        let clocks = self
            .faults
            .iter()
            .any(|(_, fault)| matches!(fault, Fault::SetClock(..)));
        !clocks && self.promises_exclusion()
    }
}
