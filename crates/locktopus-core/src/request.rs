//! What the core asks of a backend, and what a backend answers.

use std::time::Duration;

use tokio::time::Instant;

use crate::kind::LockTarget;
use crate::owner::OwnerId;
use crate::token::FencingToken;

/// One attempt to take a lock. May be executed more than once with the effect of once.
#[derive(Debug, Clone)]
pub struct AcquireAttempt {
    /// Which lock.
    pub target: LockTarget,
    /// Who wants it. The same for every repetition of one acquisition.
    pub owner: OwnerId,
    /// How long the backend keeps the lock after it executed the attempt. Whole milliseconds.
    pub lease: Duration,
    /// When the caller stops waiting for the answer.
    pub deadline: Instant,
}

/// What became of an attempt. That somebody else holds the lock is an answer, not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum AttemptOutcome {
    /// The owner holds the lock for the lease, counted from some moment after the attempt was sent.
    Granted {
        /// The fencing token of this grant; the same when an attempt is repeated. `None` if this kind of
        /// lock or this backend has none.
        token: Option<FencingToken>,
    },
    /// Another owner holds it.
    Held {
        /// What is left of that owner's lease. `None` if it has no expiry.
        remaining: Option<Duration>,
    },
}

/// Gives a lock back, or makes sure that an attempt left nothing behind.
#[derive(Debug, Clone)]
pub struct ReleaseRequest {
    /// Which lock.
    pub target: LockTarget,
    /// Whose hold ends.
    pub owner: OwnerId,
    /// When the caller stops waiting for the answer.
    pub deadline: Instant,
}

/// What a release found. Either way the owner holds nothing afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum ReleaseOutcome {
    /// The owner held the lock and now it is free.
    Released,
    /// The owner did not hold it: lease run out, taken over, or released before.
    NotHeld,
}

/// Pushes the expiry of one lock out.
#[derive(Debug, Clone)]
pub struct ExtendRequest {
    /// Which lock.
    pub target: LockTarget,
    /// Who claims to hold it.
    pub owner: OwnerId,
    /// How long the lock must last from the moment of execution. Whole milliseconds. What lasts longer already
    /// is not shortened.
    pub lease: Duration,
}

/// What an extension found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum ExtendOutcome {
    /// The owner still holds the lock; it expires one lease after execution, or when it would have before if
    /// that is later.
    Extended,
    /// The lock is gone: expired, deleted, evicted, or the server lost it.
    Missing,
    /// Somebody else holds the lock.
    TakenOver,
}

/// The state of a lock as its backend sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockState {
    /// The current holder, if there is one.
    pub holder: Option<HolderState>,
    /// The last token handed out, if the backend keeps one for this kind.
    pub last_token: Option<FencingToken>,
}

/// A holder as the backend sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderState {
    /// Its id. Show it to nobody who may not release the lock.
    pub owner: OwnerId,
    /// How many times it is held. Always 1 for native holders, which count re-entry in the process.
    pub holds: u64,
    /// What is left of the lease; `None` if it never expires.
    pub remaining: Option<Duration>,
}
