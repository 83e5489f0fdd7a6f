//! Read-write locks: many readers or one writer.

mod downgrade;
mod read_as_writer;
mod write_guard;

use std::sync::Arc;

pub use downgrade::DowngradeError;
use locktopus_contract::{Eviction, LockKind, LockState};
pub(crate) use read_as_writer::read_as_writer;
pub use write_guard::WriteGuard;

use crate::engine::error::LockError;
use crate::engine::holding::services::Services;
use crate::handles::lock_request::{LockRequest, RequestName};

/// A lock that many may hold for reading, or one for writing. Made by
/// [`Locktopus::rw_lock`](crate::Locktopus::rw_lock). On Redis it is Redisson's `RReadWriteLock`.
///
/// * **Order.** Readers and writers are served in order of arrival. A reader that arrives while a
///   writer waits does not overtake it, so writers are not starved. Readers next to each other in
///   the queue enter together.
/// * **Re-entry** is by [owner](crate::Owner): a reader may read again, a writer may write again,
///   and a writer may also read, all at once. The halves may be released in any order.
/// * **Downgrade.** [`WriteGuard::downgrade`] turns writing into reading with no writer in between,
///   and lets in other readers that wait.
/// * **No upgrade.** A reader that asks to write would wait for itself. If one owner asks for both,
///   the request fails with [`LockError::UpgradeRefused`]. Without an owner, or its
///   [scope](crate::Owner::scope), Locktopus cannot tell, and the request waits.
///
/// Writers have fencing tokens, readers have none.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use locktopus_core::Locktopus;
/// use locktopus_memory::MemoryBackend;
/// let locks = Locktopus::builder(MemoryBackend::new()).build()?;
/// let prices = locks.rw_lock("prices");
/// let one = prices.read().acquire().await?;
/// let other = prices.read().acquire().await?;
/// assert!(prices.write().try_acquire().await?.is_none());
/// one.release().await?;
/// other.release().await?;
///
/// let writing = prices.write().acquire().await?;
/// let reading = writing.downgrade().await?;
/// prices.read().acquire().await?.release().await?;
/// reading.release().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a read-write lock does nothing until one half of it is acquired"]
pub struct RwLock {
    services: Arc<Services>,
    name: RequestName,
}

impl RwLock {
    pub(crate) fn new(services: Arc<Services>, name: RequestName) -> Self {
        Self { services, name }
    }

    /// The shared half.
    pub fn read(&self) -> LockRequest {
        LockRequest::new(
            Arc::clone(&self.services),
            self.name.clone(),
            LockKind::Read,
        )
    }

    /// The exclusive half.
    pub fn write(&self) -> LockRequest<WriteGuard> {
        LockRequest::new(
            Arc::clone(&self.services),
            self.name.clone(),
            LockKind::Write,
        )
    }

    /// Reads the state of both halves. See [`LockRequest::inspect`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::Mode;
    /// let prices = locks.rw_lock("prices");
    /// let _reading = prices.read().acquire().await?;
    /// let state = prices.inspect().await?;
    /// assert_eq!(state.holders[0].mode, Mode::Read);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Name`] and [`LockError::Backend`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; reads only.
    pub async fn inspect(&self) -> Result<LockState, LockError> {
        self.write().inspect().await
    }

    /// Takes both halves away from all their holders. See [`LockRequest::force_release`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let prices = locks.rw_lock("prices");
    /// let (one, other) = (prices.read().acquire().await?, prices.read().acquire().await?);
    /// let eviction = prices.force_release("readers hang since 3 am").await?;
    /// assert_eq!(eviction.evicted.len(), 2);
    /// assert!(one.ensure_valid().is_err() && other.ensure_valid().is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Name`] and [`LockError::Backend`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe, as [`LockRequest::force_release`].
    pub async fn force_release(&self, reason: impl Into<String>) -> Result<Eviction, LockError> {
        self.write().force_release(reason).await
    }
}
