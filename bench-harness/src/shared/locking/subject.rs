//! What is measured: anything that can take and release a lock.

use async_trait::async_trait;

use crate::shared::locking::Kind;

/// A way of locking.
#[async_trait]
pub(crate) trait Subject: Send + Sync + 'static {
    /// Takes a lock, waiting without limit.
    async fn acquire(&self, kind: Kind, lock: &str) -> Result<Box<dyn Held>, &'static str>;

    /// Gives back what it keeps of released locks.
    async fn close(&self) {}
}

/// A held lock.
#[async_trait]
pub(crate) trait Held: Send + Sync {
    /// Its fencing token, if it has one.
    fn token(&self) -> Option<u64> {
        None
    }

    /// Releases it.
    async fn release(self: Box<Self>) -> Result<(), &'static str>;
}
