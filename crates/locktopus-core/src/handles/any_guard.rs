//! The guard that a request turns into.

use std::sync::Arc;

use crate::engine::holding::services::Services;
use crate::handles::guard::LockGuard;
use crate::handles::owner_handle::Owner;

/// A guard that a [`LockRequest`](crate::LockRequest) can turn into: [`LockGuard`] or
/// [`WriteGuard`](crate::WriteGuard). Cannot be implemented elsewhere.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// use locktopus::{AnyGuard, LockError, LockRequest};
/// /// For locks of every kind.
/// async fn briefly<G: AnyGuard>(request: LockRequest<G>) -> Result<G, LockError> {
///     request.wait_at_most(std::time::Duration::from_millis(50)).acquire().await
/// }
/// briefly(locks.lock("invoice:42")).await?.release().await?;
/// briefly(locks.rw_lock("prices").write()).await?.release().await?;
/// # Ok(()) }
/// ```
pub trait AnyGuard: sealed::Sealed + Sized + Send + Sync + 'static {}

impl AnyGuard for LockGuard {}

/// A lock that was just acquired, and the owner it was acquired for. A writer always has one.
#[derive(Debug)]
pub struct Acquired {
    pub(crate) guard: LockGuard,
    pub(crate) owner: Option<(Owner, Arc<Services>)>,
}

pub(crate) mod sealed {
    use super::{Acquired, LockGuard};

    pub trait Sealed {
        fn from_acquired(acquired: Acquired) -> Self;
        fn into_lock_guard(self) -> LockGuard;
    }

    impl Sealed for LockGuard {
        fn from_acquired(acquired: Acquired) -> Self {
            acquired.guard
        }

        fn into_lock_guard(self) -> LockGuard {
            self
        }
    }
}
