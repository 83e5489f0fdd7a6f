//! Work that is dropped when its lease ends.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use crate::engine::error::LockError;
use crate::handles::lease::Lease;

impl Lease {
    /// Does `work` for as long as the lease is valid. When the lease ends, the work is dropped at
    /// its current await point.
    ///
    /// The clock is checked before each step of the work, so a process that was paused for longer
    /// than its lease takes no further step.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("report").acquire().await?;
    /// let lease = guard.lease();
    /// let total = lease.while_held(async { 40 + 2 }).await?;
    /// guard.release().await?;
    /// assert_eq!(total, 42);
    /// assert!(lease.while_held(async { "late" }).await.is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lease ended before the work was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work at its current await point. The lock is not affected.
    pub async fn while_held<F: Future>(&self, work: F) -> Result<F::Output, LockError> {
        let mut lost = pin!(self.lost());
        let mut work = pin!(work);
        poll_fn(|context| {
            // Polled only to be woken: the clock decides whether the lease is over.
            let _ = lost.as_mut().poll(context);
            if let Err(error) = self.ensure_valid() {
                return Poll::Ready(Err(error));
            }
            work.as_mut().poll(context).map(Ok)
        })
        .await
    }
}
