//! Locks with a minimum hold time: an earlier release leaves the lock held without an owner.

use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::internal::OwnerIds;
use locktopus_contract::{Linger, LockKind};

use crate::engine::holding::lease::BackendLease;

impl BackendLease {
    /// Makes an earlier release leave the lock held, without an owner, until this time is over.
    /// Called when a guard goes to its user. If the lock is given back before that, because another
    /// of several locks is unavailable, nothing stays held.
    pub(crate) fn hold_at_least(&self, time: Duration) {
        if !time.is_zero() {
            let mut term = self.term();
            term.linger_until = term.linger_until.max(Some(clock::now() + time));
        }
    }

    /// Until when the lock stays held, even if released earlier.
    pub(crate) fn linger_until(&self) -> Option<BootInstant> {
        self.term().linger_until
    }

    /// Whether the lock stays held if it is released now.
    pub(crate) fn lingers(&self) -> bool {
        let until = self.linger_until();
        until.is_some_and(|until| until > clock::now())
    }
}

/// The linger part of a release sent now. Each release has its own placeholder owner, because a
/// repeated release no longer finds the real one.
pub(super) fn left(kind: &LockKind, until: Option<BootInstant>, ids: &OwnerIds) -> Option<Linger> {
    let left = until?.since(clock::now());
    let millis = left.as_nanos().div_ceil(1_000_000);
    let time = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
    (!time.is_zero()).then(|| Linger {
        heir: kind.owner_from(ids).into_placeholder(),
        time,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::test_backend::granted;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn what_is_held_at_least_so_long_stays_held_so_long_and_not_longer() {
        let lease = Arc::new(granted(SECOND * 30));
        lease.hold_at_least(Duration::ZERO);
        assert!(lease.linger_until().is_none() && !lease.lingers());
        lease.hold_at_least(SECOND);
        let end = clock::now() + SECOND;
        lease.hold_at_least(SECOND / 2);
        assert_eq!(lease.linger_until(), Some(end), "the longest counts");
        let instant = Duration::from_nanos(1);
        tokio::time::advance(SECOND - instant).await;
        assert!(lease.lingers());
        tokio::time::advance(instant).await;
        assert!(!lease.lingers());
    }
}
