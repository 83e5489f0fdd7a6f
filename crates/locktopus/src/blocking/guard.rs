//! The blocking guard.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{Lease, LockError, LostCause};

use super::error::BlockingError;
use super::runtime::Background;

/// A held lock of any kind. It dereferences to its [lease](Lease), which has the token, the
/// validity and `lost_token`.
///
/// **Dropping it releases the lock and waits for the answer**, at most for the backend's call
/// timeout; a release without an answer by then continues in the background. Inside a tokio
/// runtime, and at the end of a thread, a drop does not wait. It never panics. Only
/// [`release`](Self::release) tells you whether you held the lock to the end.
///
/// The work of a blocked thread cannot be cancelled when the lock is lost: call
/// [`ensure_valid`](Lease::ensure_valid) right before each side effect.
#[derive(Debug)]
#[must_use = "if unused the lock is released again immediately"]
#[clippy::has_significant_drop]
pub struct LockGuard {
    /// Present until it is released.
    guard: Option<locktopus_core::LockGuard>,
    lease: Lease,
    background: Arc<Background>,
}

impl LockGuard {
    pub(super) fn new(guard: locktopus_core::LockGuard, background: &Arc<Background>) -> Self {
        Self {
            lease: guard.lease(),
            guard: Some(guard),
            background: Arc::clone(background),
        }
    }

    /// Releases the lock and waits for the answer. See [`crate::LockGuard::release`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let guard = locks.lock("invoice:42").acquire()?;
    /// guard.release()?; // an error if it was lost before
    /// assert!(locks.lock("invoice:42").try_acquire()?.is_some());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`] with [`LockError::Lost`] if the lock had been lost before.
    /// [`BlockingError::InsideRuntime`] inside a runtime; the lock is then released in the
    /// background.
    pub fn release(mut self) -> Result<(), BlockingError> {
        self.give_back()
    }

    /// Makes the lease last at least `lease` from now. See [`crate::LockGuard::extend`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let guard = locks.lock("export").fixed_lease(Duration::from_secs(1)).acquire()?;
    /// guard.extend(Duration::from_secs(60))?;
    /// assert!(guard.remaining() > Duration::from_secs(30));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn extend(&self, lease: Duration) -> Result<(), BlockingError> {
        if let Some(guard) = &self.guard {
            self.background.wait(guard.extend(lease))??;
        }
        Ok(())
    }

    /// Blocks until the lock is lost and returns the cause; `None` if it is still held after
    /// `wait`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let guard = locks.lock("import").acquire()?;
    /// assert_eq!(guard.lost_within(Duration::from_millis(10))?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BlockingError::InsideRuntime`].
    pub fn lost_within(&self, wait: Duration) -> Result<Option<LostCause>, BlockingError> {
        let lost = async { tokio::time::timeout(wait, self.lease.lost()).await.ok() };
        self.background.wait(lost)
    }

    fn give_back(&mut self) -> Result<(), BlockingError> {
        match self.guard.take() {
            Some(guard) => Ok(self.background.wait(guard.release())??),
            None => Ok(()),
        }
    }
}

impl Deref for LockGuard {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        match self.give_back() {
            // Dropping the future releases it in the background.
            Ok(()) | Err(BlockingError::InsideRuntime) => {}
            Err(BlockingError::Lock(LockError::Lost { target, cause })) => {
                tracing::warn!(lock = %target, %cause, "a lock was lost before its guard was dropped");
            }
            Err(error) => tracing::warn!(%error, "releasing a dropped guard failed"),
        }
    }
}
