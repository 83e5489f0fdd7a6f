//! What has fallen due.

use std::sync::{Arc, Weak};

use locktopus_contract::clock::BootInstant;
use tokio::time::Instant;

use super::ScheduledCheck;
use crate::engine::holding::lease::{LeaseState, Over};

/// What one look at the wheel found.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) now: BootInstant,
    pub(super) renew: Vec<Watched>,
    pub(super) over: Vec<Over>,
    /// Whose maximum hold time somebody else found over.
    pub(super) held_too_long: Vec<Arc<LeaseState>>,
    pub(super) checks: Vec<Weak<dyn ScheduledCheck>>,
    pub(super) next: Next,
}

/// When to look again, unless something is put in that falls due before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// There was too much for one look.
    AtOnce,
    /// At this instant of tokio's clock.
    At(Instant),
    Never,
}

/// A lease that is due for renewal, and where it sits. The place alone does not name it: it may belong to
/// another lease by the time the answer comes.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) slot: usize,
    pub(super) lease: Arc<LeaseState>,
}

impl Due {
    pub(super) fn new(now: BootInstant) -> Self {
        Self {
            now,
            renew: Vec::new(),
            over: Vec::new(),
            held_too_long: Vec::new(),
            checks: Vec::new(),
            next: Next::Never,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        let over = self.over.is_empty() && self.held_too_long.is_empty();
        over && self.renew.is_empty() && self.checks.is_empty()
    }
}
