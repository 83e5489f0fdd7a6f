//! Why a request was not answered.

use locktopus_core::LockError;

/// Why a service under a lock did not answer. Each case calls for a different reaction, and has a
/// [status](Self::status) of its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockedError<E> {
    /// Another owner holds the lock, so the same request is already in progress elsewhere. The
    /// service was not called.
    #[error("the lock of this request is held by another one")]
    Busy,
    /// The lock was lost while the service worked, and the service was stopped at its current await
    /// point. Its earlier work stays done.
    #[error("the request was stopped because its lock was lost")]
    Lost(#[source] LockError),
    /// The lock could not be requested. The service was not called.
    #[error("the locks cannot be reached")]
    Unavailable(#[source] LockError),
    /// The lock can never be taken like this, for example because of a bad name. The service was
    /// not called.
    #[error("the lock of this request cannot be taken")]
    Refused(#[source] LockError),
    /// The service's own error.
    #[error(transparent)]
    Inner(E),
}

impl<E> LockedError<E> {
    /// The HTTP status for it: 409 (conflict) if busy, 423 (locked) if lost, 503 if unavailable,
    /// and 500 for the others.
    ///
    /// The service never saw busy and unavailable requests, so clients may send them again.
    ///
    /// ```
    /// use locktopus_tower::LockedError;
    /// assert_eq!(LockedError::<()>::Busy.status(), 409);
    /// ```
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Busy => 409,
            Self::Lost(_) => 423,
            Self::Unavailable(_) => 503,
            Self::Refused(_) | Self::Inner(_) => 500,
        }
    }

    /// The meaning of the lock's error for a request.
    pub(crate) fn of(error: LockError) -> Self {
        match error {
            busy if busy.is_busy() => Self::Busy,
            LockError::Lost { .. } => Self::Lost(error),
            LockError::WaitTimeout { .. } | LockError::ShutDown | LockError::Cancelled { .. } => {
                Self::Unavailable(error)
            }
            LockError::Backend { ref source, .. } if source.is_transient() => {
                Self::Unavailable(error)
            }
            _ => Self::Refused(error),
        }
    }
}
