//! A lock that was taken, held while the others are.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::set::Member;
use crate::engine::error::LockError;
use crate::engine::holding::services::Services;
use crate::engine::holding::turn::Turn;
use crate::handles::guard::LockGuard;
use crate::handles::lease::Lease;

/// What a fixed lease may have lost of its validity while the other locks were taken: a tenth.
const FRESH: (u32, u32) = (9, 10);

/// A lock that was taken, held while the others are.
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

    /// All were taken: from now on it counts.
    pub(super) fn hold_at_least(&self) {
        self.turn.lease.hold_at_least(self.hold_at_least);
    }

    /// Until when it can wait for the other locks without being extended; `None` if the watchdog
    /// sees to it.
    pub(super) fn due(&self) -> Option<Instant> {
        let half = self.turn.lease.length() / 2;
        (!self.turn.lease.renewed).then(|| self.turn.lease.valid_until().before(half).timer())
    }

    pub(super) async fn extend(&self) -> Result<Instant, LockError> {
        self.guard.extend(self.turn.lease.length()).await
    }

    /// Makes sure that a fixed lease begins about when the last lock was taken.
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
