//! What has fallen due.

use std::sync::Weak;

use tokio::time::Instant;

use super::{Entry, Watched};
use crate::cohort::Cohort;
use crate::error::LostCause;

/// What one look at the wheel found.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) now: Instant,
    pub(super) renew: Vec<Watched>,
    pub(super) over: Vec<Entry>,
    pub(super) patrols: Vec<Weak<Cohort>>,
}

impl Due {
    pub(super) fn is_empty(&self) -> bool {
        self.renew.is_empty() && self.over.is_empty() && self.patrols.is_empty()
    }
}

impl Entry {
    pub(super) fn report_expiry(self) {
        if let (Some(detail), false) = (self.detail, self.lease.lost().is_some())
            && self
                .lease
                .hold_until()
                .is_none_or(|end| end > self.lease.valid_until())
        {
            self.lease.end(LostCause::Unreachable { detail });
        }
        self.lease.expire();
        tracing::warn!(lock = %self.lease.target, cause = ?self.lease.lost(), "lock lost");
    }
}
