//! Our side of an object of Redisson: requests of every kind through one interface.

use std::time::Duration;

use locktopus::{LockError, LockGuard, Locktopus, WaitStrategy, WriteGuard};
use tokio::task::JoinHandle;

use crate::common::HANDED_LEASE;

/// Kinds with one holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ours {
    Lock,
    Fair,
    Write,
}

pub(crate) enum Held {
    Lock(LockGuard),
    Write(WriteGuard),
}

impl Ours {
    /// Acquires at once, if it is free.
    pub(crate) async fn try_take(self, locks: &Locktopus, name: &str) -> Option<Held> {
        match self {
            Self::Lock => locks
                .lock(name)
                .try_acquire()
                .await
                .unwrap()
                .map(Held::Lock),
            Self::Fair => {
                let request = locks.fair_lock(name);
                request.try_acquire().await.unwrap().map(Held::Lock)
            }
            Self::Write => {
                let request = locks.rw_lock(name).write();
                request.try_acquire().await.unwrap().map(Held::Write)
            }
        }
    }

    pub(crate) async fn take(
        self,
        locks: &Locktopus,
        name: &str,
        lease: Duration,
        strategy: WaitStrategy,
    ) -> Held {
        let request = match self {
            Self::Lock => locks.lock(name),
            Self::Fair => locks.fair_lock(name),
            Self::Write => {
                let request = locks.rw_lock(name).write();
                let request = request.fixed_lease(lease).strategy(strategy);
                return Held::Write(request.acquire().await.unwrap());
            }
        };
        let request = request.fixed_lease(lease).strategy(strategy);
        Held::Lock(request.acquire().await.unwrap())
    }

    /// A waiter that acquires the lock.
    pub(crate) fn waits(
        self,
        locks: &Locktopus,
        name: &str,
        strategy: WaitStrategy,
    ) -> JoinHandle<Held> {
        let (locks, name) = (locks.clone(), name.to_owned());
        tokio::spawn(async move { self.take(&locks, &name, HANDED_LEASE, strategy).await })
    }
}

impl Held {
    pub(crate) async fn release(self) -> Result<(), LockError> {
        match self {
            Self::Lock(guard) => guard.release().await,
            Self::Write(guard) => guard.release().await,
        }
    }

    pub(crate) fn ensure_valid(&self) -> Result<(), LockError> {
        match self {
            Self::Lock(guard) => guard.ensure_valid(),
            Self::Write(guard) => guard.ensure_valid(),
        }
    }

    /// Waits for the end of the lease, as its holder counts it.
    pub(crate) async fn ended(&self) {
        match self {
            Self::Lock(guard) => guard.lost().await,
            Self::Write(guard) => guard.lost().await,
        };
    }
}
