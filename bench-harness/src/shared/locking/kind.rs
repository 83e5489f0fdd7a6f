//! Kinds of locks that can be compared.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::shared::names::names;

/// Kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Reentrant, Redisson's `RLock` layout.
    Lock,
    /// Plain string.
    Mutex,
    /// One key and nothing else, in another library's format (`mutex_as`): no token, no wake-ups.
    PlainMutex,
    /// Redisson's `RFairLock`.
    FairLock,
    /// Redisson's `RSpinLock`.
    SpinLock,
    /// The exclusive half of Redisson's `RReadWriteLock`.
    WriteLock,
    /// Its shared half.
    ReadLock,
    /// Both halves; each worker takes one of them.
    RwLock,
    /// Redisson's `RSemaphore` with a single permit, so it excludes like a lock.
    Semaphore,
    /// Redisson's `RPermitExpirableSemaphore`, with a single permit.
    Permits,
}

names! {
    Kind: Lock = "lock", Mutex = "mutex", PlainMutex = "plain-mutex", FairLock = "fair-lock", SpinLock = "spin-lock",
        WriteLock = "write-lock", ReadLock = "read-lock", RwLock = "rw-lock", Semaphore = "semaphore", Permits = "permits";
}
