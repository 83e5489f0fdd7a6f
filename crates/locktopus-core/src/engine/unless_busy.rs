//! `unless_busy`: turns the error that the lock is busy into `None`.

use crate::engine::error::LockError;

/// Turns the error that the lock is busy into `Ok(None)`, which
/// [`try_acquire`](crate::LockRequest::try_acquire) and [`try_run`](crate::LockRequest::try_run)
/// also return.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # use locktopus_core::Locktopus;
/// # use locktopus_memory::MemoryBackend;
/// use locktopus_core::UnlessBusy as _;
/// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
/// # let elsewhere = locks.lock("nightly").acquire().await?;
/// let soon = locks.lock("nightly").wait_at_most(Duration::from_millis(20));
/// let Some(done) = soon.run(|_| async { "done" }).await.unless_busy()? else {
///     return Ok(()); // another instance is at it
/// };
/// # unreachable!("{done}");
/// # }
/// ```
pub trait UnlessBusy: sealed::Sealed {
    /// The value on success.
    type Output;

    /// `None` if the error [is that the lock is busy](LockError::is_busy).
    ///
    /// # Errors
    ///
    /// Every other error.
    fn unless_busy(self) -> Result<Option<Self::Output>, LockError>;
}

impl<T> UnlessBusy for Result<T, LockError> {
    type Output = T;

    fn unless_busy(self) -> Result<Option<T>, LockError> {
        match self {
            Ok(output) => Ok(Some(output)),
            Err(error) if error.is_busy() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

mod sealed {
    use super::LockError;

    pub trait Sealed {}

    impl<T> Sealed for Result<T, LockError> {}
}
