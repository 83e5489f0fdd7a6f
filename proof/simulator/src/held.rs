//! The guard that a task holds: one type for all kinds.

use std::time::Duration;

use locktopus_core::{
    Fence, FencingToken, LeaseTicket, LockError, LockGuard, MultiGuard, WriteGuard,
};
use locktopus_model::layout::owner_of;

/// A guard.
#[derive(Debug)]
pub(crate) enum Held {
    One(LockGuard),
    Writing(WriteGuard),
    Several(MultiGuard),
    /// The hold was lost on the way.
    Gone,
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
    /// Whether the guard is still valid.
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::One(guard) => guard.ensure_valid().is_ok(),
            Self::Writing(guard) => guard.ensure_valid().is_ok(),
            Self::Several(guard) => guard.ensure_valid().is_ok(),
            Self::Gone => false,
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
            Self::Gone => None,
        };
        token.map(FencingToken::get)
    }

    /// The owner name of this hold on the servers.
    pub(crate) fn owner(&self, name: &str) -> Option<String> {
        let owner = match self {
            Self::One(guard) => guard.owner_id(),
            Self::Writing(guard) => guard.owner_id(),
            Self::Several(guard) => {
                let mut members = guard.members();
                let (_, lease) = members.find(|(member, _)| member.name.as_str() == name)?;
                lease.owner_id()
            }
            Self::Gone => return None,
        };
        Some(owner_of(owner.expose()).to_string())
    }

    pub(crate) fn fence(&self) -> Option<Fence> {
        match self {
            Self::One(guard) => guard.fence(),
            Self::Writing(guard) => guard.fence(),
            Self::Several(_) | Self::Gone => None,
        }
    }

    /// Takes it once more, if the kind allows it.
    pub(crate) fn again(&self) -> Option<Self> {
        match self {
            Self::One(guard) => guard.reenter().ok().map(Self::One),
            Self::Writing(guard) => guard.reenter().ok().map(Self::Writing),
            Self::Several(_) | Self::Gone => None,
        }
    }

    /// Turns the hold into a ticket, if the kind allows it.
    pub(crate) fn into_ticket(self) -> Result<LeaseTicket, Self> {
        match self {
            Self::One(guard) => guard.into_ticket().map_err(Self::One),
            held => Err(held),
        }
    }

    /// Downgrades a write lock to a read lock.
    pub(crate) async fn downgrade(self) -> Result<Self, Option<Self>> {
        match self {
            Self::Writing(guard) => match guard.downgrade().await {
                Ok(reading) => Ok(Self::One(reading)),
                Err(error) => Err(error.into_guard().map(Self::Writing)),
            },
            held => Err(Some(held)),
        }
    }

    /// Extends the lease, if the kind allows it.
    pub(crate) async fn extend(&self, lease: Duration) -> Result<(), LockError> {
        match self {
            Self::One(guard) => guard.extend(lease).await.map(drop),
            Self::Writing(guard) => guard.extend(lease).await.map(drop),
            Self::Several(_) | Self::Gone => Ok(()),
        }
    }

    pub(crate) async fn release(self) -> Result<(), String> {
        match self {
            Self::One(guard) => guard.release().await.map_err(|error| error.to_string()),
            Self::Writing(guard) => guard.release().await.map_err(|error| error.to_string()),
            Self::Several(guard) => guard.release().await.map_err(|error| error.to_string()),
            Self::Gone => Ok(()),
        }
    }
}
