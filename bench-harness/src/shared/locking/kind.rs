//! Kinds of locks that can be compared.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Reentrant, Redisson's `RLock` layout.
    Lock,
    /// Plain string.
    Mutex,
    /// One key and nothing else, as another library lays it out (`mutex_as`): no token, no wake-ups.
    PlainMutex,
    /// Redisson's `RFairLock`.
    FairLock,
    /// Redisson's `RSpinLock`.
    SpinLock,
    /// The exclusive half of Redisson's `RReadWriteLock`.
    WriteLock,
    /// Its shared half.
    ReadLock,
    /// Both halves, each worker one of them.
    RwLock,
    /// Redisson's `RSemaphore`, with a single permit, so that it excludes as a lock does.
    Semaphore,
    /// Redisson's `RPermitExpirableSemaphore`, with a single permit.
    Permits,
}

impl Kind {
    /// The name used in reports and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Mutex => "mutex",
            Self::PlainMutex => "plain-mutex",
            Self::FairLock => "fair-lock",
            Self::SpinLock => "spin-lock",
            Self::WriteLock => "write-lock",
            Self::ReadLock => "read-lock",
            Self::RwLock => "rw-lock",
            Self::Semaphore => "semaphore",
            Self::Permits => "permits",
        }
    }
}
