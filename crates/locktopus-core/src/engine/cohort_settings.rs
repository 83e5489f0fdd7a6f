//! How far a lock may be passed on inside a process before others get their turn.

use std::time::Duration;

use locktopus_contract::OptionError;

/// Bound for `turns`: what one grant may reserve of the tokens.
const MOST_TURNS: u32 = 10_000;
/// What to give a lease back takes of the budget, at most. Whoever waits elsewhere is handed the
/// lock only then.
const MOST_GIVING_BACK: Duration = Duration::from_millis(1);

/// How far tasks of one process may pass a lock to each other before it goes back to the backend,
/// where waiters of other processes may be ahead.
///
/// Whatever ends first counts: the time, then the number of turns, then the validity of the lease.
///
/// ```
/// # use std::time::Duration;
/// use locktopus::CohortSettings;
/// let defaults = CohortSettings::default();
/// assert_eq!((defaults.turns, defaults.budget), (64, Duration::from_millis(20)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct CohortSettings {
    /// How many acquisitions one lease of the backend serves at most, each with a fencing token of
    /// its own. Default 64, and at most 8 for a grant that nobody else in the process waited for,
    /// unless the lease before it was used up by others of the process, or it is
    /// [kept](crate::LockRequest::lease_cache); with 1 a lock is never passed on inside the
    /// process, and every waiter asks the backend itself.
    pub turns: u32,
    /// For how long a lease is passed on, counted from its grant. Default 20 ms. A waiter of
    /// another process waits for at most this long plus one hold. That includes the time in which
    /// the lease is given back on a server nearby, so the last turn begins a twentieth of the
    /// budget before its end, or a millisecond if that is less.
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
    /// How long after the grant a turn may still begin.
    pub(crate) fn last_turn(self) -> Duration {
        self.budget - (self.budget / 20).min(MOST_GIVING_BACK)
    }

    pub(crate) fn check(self) -> Result<Self, OptionError> {
        if (1..=MOST_TURNS).contains(&self.turns) {
            return Ok(self);
        }
        let rule = format!("must be between 1 and {MOST_TURNS}");
        Err(OptionError::new("cohort.turns", self.turns, rule))
    }
}
