//! A lock that was acquired, and is held while the others are acquired.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::set::Member;
use crate::engine::error::LockError;
use crate::engine::holding::lease::BackendLease;
use crate::handles::guard::LockGuard;
use crate::handles::lease::Lease;

/// A fixed lease may lose a tenth of its validity while the other locks are acquired.
const MIN_FRESHNESS: (u32, u32) = (9, 10);

pub(super) struct AcquiredMember {
    pub(super) backend: Arc<str>,
    pub(super) guard: LockGuard,
    pub(super) lease: Lease,
    hold_at_least: Duration,
}

impl AcquiredMember {
    pub(super) fn new(member: &Member, guard: LockGuard) -> Self {
        Self {
            backend: Arc::clone(&member.backend),
            lease: guard.lease(),
            hold_at_least: member.hold_at_least(),
            guard,
        }
    }

    fn held(&self) -> &BackendLease {
        &self.guard.turn().lease
    }

    /// Starts the minimum hold time. Called once all locks are acquired.
    pub(super) fn hold_at_least(&self) {
        self.held().hold_at_least(self.hold_at_least);
    }

    /// When its lease must be extended while it waits for the other locks; `None` if the watchdog
    /// renews it.
    pub(super) fn due(&self) -> Option<Instant> {
        let held = self.held();
        (!held.renewed).then(|| held.valid_until().before(held.length() / 2).timer())
    }

    pub(super) async fn extend(&self) -> Result<Instant, LockError> {
        self.guard.extend(self.held().length()).await
    }

    /// Makes a fixed lease begin about when the last lock was acquired.
    pub(super) async fn refresh(&self) -> Result<(), LockError> {
        let held = self.held();
        let margin = &self.guard.services().settings.margin;
        let full = margin.validity(held.length());
        if !held.renewed && self.guard.remaining() < full * MIN_FRESHNESS.0 / MIN_FRESHNESS.1 {
            self.extend().await?;
        }
        self.guard.ensure_valid()
    }
}
