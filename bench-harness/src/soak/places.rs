//! The locks, their kinds, and who is inside.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use locktopus::{LockError, LockGuard, Locktopus, WriteGuard};

/// The longest wait of one acquisition: longer than the server is ever down.
const PATIENCE: Duration = Duration::from_secs(60);

/// Kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Lock,
    Mutex,
    FairLock,
    Writer,
    Reader,
    Semaphore,
    Permits,
}

impl Kind {
    /// The kinds that exclude all other holders.
    pub(super) const EXCLUSIVE: [Self; 4] = [Self::Lock, Self::Mutex, Self::FairLock, Self::Writer];
    pub(super) const ALL: [Self; 7] = [
        Self::Lock,
        Self::Mutex,
        Self::FairLock,
        Self::Writer,
        Self::Reader,
        Self::Semaphore,
        Self::Permits,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Mutex => "mutex",
            Self::FairLock => "fair",
            Self::Writer => "writer",
            Self::Reader => "reader",
            Self::Semaphore => "semaphore",
            Self::Permits => "permits",
        }
    }
}

/// One lock.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) kind: Kind,
    inside: AtomicU32,
}

impl Place {
    pub(super) fn new(prefix: &str, what: &str, kind: Kind, number: usize) -> Self {
        Self {
            name: format!("{prefix}:{what}-{}-{number}", kind.word()),
            kind,
            inside: AtomicU32::new(0),
        }
    }

    /// Enters; returns whether another holder is inside who should not be.
    pub(super) fn enter(&self) -> bool {
        let others = self.inside.fetch_add(1, Ordering::SeqCst);
        others > 0 && Kind::EXCLUSIVE.contains(&self.kind)
    }

    /// Leaves, before the lock is released.
    pub(super) fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// Takes the lock.
    pub(super) async fn take(&self, locks: &Locktopus) -> Result<Guard, LockError> {
        let name = self.name.as_str();
        let request = match self.kind {
            Kind::Lock => locks.lock(name),
            Kind::Mutex => locks.mutex(name),
            Kind::FairLock => locks.fair_lock(name),
            Kind::Reader => locks.rw_lock(name).read(),
            Kind::Semaphore => locks.semaphore(name).permits(1),
            Kind::Permits => locks.permit_semaphore(name).permits(1),
            Kind::Writer => {
                let request = locks.rw_lock(name).write().wait_at_most(PATIENCE);
                return request.acquire().await.map(Guard::Writer);
            }
        };
        request
            .wait_at_most(PATIENCE)
            .acquire()
            .await
            .map(Guard::Any)
    }
}

/// The guard of a taken lock.
pub(super) enum Guard {
    Any(LockGuard),
    Writer(WriteGuard),
}

impl Guard {
    pub(super) async fn release(self) -> Result<(), LockError> {
        match self {
            Self::Any(guard) => guard.release().await,
            Self::Writer(guard) => guard.release().await,
        }
    }
}
