//! Running work under a lock.

use std::future::Future;

use super::LockRequest;
use crate::engine::error::LockError;
use crate::handles::any_guard::AnyGuard;
use crate::handles::guard::LockGuard;
use crate::handles::lease::Lease;

impl<G: AnyGuard> LockRequest<G> {
    /// Does `work` under the lock: acquires it, runs the work and releases it.
    ///
    /// The work is dropped at its current await point as soon as the lock is lost. It takes no step
    /// after its lease is over: the clock is checked before each step, so even a process that was
    /// paused for longer than its lease does not continue the work.
    ///
    /// If the work finishes and only the release finds that the lock had been lost, you still get
    /// the result, and a warning is logged. The work is done, and discarding its result would undo
    /// nothing.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// let total = locks.lock("report").run(|lease| async move {
    ///     lease.ensure_valid()?;
    ///     Ok::<_, locktopus_core::LockError>(40 + 2)
    /// }).await??;
    /// assert_eq!(total, 42);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`LockError::Lost`] if the lock was lost before the work
    /// was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work at its current await point and releases the lock in the
    /// background.
    pub async fn run<F, Fut>(self, work: F) -> Result<Fut::Output, LockError>
    where
        F: FnOnce(Lease) -> Fut,
        Fut: Future,
    {
        let guard = self.acquire().await?;
        under(guard.into_lock_guard(), work).await
    }

    /// Like [`run`](Self::run), if the lock is free right now and has no waiters. Otherwise returns
    /// `None` without starting the work. Use it for a job that another instance may be doing
    /// already.
    ///
    /// Makes one attempt, like [`try_acquire`](Self::try_acquire). To wait a little first, see
    /// [`UnlessBusy`](crate::UnlessBusy).
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// let elsewhere = locks.lock("nightly").acquire().await?;
    /// let skipped = locks.lock("nightly").try_run(|_| async { "done" }).await?;
    /// assert_eq!(skipped, None);
    ///
    /// elsewhere.release().await?;
    /// let ran = locks.lock("nightly").try_run(|_| async { "done" }).await?;
    /// assert_eq!(ran, Some("done"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire), and [`LockError::Lost`] if the lock was lost before
    /// the work was done.
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn try_run<F, Fut>(self, work: F) -> Result<Option<Fut::Output>, LockError>
    where
        F: FnOnce(Lease) -> Fut,
        Fut: Future,
    {
        match self.try_acquire().await? {
            Some(guard) => under(guard.into_lock_guard(), work).await.map(Some),
            None => Ok(None),
        }
    }
}

/// Does `work` while the guard is valid, and then releases it.
async fn under<F, Fut>(guard: LockGuard, work: F) -> Result<Fut::Output, LockError>
where
    F: FnOnce(Lease) -> Fut,
    Fut: Future,
{
    let (target, lease) = (guard.target().clone(), guard.lease());
    // Making the future may already do something.
    lease.ensure_valid()?;
    let output = lease.while_held(work(lease.clone())).await?;
    if let Err(error) = guard.release().await {
        tracing::warn!(lock = %target, %error, "the work is done, but releasing its lock failed");
    }
    Ok(output)
}
