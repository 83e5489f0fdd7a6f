//! What can go wrong when a thread blocks.

use std::io;

use locktopus_core::{BackendError, LockError};

use crate::connect_error::ConnectError;

/// Why a blocking call did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlockingError {
    /// The call was made inside a tokio runtime, whose thread it would have blocked. Nothing was sent.
    #[error(
        "a blocking call of locktopus was made inside a tokio runtime, whose thread it would block; nothing was done. Use the \
         asynchronous locktopus::Locktopus there"
    )]
    InsideRuntime,

    /// The background thread could not be started.
    #[error("the background thread of the blocking API could not be started")]
    Thread(#[source] io::Error),

    /// It could not be connected.
    #[error(transparent)]
    Connect(Box<ConnectError>),

    /// What the lock has to say: held by others, lost, or the backend failed.
    #[error(transparent)]
    Lock(#[from] LockError),

    /// The backend failed at something that is not about one lock.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl From<ConnectError> for BlockingError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(Box::new(error))
    }
}
