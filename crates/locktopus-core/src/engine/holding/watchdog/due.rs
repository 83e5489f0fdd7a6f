//! The entries found due.

use std::sync::{Arc, Weak};

use locktopus_contract::clock::BootInstant;
use tokio::time::Instant;

use super::ScheduledCheck;
use crate::engine::error::LostCause;
use crate::engine::holding::lease::BackendLease;

/// The findings of one check.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) now: BootInstant,
    pub(super) renew: Vec<Arc<BackendLease>>,
    /// Leases whose deadline has passed. The watchdog must end them.
    pub(super) over: Vec<(Arc<BackendLease>, LostCause)>,
    /// Leases whose maximum hold time another task found to be over.
    pub(super) held_too_long: Vec<Arc<BackendLease>>,
    pub(super) checks: Vec<Weak<dyn ScheduledCheck>>,
    pub(super) next: NextCheck,
}

/// When to check again, unless an entry is added that is due earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextCheck {
    /// At once: there was too much for one check.
    AtOnce,
    /// At this instant of tokio's clock.
    At(Instant),
    Never,
}

impl Due {
    pub(super) fn new(now: BootInstant) -> Self {
        Self {
            now,
            renew: Vec::new(),
            over: Vec::new(),
            held_too_long: Vec::new(),
            checks: Vec::new(),
            next: NextCheck::Never,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        let over = self.over.is_empty() && self.held_too_long.is_empty();
        over && self.renew.is_empty() && self.checks.is_empty()
    }
}
