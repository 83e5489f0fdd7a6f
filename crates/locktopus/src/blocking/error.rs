//! Errors of blocking calls.

use std::io;

use locktopus_core::{BackendError, LockError};

use crate::connect_error::ConnectError;

/// The reason why a blocking call failed.
///
/// ```
/// use std::time::Duration;
/// use locktopus::LockError;
/// use locktopus::blocking::{self, BlockingError};
/// let locks = blocking::connect("memory:")?;
/// let guard = locks.lock("invoice:42").acquire()?;
/// match locks.lock("invoice:42").wait_at_most(Duration::from_millis(20)).acquire() {
///     Err(BlockingError::Lock(LockError::WaitTimeout { .. })) => println!("busy"),
///     Err(other) => return Err(other.into()),
///     Ok(second) => second.release()?,
/// }
/// guard.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlockingError {
    /// The call was made inside a tokio runtime and would have blocked its thread. Nothing was
    /// sent.
    #[error(
        "a blocking call of locktopus was made inside a tokio runtime, whose thread it would block; nothing was done. Use the \
         asynchronous locktopus::Locktopus there"
    )]
    InsideRuntime,

    /// The background thread could not be started.
    #[error("the background thread of the blocking API could not be started")]
    Thread(#[source] io::Error),

    /// Connecting failed.
    #[error(transparent)]
    Connect(Box<ConnectError>),

    /// The error of a lock: held by others, lost, or the backend failed.
    #[error(transparent)]
    Lock(#[from] LockError),

    /// The backend failed at a call that is not about one lock.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl From<ConnectError> for BlockingError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(Box::new(error))
    }
}
