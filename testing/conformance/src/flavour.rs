//! The flavours of locks that cases are run on.

use std::sync::Arc;

use locktopus_core::{LockKind, LockRequest, Locktopus, Mode, MutexProfile, OwnerId};

/// A kind of lock with its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Flavour {
    /// The default lock, reentrant by owner handle.
    Lock,
    /// A mutex with token and wake-ups.
    Mutex,
    /// A mutex of one key: no token, no wake-up, no queue.
    SingleKey,
    /// A lock in strict order of arrival.
    Fair,
    /// A read-write lock. What is about one exclusive holder is tried on its write lock.
    ReadWrite,
    /// A semaphore. What is about one exclusive holder is tried on one of a single permit.
    Semaphore,
    /// A semaphore whose permits have ids.
    Permits,
    /// So many permits in a period.
    RateLimiter,
    /// A count-down latch.
    Latch,
}

use Flavour::{Fair, Latch, Lock, Mutex, Permits, RateLimiter, ReadWrite, Semaphore, SingleKey};

impl Flavour {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Lock,
        Mutex,
        SingleKey,
        Fair,
        ReadWrite,
        Semaphore,
        Permits,
        RateLimiter,
        Latch,
    ];
    /// Those that can be held.
    pub const HELD: &'static [Self] =
        &[Lock, Mutex, SingleKey, Fair, ReadWrite, Semaphore, Permits];
    /// Those that somebody can have.
    pub const TAKEN: &'static [Self] = Self::ALL.split_last().expect("latches are last").1;
    /// Those with at most one holder.
    pub const EXCLUSIVE: &'static [Self] = &[Lock, Mutex, SingleKey, Fair, ReadWrite];
    /// Those of which several can be taken together everywhere.
    pub const GROUPED: &'static [Self] = &[Lock, Mutex];
    /// Those with one queue for whatever kind the name is in use as, where nobody has a turn of his
    /// own.
    pub const ONE_QUEUE: &'static [Self] = &[Lock, Mutex, ReadWrite];
    /// Those with a queue.
    pub const QUEUED: &'static [Self] = &[Lock, Mutex, Fair, ReadWrite, Semaphore, Permits];
    /// Those whose holders can ask to be told that others want them.
    pub const KEPT: &'static [Self] = &[Lock, Mutex];
    /// Those that a release can leave held.
    pub const LINGERING: &'static [Self] = &[Lock, Mutex, SingleKey, Fair];
    /// Those of them with a queue.
    pub const LINGERING_QUEUED: &'static [Self] = &[Lock, Mutex, Fair];
    /// Those whose grants carry fencing tokens.
    pub const WITH_TOKENS: &'static [Self] = &[Lock, Mutex, Fair, ReadWrite];
    /// Those whose holders share permits.
    pub const COUNTED: &'static [Self] = &[Semaphore, Permits];
    /// Those that give out permits, which holders give back or which come back by themselves.
    pub const PERMITS: &'static [Self] = &[Semaphore, Permits, RateLimiter];
    /// Those whose waiters stand in line, for a hold or for permits that come back by themselves.
    pub const IN_LINE: &'static [Self] = &[
        Lock,
        Mutex,
        Fair,
        ReadWrite,
        Semaphore,
        Permits,
        RateLimiter,
    ];

    /// The word used in the names of cases and in tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SingleKey => "single_key",
            _ => self.kind().family(),
        }
    }

    /// What the contract calls it; of a read-write lock the write lock.
    #[must_use]
    pub fn kind(self) -> LockKind {
        match self {
            Self::Lock => LockKind::Reentrant,
            Self::Mutex => LockKind::Mutex(Arc::default()),
            Self::SingleKey => LockKind::Mutex(Arc::new(MutexProfile::single_key())),
            Self::Fair => LockKind::Fair,
            Self::ReadWrite => LockKind::Write,
            Self::Semaphore => LockKind::Semaphore,
            Self::Permits => LockKind::Permits,
            Self::RateLimiter => LockKind::RateLimiter,
            Self::Latch => LockKind::Latch,
        }
    }

    /// Whether waiters are told of releases.
    #[must_use]
    pub fn announces(self) -> bool {
        self.kind().announces()
    }

    /// Whether grants carry fencing tokens.
    #[must_use]
    pub fn has_tokens(self) -> bool {
        self.kind().has_tokens()
    }

    /// Whether it must be given permits before any can be had.
    #[must_use]
    pub fn is_counted(self) -> bool {
        self.kind().mode() == Mode::Permits
    }

    /// A fresh owner id in the form this flavour stores.
    #[must_use]
    pub fn owner(self) -> OwnerId {
        self.kind().new_owner()
    }

    /// The request that a user would make: for one permit of a semaphore, to read a read-write
    /// lock.
    pub fn request(self, locks: &Locktopus, name: &str) -> LockRequest {
        match self {
            Self::ReadWrite => locks.rw_lock(name).read(),
            _ => locks.of_kind(name, self.kind()),
        }
    }
}
