//! The flavours of locks that every case is run on.

use std::sync::Arc;

use locktopus_core::{LockKind, LockRequest, Locktopus, MutexProfile, OwnerId};

/// A kind of lock with its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Flavour {
    /// The default lock, reentrant by owner handle.
    Lock,
    /// A mutex with token and wake-ups.
    Mutex,
    /// A mutex of one key: no token, no wake-up.
    SingleKey,
}

impl Flavour {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Lock, Self::Mutex, Self::SingleKey];

    /// The word used in the names of cases.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Mutex => "mutex",
            Self::SingleKey => "single_key",
        }
    }

    /// What the contract calls it.
    #[must_use]
    pub fn kind(self) -> LockKind {
        match self {
            Self::Lock => LockKind::Reentrant,
            Self::Mutex => LockKind::Mutex(Arc::default()),
            Self::SingleKey => LockKind::Mutex(Arc::new(MutexProfile::single_key())),
        }
    }

    /// Whether grants carry fencing tokens, and whether releases wake waiters.
    #[must_use]
    pub fn has_side_keys(self) -> bool {
        self != Self::SingleKey
    }

    /// A fresh owner id in the form this flavour stores.
    #[must_use]
    pub fn owner(self) -> OwnerId {
        self.kind().new_owner()
    }

    /// The request that a user would make.
    pub fn request(self, locks: &Locktopus, name: &str) -> LockRequest {
        match self {
            Self::Lock => locks.lock(name),
            Self::Mutex => locks.mutex(name),
            Self::SingleKey => locks.mutex_as(name, MutexProfile::single_key()),
        }
    }
}
