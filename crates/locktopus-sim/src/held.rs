//! What a task holds: guards of any kind, in one type.

use std::time::Duration;

use locktopus_core::{FencingToken, LockError, LockGuard, MultiGuard, WriteGuard};

/// A guard.
#[derive(Debug)]
pub(crate) enum Held {
    One(LockGuard),
    Writing(WriteGuard),
    Several(MultiGuard),
}

impl From<LockGuard> for Held {
    fn from(guard: LockGuard) -> Self {
        Self::One(guard)
    }
}

impl From<WriteGuard> for Held {
    fn from(guard: WriteGuard) -> Self {
        Self::Writing(guard)
    }
}

impl Held {
    /// May it still be believed in?
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::One(guard) => guard.ensure_valid().is_ok(),
            Self::Writing(guard) => guard.ensure_valid().is_ok(),
            Self::Several(guard) => guard.ensure_valid().is_ok(),
        }
    }

    /// The token of the lock with this name.
    pub(crate) fn token(&self, name: &str) -> Option<u64> {
        let token = match self {
            Self::One(guard) => guard.token(),
            Self::Writing(guard) => guard.token(),
            Self::Several(guard) => {
                let mut members = guard.members();
                members
                    .find(|(member, _)| member.name.as_str() == name)
                    .and_then(|(_, lease)| lease.token())
            }
        };
        token.map(FencingToken::get)
    }

    /// Makes it last longer, where that can be done.
    pub(crate) async fn extend(&self, lease: Duration) -> Result<(), LockError> {
        match self {
            Self::One(guard) => guard.extend(lease).await.map(drop),
            Self::Writing(guard) => guard.extend(lease).await.map(drop),
            Self::Several(_) => Ok(()),
        }
    }

    pub(crate) async fn release(self) -> Result<(), String> {
        match self {
            Self::One(guard) => guard.release().await.map_err(|error| error.to_string()),
            Self::Writing(guard) => guard.release().await.map_err(|error| error.to_string()),
            Self::Several(guard) => guard.release().await.map_err(|error| error.to_string()),
        }
    }
}
