//! How far a lock may be passed on inside a process before others get their turn.

use std::time::Duration;

use crate::contract::option_error::OptionError;

/// Bound for `turns`: what one grant may reserve of the tokens.
const MOST_TURNS: u32 = 10_000;

/// How far tasks of one process may pass a lock to each other before it goes back to the backend, where waiters of
/// other processes may be ahead.
///
/// Whatever ends first counts: the time, then the number of turns, then the validity of the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CohortSettings {
    /// How many acquisitions one lease of the backend serves at most, each with a fencing token of its own. Default
    /// 64, and at most 8 for a grant that nobody else in the process waited for, unless it is
    /// [kept](crate::LockRequest::lease_cache); with 1 a lock is never passed on inside the process, and every waiter
    /// asks the backend itself.
    pub turns: u32,
    /// For how long a lease is passed on, counted from its grant. Default 20 ms. A waiter of another process waits for at
    /// most this long plus one hold.
    pub budget: Duration,
}

impl Default for CohortSettings {
    fn default() -> Self {
        Self {
            turns: 64,
            budget: Duration::from_millis(20),
        }
    }
}

impl CohortSettings {
    pub(crate) fn check(self) -> Result<Self, OptionError> {
        if (1..=MOST_TURNS).contains(&self.turns) {
            return Ok(self);
        }
        let rule = format!("must be between 1 and {MOST_TURNS}");
        Err(OptionError::new("cohort.turns", self.turns, rule))
    }
}
