//! What is measured: anything that can take and give back a lock.

use std::sync::Arc;

use async_trait::async_trait;
use locktopus::{LockError, LockGuard, Locktopus};

use super::job::Job;
use crate::plan::{Kind, Strategy};

/// A way of locking.
#[async_trait]
pub(crate) trait Subject: Send + Sync + 'static {
    /// Takes a lock, waiting as long as it takes.
    async fn acquire(&self, lock: &str) -> Result<Box<dyn Held>, &'static str>;
}

/// A held lock.
#[async_trait]
pub(crate) trait Held: Send + Sync {
    /// Gives it back.
    async fn release(self: Box<Self>) -> Result<(), &'static str>;
}

pub(super) async fn connect(job: &Job) -> Result<Arc<dyn Subject>, String> {
    match job.strategy {
        Strategy::Locktopus => {
            if !job.strategy.can(job.client, job.kind) {
                return Err(format!(
                    "Locktopus is not measured as a {}",
                    job.kind.name()
                ));
            }
            let locks = locktopus::connect(&job.url)
                .await
                .map_err(|error| chain(&error))?;
            Ok(Arc::new(Ours {
                locks,
                kind: job.kind,
            }))
        }
        #[cfg(feature = "peers")]
        Strategy::R1 => super::peers::r1(&job.url).await,
        #[cfg(feature = "peers")]
        Strategy::Rslock => super::peers::rslock(&job.url).await,
        #[cfg(not(feature = "peers"))]
        Strategy::R1 | Strategy::Rslock => {
            Err("peers need the feature \"peers\" of the harness".to_owned())
        }
        Strategy::Redisson => Err("Redisson's workers are another program".to_owned()),
    }
}

struct Ours {
    locks: Locktopus,
    kind: Kind,
}

#[async_trait]
impl Subject for Ours {
    async fn acquire(&self, lock: &str) -> Result<Box<dyn Held>, &'static str> {
        let request = match self.kind {
            Kind::Lock => self.locks.lock(lock),
            Kind::Mutex => self.locks.mutex(lock),
            Kind::FairLock | Kind::SpinLock | Kind::WriteLock => return Err("no such kind"),
        };
        match request.acquire().await {
            Ok(guard) => Ok(Box::new(guard)),
            Err(error) => Err(kind_of(&error)),
        }
    }
}

#[async_trait]
impl Held for LockGuard {
    async fn release(self: Box<Self>) -> Result<(), &'static str> {
        Self::release(*self).await.map_err(|error| kind_of(&error))
    }
}

/// The name under which an error is counted.
pub(super) fn kind_of(error: &LockError) -> &'static str {
    match error {
        LockError::Lost { .. } => "lost",
        LockError::WaitTimeout { .. } => "wait timeout",
        LockError::Backend { .. } => "backend",
        LockError::Cancelled { .. } => "cancelled",
        LockError::ShutDown => "shut down",
        _ => "other",
    }
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
