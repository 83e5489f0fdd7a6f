//! The public backend: one store and its clients.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use locktopus_contract::{BackendError, BackendErrorKind, BackendInfo, LockTarget, lock};
use tokio::time::Instant;

use crate::instances::InstanceRecords;
use crate::table::{Table, key};
use crate::tokens::Tokens;
use crate::{BACKEND_NAME, error};

/// Keeps locks in this process. Behaves like the Redis backends, so you can test code without a
/// server. Leases run on tokio's clock, so tests may pause it.
///
/// Calls never wait, so a task that keeps taking a free lock could monopolise its thread. It
/// therefore yields about every hundredth time, and other tasks get their turn.
///
/// Clones are the same client of the same locks. [`another_client`](Self::another_client) makes a
/// client that you can close on its own. Dropping the last client forgets the locks.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use locktopus_core::Locktopus;
/// use locktopus_memory::MemoryBackend;
///
/// let backend = MemoryBackend::new();
/// let here = Locktopus::builder(backend.clone()).build()?;
/// let elsewhere = Locktopus::builder(backend.another_client()).build()?;
/// let guard = here.lock("invoice:42").acquire().await?;
/// assert!(elsewhere.lock("invoice:42").try_acquire().await?.is_none());
/// assert_eq!(backend.population(), (1, 0)); // one lock, no waiter
///
/// backend.clear(); // like a server that lost its data
/// assert!(elsewhere.lock("invoice:42").try_acquire().await?.is_some());
/// # drop(guard);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct MemoryBackend {
    pub(super) table: Arc<Mutex<Table>>,
    pub(super) closed: Arc<AtomicBool>,
    pub(super) info: Arc<BackendInfo>,
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryBackend {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        let (place, timeout) = ("memory (this process)", Duration::from_millis(100));
        // The source of its tokens stays a clock. It counts, but a new store starts at the time of
        // day, so a count that ran ahead of it would be repeated after a restart.
        let info = BackendInfo {
            supports_queue: true,
            supports_recall: true,
            longest_linger: Duration::MAX,
            ..BackendInfo::new(BACKEND_NAME, place, timeout)
        };
        Self {
            table: Arc::default(),
            closed: Arc::default(),
            info: Arc::new(info),
        }
    }

    /// A separate client of the same locks, like another process: closing one leaves the other
    /// open. Waiters of all clients share one queue.
    #[must_use]
    pub fn another_client(&self) -> Self {
        Self {
            table: Arc::clone(&self.table),
            closed: Arc::default(),
            info: Arc::clone(&self.info),
        }
    }

    /// The number of locks and waiters right now, without expired ones.
    #[must_use]
    pub fn population(&self) -> (usize, usize) {
        let table = lock(&self.table);
        let now = Instant::now();
        let (mut locks, mut waiters) = (0, 0);
        for entry in table.entries.values() {
            locks += entry.holders.iter().filter(|h| h.expires > now).count();
            waiters += entry.queue.iter().filter(|p| p.until > now).count();
        }
        let listeners: usize = table.listeners.values().map(|group| group.len()).sum();
        (locks, waiters + listeners)
    }

    /// Forgets every lock, like a server that lost its data.
    pub fn clear(&self) {
        let mut table = lock(&self.table);
        table.entries.clear();
        table.tokens = Tokens::default();
        table.instances = InstanceRecords::default();
    }

    /// Forgets one lock, as if an operator had deleted it. True if it was there.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use locktopus_contract::{LockKind, LockName, LockTarget};
    /// use locktopus_core::Locktopus;
    /// use locktopus_memory::MemoryBackend;
    ///
    /// let backend = MemoryBackend::new();
    /// let locks = Locktopus::builder(backend.clone()).build()?;
    /// let _guard = locks.lock("invoice:42").acquire().await?;
    /// assert!(
    ///     backend.forget(&LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant))
    /// );
    /// # Ok(()) }
    /// ```
    pub fn forget(&self, target: &LockTarget) -> bool {
        lock(&self.table).entries.remove(&key(target)).is_some()
    }

    pub(super) fn open(&self) -> Result<MutexGuard<'_, Table>, BackendError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(error(BackendErrorKind::Closed, "the backend was closed"));
        }
        Ok(lock(&self.table))
    }
}
