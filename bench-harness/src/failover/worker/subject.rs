//! What is under test: anything that grants locks, and says how long a holder may believe in them.

use async_trait::async_trait;
use locktopus::Fence;
use locktopus_history::{AttemptLog, FailReason, Mode, ReleaseOutcome};

use crate::failover::plan::LockGroup;

/// A way of locking.
#[async_trait]
pub(super) trait Subject: Send + Sync {
    /// Takes a lock. Dropping the future must leave nothing behind for long.
    async fn acquire(&self, wish: Wish<'_>) -> Result<Box<dyn Held>, Failure>;

    /// Closes the background work; returns how many releases and tasks it abandoned.
    async fn close(&self) -> u64;
}

/// A worker's request.
pub(super) struct Wish<'a> {
    pub(super) lock: &'a str,
    pub(super) group: &'a LockGroup,
    /// Whether it wants the shared half of a read-write lock.
    pub(super) reads: bool,
    /// Where to record that the attempt is in the lock's queue.
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

    /// Why the holder may not believe in it any more, if so.
    fn ended(&self) -> Option<String>;

    /// Waits until the lock reports its loss.
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
