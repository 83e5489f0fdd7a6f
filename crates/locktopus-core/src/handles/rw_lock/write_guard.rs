//! The guard of a writer.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::{LockKind, clock};

use super::downgrade::DowngradeError;
use crate::engine::error::LockError;
use crate::engine::holding::services::Services;
use crate::handles::any_guard::{Acquired, AnyGuard, sealed};
use crate::handles::guard::LockGuard;
use crate::handles::lock_request::{LockRequest, RequestName};
use crate::handles::owner_handle::Owner;
use crate::handles::ticket::LeaseTicket;

/// A read-write lock held for writing. It does everything a [`LockGuard`] does, and more.
///
/// **Dropping it does not release the lock at once**, as with every [`LockGuard`].
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// let writing = locks.rw_lock("prices").write().acquire().await?;
/// writing.ensure_valid()?; // as of every guard
/// let again = writing.reenter()?;
/// again.release().await?;
/// writing.release().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "if unused the lock is released again immediately"]
#[clippy::has_significant_drop]
pub struct WriteGuard {
    guard: LockGuard,
    owner: Owner,
    services: Arc<Services>,
}

impl WriteGuard {
    /// Holds the lock for reading as well, at once: takes the readers' half for the same owner,
    /// with the writer's current lease, renewal and maximum hold time. You may release either guard
    /// first.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let prices = locks.rw_lock("prices");
    /// let writing = prices.write().acquire().await?;
    /// let reading = writing.read().await?;
    /// writing.release().await?; // goes on as a reader
    /// prices.read().acquire().await?.release().await?;
    /// reading.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lock was lost, or if the lease of an earlier reader ended and its
    /// guard still lives: drop that guard first. [`LockError::Backend`] if the backend failed. The
    /// write guard is not affected by either.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: if an attempt under way still takes the half, it is given back in the
    /// background.
    pub async fn read(&self) -> Result<LockGuard, LockError> {
        self.guard.ensure_valid()?;
        let reading = self.reading().acquire().await?;
        // The grant continues the writer's hold only if that had not ended before.
        self.guard.ensure_valid()?;
        Ok(reading)
    }

    /// Turns the writer into a reader: takes the readers' half, then releases the writers' half, so
    /// that no other writer comes in between. Waiting readers are let in, unless a waiting writer
    /// is ahead of them.
    ///
    /// If other guards share the writers' half, it ends with the last of them.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let prices = locks.rw_lock("prices");
    /// let reading = prices.write().acquire().await?.downgrade().await?;
    /// prices.read().acquire().await?.release().await?; // others read too
    /// assert!(prices.write().try_acquire().await?.is_none());
    /// reading.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`DowngradeError`] with the write guard, if the readers' half could not be acquired. With
    /// `?` in a function that returns [`LockError`], the guard is dropped and the lock released.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases both halves in the background.
    pub async fn downgrade(self) -> Result<LockGuard, DowngradeError> {
        let reading = match self.read().await {
            Ok(reading) => reading,
            Err(error) => return Err(DowngradeError::new(self, error)),
        };
        let target = self.guard.target().clone();
        match self.release().await {
            Ok(()) => Ok(reading),
            // It was lost before, perhaps before the readers' half was taken.
            Err(error @ LockError::Lost { .. }) => Err(DowngradeError::released(error)),
            Err(error) => {
                // Reading is safe; the release continues in the background.
                tracing::warn!(lock = %target, %error, "downgraded, but other readers may be let in late");
                Ok(reading)
            }
        }
    }

    /// See [`LockGuard::reenter`].
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lease has ended.
    pub fn reenter(&self) -> Result<Self, LockError> {
        Ok(Self {
            guard: self.guard.reenter()?,
            owner: self.owner.clone(),
            services: Arc::clone(&self.services),
        })
    }

    /// See [`LockGuard::release`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let prices = locks.rw_lock("prices");
    /// prices.write().acquire().await?.release().await?;
    /// assert!(prices.write().try_acquire().await?.is_some());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`LockGuard::release`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: if the future is dropped, the release continues in the background.
    pub async fn release(self) -> Result<(), LockError> {
        self.guard.release().await
    }

    /// See [`LockGuard::into_ticket`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let prices = locks.rw_lock("prices");
    /// let ticket = prices.write().acquire().await?.into_ticket().expect("held by this guard alone");
    /// prices.write().adopt(&ticket).await?.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Gives the guard back if the lease is lost or shared with other guards, or if the lock is
    /// also held for reading.
    pub fn into_ticket(self) -> Result<LeaseTicket, Self> {
        let Self {
            guard,
            owner,
            services,
        } = self;
        guard.into_ticket().map_err(|guard| Self {
            guard,
            owner,
            services,
        })
    }

    /// A request for the readers' half, for the same owner and with the same options.
    fn reading(&self) -> LockRequest {
        let (services, held) = (Arc::clone(&self.services), &self.guard.turn().lease);
        let name = RequestName::Stored(held.target.name().clone());
        let request = LockRequest::new(services, name, LockKind::Read).owner(&self.owner);
        let lease = held.length();
        let request = if held.renewed {
            request.renewed_lease(lease)
        } else {
            request.fixed_lease(lease)
        };
        match held.hold_until() {
            Some(end) => {
                let left = end.since(clock::now());
                request.max_hold(left.max(Duration::from_nanos(1)))
            }
            None => request,
        }
    }
}

impl Deref for WriteGuard {
    type Target = LockGuard;

    fn deref(&self) -> &LockGuard {
        &self.guard
    }
}

impl From<WriteGuard> for LockGuard {
    /// Keeps the lock, without the methods of a writer.
    fn from(guard: WriteGuard) -> Self {
        guard.guard
    }
}

impl AnyGuard for WriteGuard {}

impl sealed::Sealed for WriteGuard {
    fn from_acquired(Acquired { guard, owner }: Acquired) -> Self {
        let (owner, services) = owner.expect("a writer is taken for an owner");
        Self {
            guard,
            owner,
            services,
        }
    }

    fn into_lock_guard(self) -> LockGuard {
        self.guard
    }
}
