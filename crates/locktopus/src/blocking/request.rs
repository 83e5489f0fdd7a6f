//! Blocking requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{AnyGuard, LockState, Owner};

use super::error::BlockingError;
use super::guard::LockGuard;
use super::runtime::Background;

/// A request for a lock. [`Locktopus::lock`](super::Locktopus::lock) and its siblings make one;
/// nothing happens until you call one of the ways to acquire.
#[must_use = "a lock request does nothing until `acquire` or `try_acquire` is called"]
pub struct LockRequest<G = locktopus_core::LockGuard> {
    request: locktopus_core::LockRequest<G>,
    background: Arc<Background>,
}

impl<G: AnyGuard + Into<locktopus_core::LockGuard>> LockRequest<G> {
    pub(super) fn new(
        request: locktopus_core::LockRequest<G>,
        background: &Arc<Background>,
    ) -> Self {
        Self {
            request,
            background: Arc::clone(background),
        }
    }

    /// Sets any option of [`crate::LockRequest`], even one without a method here.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktopus::blocking;
    /// # fn main() -> Result<(), blocking::BlockingError> {
    /// # let locks = blocking::connect("memory:")?;
    /// let request = locks.lock("report").with(|request| request.max_hold(Duration::from_secs(60)));
    /// request.acquire()?.release()?;
    /// # Ok(()) }
    /// ```
    pub fn with(
        mut self,
        options: impl FnOnce(locktopus_core::LockRequest<G>) -> locktopus_core::LockRequest<G>,
    ) -> Self {
        self.request = options(self.request);
        self
    }

    /// Gives up if the lock is not free within this time. See [`crate::LockRequest::wait_at_most`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let _held = locks.lock("invoice:42").acquire()?;
    /// let second = locks.lock("invoice:42").wait_at_most(Duration::from_millis(20)).acquire();
    /// assert!(second.is_err());
    /// # Ok(()) }
    /// ```
    pub fn wait_at_most(self, wait: Duration) -> Self {
        self.with(|request| request.wait_at_most(wait))
    }

    /// Holds the lock for this long at most. See [`crate::LockRequest::fixed_lease`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let guard = locks.lock("export").fixed_lease(Duration::from_secs(10)).acquire()?;
    /// assert!(guard.remaining() <= Duration::from_secs(10));
    /// # Ok(()) }
    /// ```
    pub fn fixed_lease(self, lease: Duration) -> Self {
        self.with(|request| request.fixed_lease(lease))
    }

    /// Holds the lock by a lease of this length that the background thread renews. See
    /// [`crate::LockRequest::renewed_lease`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let guard = locks.lock("import").renewed_lease(Duration::from_secs(6)).acquire()?;
    /// assert!(guard.remaining() <= Duration::from_secs(6));
    /// # Ok(()) }
    /// ```
    pub fn renewed_lease(self, lease: Duration) -> Self {
        self.with(|request| request.renewed_lease(lease))
    }

    /// Acquires on behalf of this owner, who may enter a reentrant lock again. See
    /// [`crate::LockRequest::owner`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// use locktopus::Owner;
    /// let me = Owner::new();
    /// let outer = locks.lock("account:1").owner(&me).acquire()?;
    /// let inner = locks.lock("account:1").owner(&me).acquire()?; // at once
    /// assert_eq!(inner.token(), outer.token());
    /// # Ok(()) }
    /// ```
    pub fn owner(self, owner: &Owner) -> Self {
        self.with(|request| request.owner(owner))
    }

    /// Takes the lock; blocks until it is free.
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`] with the errors of [`crate::LockRequest::acquire`];
    /// [`BlockingError::InsideRuntime`].
    pub fn acquire(self) -> Result<LockGuard, BlockingError> {
        let guard = self.background.wait(self.request.acquire())??;
        Ok(LockGuard::new(guard.into(), &self.background))
    }

    /// Takes the lock if it is free right now; `None` otherwise.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let Some(guard) = locks.lock("nightly").try_acquire()? else {
    ///     return Ok(()); // another instance is doing it
    /// };
    /// guard.release()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    pub fn try_acquire(self) -> Result<Option<LockGuard>, BlockingError> {
        let guard = self.background.wait(self.request.try_acquire())??;
        Ok(guard.map(|guard| LockGuard::new(guard.into(), &self.background)))
    }

    /// Reads the lock's state from the backend. See [`crate::LockRequest::inspect`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let guard = locks.lock("invoice:42").acquire()?;
    /// let state = locks.lock("invoice:42").inspect()?;
    /// assert_eq!(state.holder().map(|holder| &holder.owner), Some(guard.owner_id()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn inspect(self) -> Result<LockState, BlockingError> {
        Ok(self.background.wait(self.request.inspect())??)
    }
}

impl<G> Clone for LockRequest<G> {
    fn clone(&self) -> Self {
        Self {
            request: self.request.clone(),
            background: Arc::clone(&self.background),
        }
    }
}

impl<G> fmt::Debug for LockRequest<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}
