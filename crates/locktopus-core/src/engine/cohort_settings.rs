//! How long a process may pass a lock on before others get their turn.

use std::time::Duration;

use locktopus_contract::OptionError;

/// The upper limit of `turns`: the most tokens that one grant may reserve.
const MOST_TURNS: u32 = 10_000;
/// The most time of the budget reserved for giving a lease back. Waiters of other processes get the
/// lock only after that.
const MOST_GIVING_BACK: Duration = Duration::from_millis(1);

/// How long tasks of one process may pass a lock to each other before it goes back to the backend,
/// where waiters of other processes may be ahead.
///
/// The first limit reached counts: the time, the number of turns, or the validity of the lease.
///
/// ```
/// # use std::time::Duration;
/// use locktopus::CohortSettings;
/// let defaults = CohortSettings::default();
/// assert_eq!((defaults.turns, defaults.budget), (64, Duration::from_millis(20)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct CohortSettings {
    /// The most acquisitions that one lease of the backend serves, each with its own fencing token.
    /// Default 64. At most 8 if no other task of the process waited at the grant, unless other
    /// tasks of the process used up the previous lease or the lease is
    /// [kept](crate::LockRequest::lease_cache). With 1 the process never passes a lock on, and
    /// every waiter asks the backend itself.
    pub turns: u32,
    /// How long a lease is passed on, counted from its grant. Default 20 ms. A waiter of another
    /// process waits at most this long plus one hold. That includes the time to give the lease back
    /// to a server nearby, so the last turn starts a twentieth of the budget before its end, or a
    /// millisecond if that is less.
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
    /// How long after the grant a turn may still start.
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
