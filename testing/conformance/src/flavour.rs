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
    /// A read-write lock. Cases about one exclusive holder use its write lock.
    ReadWrite,
    /// A semaphore. Cases about one exclusive holder give it a single permit.
    Semaphore,
    /// A semaphore whose permits have ids.
    Permits,
    /// N permits in each period.
    RateLimiter,
    /// A count-down latch.
    Latch,
}

use Flavour::{Fair, Latch, Lock, Mutex, Permits, RateLimiter, ReadWrite, Semaphore, SingleKey};

impl Flavour {
    /// All flavours.
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
    /// Flavours that can be held.
    pub const HELD: &'static [Self] =
        &[Lock, Mutex, SingleKey, Fair, ReadWrite, Semaphore, Permits];
    /// Flavours that can be acquired: all except latches.
    pub const TAKEN: &'static [Self] = Self::ALL.split_last().expect("latches are last").1;
    /// Flavours with at most one holder.
    pub const EXCLUSIVE: &'static [Self] = &[Lock, Mutex, SingleKey, Fair, ReadWrite];
    /// Flavours that every backend can acquire several of in one group.
    pub const GROUPED: &'static [Self] = &[Lock, Mutex];
    /// Flavours that share one queue per name with all kinds, without reserved turns.
    pub const ONE_QUEUE: &'static [Self] = &[Lock, Mutex, ReadWrite];
    /// Flavours with a queue.
    pub const QUEUED: &'static [Self] = &[Lock, Mutex, Fair, ReadWrite, Semaphore, Permits];
    /// Flavours whose holder can ask to be notified when others want the lock.
    pub const KEPT: &'static [Self] = &[Lock, Mutex];
    /// Flavours that a release can leave held.
    pub const LINGERING: &'static [Self] = &[Lock, Mutex, SingleKey, Fair];
    /// Flavours of [`LINGERING`](Self::LINGERING) that have a queue.
    pub const LINGERING_QUEUED: &'static [Self] = &[Lock, Mutex, Fair];
    /// Flavours whose grants carry fencing tokens.
    pub const WITH_TOKENS: &'static [Self] = &[Lock, Mutex, Fair, ReadWrite];
    /// Flavours whose holders share permits.
    pub const COUNTED: &'static [Self] = &[Semaphore, Permits];
    /// Flavours that give out permits. A holder returns them, or the period does.
    pub const PERMITS: &'static [Self] = &[Semaphore, Permits, RateLimiter];
    /// Flavours whose waiters queue, for a hold or for permits that a period returns.
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

    /// The kind in the contract; for a read-write lock, its write lock.
    #[must_use]
    pub fn kind(self) -> LockKind {
        match self {
            Self::Lock => LockKind::Reentrant,
            Self::Mutex => LockKind::Mutex(Arc::default()),
            Self::SingleKey => LockKind::Mutex(Arc::new(MutexProfile::single_key())),
            Self::Fair => LockKind::Fair,
            Self::ReadWrite => LockKind::Write,
            Self::Semaphore => LockKind::Semaphore,
            Self::Permits => LockKind::PermitSemaphore,
            Self::RateLimiter => LockKind::RateLimiter,
            Self::Latch => LockKind::Latch,
        }
    }

    /// Whether waiters are notified of releases.
    #[must_use]
    pub fn announces(self) -> bool {
        self.kind().announces()
    }

    /// Whether grants carry fencing tokens.
    #[must_use]
    pub fn has_tokens(self) -> bool {
        self.kind().has_tokens()
    }

    /// Whether it must be given permits before anyone can acquire one.
    #[must_use]
    pub fn is_counted(self) -> bool {
        self.kind().mode() == Mode::Permits
    }

    /// A fresh owner id in the form this flavour stores.
    #[must_use]
    pub fn owner(self) -> OwnerId {
        self.kind().new_owner()
    }

    /// A user's typical request: one permit of a semaphore, the read half of a read-write lock.
    pub fn request(self, locks: &Locktopus, name: &str) -> LockRequest {
        match self {
            Self::ReadWrite => locks.rw_lock(name).read(),
            _ => locks.of_kind(name, self.kind()),
        }
    }
}
