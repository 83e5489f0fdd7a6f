//! What is measured: anything that can take and give back a lock.

use async_trait::async_trait;

use crate::shared::locking::Kind;

/// A way of locking.
#[async_trait]
pub(crate) trait Subject: Send + Sync + 'static {
    /// Takes a lock, waiting as long as it takes.
    async fn acquire(&self, kind: Kind, lock: &str) -> Result<Box<dyn Held>, &'static str>;

    /// Gives back what it keeps of locks that were released.
    async fn close(&self) {}
}

/// A held lock.
#[async_trait]
pub(crate) trait Held: Send + Sync {
    /// Its fencing token, if it has one.
    fn token(&self) -> Option<u64> {
        None
    }

    /// Gives it back.
    async fn release(self: Box<Self>) -> Result<(), &'static str>;
}
