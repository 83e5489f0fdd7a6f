//! A lock that was acquired, and is held while the others are acquired.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::set::Member;
use crate::engine::error::LockError;
use crate::engine::holding::services::Services;
use crate::engine::holding::turn::Turn;
use crate::handles::guard::LockGuard;
use crate::handles::lease::Lease;

/// A fixed lease may lose a tenth of its validity while the other locks are acquired.
const FRESH: (u32, u32) = (9, 10);

pub(super) struct Taken {
    pub(super) backend: Arc<str>,
    pub(super) guard: LockGuard,
    pub(super) turn: Arc<Turn>,
    pub(super) services: Arc<Services>,
    pub(super) lease: Lease,
    hold_at_least: Duration,
}

impl Taken {
    pub(super) fn new(member: &Member, guard: LockGuard) -> Self {
        let (turn, services) = (Arc::clone(guard.turn()), Arc::clone(guard.services()));
        Self {
            backend: Arc::clone(&member.backend),
            lease: guard.lease(),
            hold_at_least: member.hold_at_least(),
            guard,
            turn,
            services,
        }
    }

    /// Starts the minimum hold time. Called once all locks are acquired.
    pub(super) fn hold_at_least(&self) {
        self.turn.lease.hold_at_least(self.hold_at_least);
    }

    /// When its lease must be extended while it waits for the other locks; `None` if the watchdog
    /// renews it.
    pub(super) fn due(&self) -> Option<Instant> {
        let half = self.turn.lease.length() / 2;
        (!self.turn.lease.renewed).then(|| self.turn.lease.valid_until().before(half).timer())
    }

    pub(super) async fn extend(&self) -> Result<Instant, LockError> {
        self.guard.extend(self.turn.lease.length()).await
    }

    /// Makes a fixed lease begin about when the last lock was acquired.
    pub(super) async fn refresh(&self) -> Result<(), LockError> {
        let full = self
            .services
            .settings
            .margin
            .validity(self.turn.lease.length());
        if !self.turn.lease.renewed && self.guard.remaining() < full * FRESH.0 / FRESH.1 {
            self.extend().await?;
        }
        self.guard.ensure_valid()
    }
}
