//! Random schedules of simulated clients on modelled servers.
//!
//! A seed decides everything: how many processes there are and what they like to do, how fast their clocks are, what
//! the network does to each message, who stops, who dies, and when. One schedule is a few seconds of virtual time.
//! While it runs a judge looks at every script and at everything that a process believes; see [`Invariant`].

mod actor;
mod ask;
mod calls;
mod client;
mod judge;
mod layout;
mod mutants;
mod net;
mod node;
mod patch;
mod rules;
mod runner;
mod setup;
mod strangers;
mod trace;
mod wire;
mod world;

pub use calls::{Call, Calls, LAPSES};
pub use judge::{Invariant, Violation};
pub use mutants::{Mutant, mutants};
pub use patch::Patch;
pub use rules::Flaw;
pub use runner::{Failure, Model, Report, Summary};

/// Which kind of lock a schedule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The reentrant lock.
    Lock,
    /// The mutex of the default profile.
    Mutex,
    /// The fair lock.
    Fair,
    /// The read-write lock; each acquisition is of one half.
    ReadWrite,
    /// The semaphore without ids; each acquisition is of some permits.
    Semaphore,
    /// The semaphore whose permits have ids.
    Permits,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Lock,
        Self::Mutex,
        Self::Fair,
        Self::ReadWrite,
        Self::Semaphore,
        Self::Permits,
    ];

    /// The word that says of which kind a number is.
    fn word(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Mutex => "mutex",
            Self::Fair => "fair_lock",
            Self::ReadWrite => "rw_lock",
            Self::Semaphore => "semaphore",
            Self::Permits => "permit_semaphore",
        }
    }

    /// What the number of an acquisition becomes in its owner's id: even for a lock, odd for a fair lock.
    fn number(self, serial: u64) -> u64 {
        serial * 2 + u64::from(self == Self::Fair)
    }

    /// Whether it is counted in permits.
    fn is_counted(self) -> bool {
        matches!(self, Self::Semaphore | Self::Permits)
    }
}

/// What schedules are about.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// The kind of lock.
    pub kind: Kind,
    /// Primaries die and replicas that lag behind take over. Then locks may be lost, so that only what is promised
    /// even then is judged: tokens, and everything that one server does by itself.
    pub failovers: bool,
    /// Others take the name for another kind of lock, and operators lose the number of a semaphore.
    pub strangers: bool,
    /// What clients do wrong.
    pub flaw: Option<Flaw>,
    /// How scripts are changed.
    pub patch: Option<Patch>,
}

impl Config {
    /// Schedules without failovers, of clients and scripts as they are.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            failovers: false,
            strangers: false,
            flaw: None,
            patch: None,
        }
    }

    /// With failovers.
    #[must_use]
    pub fn with_failovers(self) -> Self {
        Self {
            failovers: true,
            ..self
        }
    }

    /// With others who take the name for another kind.
    #[must_use]
    pub fn with_strangers(self) -> Self {
        Self {
            strangers: true,
            ..self
        }
    }

    /// With clients that are wrong in some way.
    #[must_use]
    pub fn with_flaw(self, flaw: Flaw) -> Self {
        Self {
            flaw: Some(flaw),
            ..self
        }
    }

    /// With a changed script.
    #[must_use]
    pub fn with_patch(self, patch: Patch) -> Self {
        Self {
            patch: Some(patch),
            ..self
        }
    }
}

/// How much happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Things that happened.
    pub events: u64,
    /// Scripts that ran.
    pub scripts: u64,
    /// Times that a process began to believe that it holds the lock.
    pub grants: u64,
    /// Those of them without a round trip, by a pushed grant.
    pub pushed: u64,
    /// Grants by a script of another process, pushed.
    pub handed: u64,
    /// Times that a process took up a lease that it had kept.
    pub again: u64,
    /// Times that somebody asked for the name, which was in use, as another kind.
    pub strange: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.scripts += other.scripts;
        self.grants += other.grants;
        self.pushed += other.pushed;
        self.handed += other.handed;
        self.again += other.again;
        self.strange += other.strange;
    }
}
