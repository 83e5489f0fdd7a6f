//! What is measured: anything that can take and give back a lock.

use async_trait::async_trait;

use crate::plan::Kind;

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
    /// Gives it back.
    async fn release(self: Box<Self>) -> Result<(), &'static str>;
}

/// An error with everything behind it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
