//! The state of a lock as its backend sees it, and lists of locks.

use std::time::Duration;

use crate::contract::kind::LockKind;
use crate::contract::mode::Mode;
use crate::contract::owner::OwnerId;
use crate::contract::token::FencingToken;

/// The state of a lock as its backend sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LockState {
    /// Who holds it: at most one for exclusive kinds, several for readers and semaphores. Holders whose lease has
    /// ended are left out.
    pub holders: Vec<HolderState>,
    /// The last token handed out, if the backend keeps one for this kind.
    pub last_token: Option<FencingToken>,
    /// Who waits in the queue, in order. Those who poll or wait for a message without a place are not known.
    pub waiters: Vec<WaiterState>,
    /// How many permits a semaphore has left. `None` for other kinds, and for a semaphore that was never given
    /// any.
    pub available: Option<i64>,
}

impl LockState {
    /// The only holder, or the first one.
    #[must_use]
    pub fn holder(&self) -> Option<&HolderState> {
        self.holders.first()
    }

    /// Everybody who holds it or stands in its queue. [`Locktopus::who`](crate::Locktopus::who) says who they are.
    pub fn owners(&self) -> impl Iterator<Item = &OwnerId> {
        let holders = self.holders.iter().map(|holder| &holder.owner);
        holders.chain(self.waiters.iter().map(|waiter| &waiter.owner))
    }

    /// Where an owner stands in the queue: 0 is next.
    #[must_use]
    pub fn position(&self, owner: &OwnerId) -> Option<usize> {
        self.waiters
            .iter()
            .position(|waiter| waiter.owner == *owner)
    }
}

/// A holder as the backend sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HolderState {
    /// Its id. Show it to nobody who may not release the lock.
    pub owner: OwnerId,
    /// How it holds.
    pub mode: Mode,
    /// How many times it is held, or how many permits. Always 1 for native holders of a lock, which count
    /// re-entry in the process.
    pub holds: u64,
    /// What is left of the lease; `None` if it never expires.
    pub remaining: Option<Duration>,
    /// For how long it has held it, at least, by the backend's clock; `None` if the backend does not know. Tasks that pass a
    /// lock on inside one process are one holder.
    pub held_for: Option<Duration>,
}

impl HolderState {
    /// A holder.
    #[must_use]
    pub fn new(owner: OwnerId, mode: Mode, holds: u64, remaining: Option<Duration>) -> Self {
        Self {
            owner,
            mode,
            holds,
            remaining,
            held_for: None,
        }
    }

    /// Adds for how long it has held it at least.
    #[must_use]
    pub fn held_for(mut self, time: Option<Duration>) -> Self {
        self.held_for = time;
        self
    }
}

/// Somebody in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaiterState {
    /// Its id.
    pub owner: OwnerId,
    /// What it wants.
    pub mode: Mode,
    /// How many permits it wants; 1 for locks.
    pub permits: u32,
    /// How long its place is kept if nothing more is heard of it. `None` if unknown (a waiter of another library).
    pub remaining: Option<Duration>,
}

impl WaiterState {
    /// A waiter.
    #[must_use]
    pub fn new(owner: OwnerId, mode: Mode, permits: u32, remaining: Option<Duration>) -> Self {
        Self {
            owner,
            mode,
            permits,
            remaining,
        }
    }
}

/// What a forced release found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Eviction {
    /// Who held the lock and does not any more.
    pub evicted: Vec<OwnerId>,
    /// Tokens up to this one are fenced: every later grant has a greater one. `None` if the kind has none.
    pub fence: Option<FencingToken>,
}

impl Eviction {
    /// What a forced release found.
    #[must_use]
    pub fn new(evicted: Vec<OwnerId>, fence: Option<FencingToken>) -> Self {
        Self { evicted, fence }
    }
}

/// One page of a list of locks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LockPage {
    /// The locks found. A lock may come twice; one that is taken or released meanwhile may or may not come.
    pub locks: Vec<FoundLock>,
    /// Where to go on, unless this was the last page.
    pub next: Option<ScanCursor>,
}

impl LockPage {
    /// A page.
    #[must_use]
    pub fn new(locks: Vec<FoundLock>, next: Option<ScanCursor>) -> Self {
        Self { locks, next }
    }
}

/// A lock that is held, found by its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundLock {
    /// The lock's name, namespace included.
    pub name: String,
    /// What its bytes look like. Kinds that share a layout cannot be told apart.
    pub kind: LockKind,
}

impl FoundLock {
    /// A lock that was found.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: LockKind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }
}

/// Where a list of locks goes on. Opaque to all but the backend that made it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScanCursor(pub String);
