//! The error of a failed downgrade.

use std::fmt;

use super::WriteGuard;
use crate::engine::error::LockError;

/// A [downgrade](WriteGuard::downgrade) that did not happen.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// use locktopus::{DowngradeError, LockError};
/// let writing = locks.rw_lock("prices").write().acquire().await?;
/// locks.rw_lock("prices").force_release("example").await?;
/// let error: DowngradeError = writing.downgrade().await.unwrap_err();
/// assert!(matches!(LockError::from(error), LockError::Lost { .. }));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct DowngradeError {
    guard: Option<Box<WriteGuard>>,
    source: LockError,
}

impl DowngradeError {
    pub(super) fn new(guard: WriteGuard, source: LockError) -> Self {
        Self {
            guard: Some(Box::new(guard)),
            source,
        }
    }

    pub(super) fn released(source: LockError) -> Self {
        Self {
            guard: None,
            source,
        }
    }

    /// The write guard, to continue writing or to try again. `None` if the lock turned out to be
    /// lost.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let writing = locks.rw_lock("prices").write().acquire().await?;
    /// match writing.downgrade().await {
    ///     Ok(reading) => reading.release().await?,
    ///     Err(error) => if let Some(writing) = error.into_guard() {
    ///         writing.release().await?; // no other writer came in between
    ///     },
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn into_guard(self) -> Option<WriteGuard> {
        self.guard.map(|guard| *guard)
    }
}

impl fmt::Display for DowngradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.guard {
            Some(_) => "the write lock was not downgraded; its guard is still there",
            None => "the write lock was lost before it was downgraded",
        })
    }
}

impl std::error::Error for DowngradeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl From<DowngradeError> for LockError {
    /// Keeps the cause. The guard is dropped, which releases the lock in the background.
    fn from(error: DowngradeError) -> Self {
        error.source
    }
}
