//! What is put to the test: anything that gives out locks, and says for how long they may be
//! believed in.

use async_trait::async_trait;
use locktopus::Fence;
use locktopus_history::{AttemptLog, FailReason, Mode, ReleaseOutcome};

use crate::failover::plan::LockGroup;

/// A way of locking.
#[async_trait]
pub(super) trait Subject: Send + Sync {
    /// Takes a lock. Dropping the future must leave nothing behind for long.
    async fn acquire(&self, wish: Wish<'_>) -> Result<Box<dyn Held>, Failure>;

    /// Ends everything in the background; returns how much was given up on.
    async fn close(&self) -> u64;
}

/// What a worker wants.
pub(super) struct Wish<'a> {
    pub(super) lock: &'a str,
    pub(super) group: &'a LockGroup,
    /// Whether the shared half of a read-write lock is wanted.
    pub(super) reads: bool,
    /// Where to note that the lock's queue has this attempt.
    pub(super) log: &'a AttemptLog,
}

/// A lock that was granted.
#[async_trait]
pub(super) trait Held: Send + Sync {
    /// Its token, if it has one, bound to lock and holder as far as the lock can do that.
    fn fence(&self) -> Option<Fence> {
        None
    }

    fn mode(&self) -> Mode {
        Mode::Exclusive
    }

    /// Until when the holder believes in it, on the clock of the history.
    fn valid_until(&self) -> u64;

    /// Why it may not be believed in any more, if that is so.
    fn ended(&self) -> Option<String>;

    /// Waits until the lock says that it is lost.
    async fn lost(&self) -> String;

    async fn release(self: Box<Self>) -> ReleaseOutcome;
}

/// Why an attempt ended without the lock.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) reason: FailReason,
    /// In words that are counted.
    pub(super) kind: String,
}
