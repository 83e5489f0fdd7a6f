//! What has fallen due.

use std::sync::{Arc, Weak};

use tokio::time::Instant;

use super::wheel::Entry;
use crate::cohort::Cohort;
use crate::error::LostCause;
use crate::lease::LeaseState;

/// What one look at the wheel found.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) now: Instant,
    pub(super) renew: Vec<Watched>,
    pub(super) over: Vec<Entry>,
    pub(super) patrols: Vec<Weak<Cohort>>,
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
    pub(super) fn new(now: Instant) -> Self {
        Self {
            now,
            renew: Vec::new(),
            over: Vec::new(),
            patrols: Vec::new(),
            next: Next::Never,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.renew.is_empty() && self.over.is_empty() && self.patrols.is_empty()
    }
}

impl Entry {
    pub(super) fn report_expiry(self) {
        if let (Some(failures), false) = (self.failures, self.lease.lost().is_some())
            && self
                .lease
                .hold_until()
                .is_none_or(|end| end > self.lease.valid_until())
        {
            let detail = failures.detail;
            self.lease.end(LostCause::Unreachable { detail });
        }
        self.lease.expire();
        tracing::warn!(lock = %self.lease.target, cause = ?self.lease.lost(), "lock lost");
    }
}
