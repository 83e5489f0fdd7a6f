//! Requests of the core about the number of a semaphore, a rate limiter or a latch.

use std::time::Duration;

use tokio::time::Instant;

use crate::kind::LockTarget;
use crate::owner::OwnerId;

/// Reads or changes the number of permits of a semaphore or rate limiter, or the count of a latch.
/// Executing it more than once has the effect of executing it once.
///
/// ```
/// use locktopus_contract::{CounterAction, CounterOutcome, CounterRequest};
/// /// How a backend that keeps numbers may answer.
/// fn answer(number: &mut Option<i64>, request: &CounterRequest) -> CounterOutcome {
///     let changed = match request.action {
///         CounterAction::Initialise(count) if number.is_none() => {
///             *number = i64::try_from(count).ok();
///             true
///         }
///         _ => false,
///     };
///     CounterOutcome { value: *number, changed }
/// }
/// ```
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct CounterRequest {
    /// Which semaphore, rate limiter or latch.
    pub target: LockTarget,
    /// Identifies this operation, so that the backend recognises a repetition. Ignored by
    /// [`CounterAction::Read`].
    pub operation: OwnerId,
    /// What to do.
    pub action: CounterAction,
    /// When the caller stops waiting for the answer.
    pub deadline: Instant,
}

/// The operation on the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each match needs a review")]
pub enum CounterAction {
    /// Changes nothing.
    Read,
    /// Semaphores and latches: sets the number unless one is set. If a semaphore lost its number,
    /// the permits of its current holders do not count as free.
    Initialise(u64),
    /// Semaphores: sets the total of free and held permits. The free number changes by the
    /// difference, and may stay below zero until holders return permits.
    Resize(u64),
    /// Semaphores: adds to the free number, or subtracts from it if negative. If no number is set,
    /// this becomes the total.
    Add(i64),
    /// Semaphores: takes all free permits.
    Drain,
    /// Rate limiters: sets the number of permits, and the time after which a permit returns.
    /// Permits that were taken earlier return when they would have, but no later than one new
    /// period from now.
    Rate {
        /// The number of permits.
        permits: u64,
        /// The period. Whole milliseconds.
        per: Duration,
        /// Change nothing if a number is already set.
        keep: bool,
    },
    /// Latches: counts down by one. At zero, all waiters go on.
    CountDown,
    /// Forgets the number and the holders of permits. Their holds are gone, and giving them back
    /// changes nothing. Waiters of a latch stay, for a new count.
    Delete,
}

/// The result of an operation on the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[expect(clippy::exhaustive_structs, reason = "it is complete")]
pub struct CounterOutcome {
    /// The number afterwards. For [`CounterAction::Drain`], how many permits were taken. `None` if
    /// no number is set.
    pub value: Option<i64>,
    /// Whether this operation changed anything, now or when it first ran.
    pub changed: bool,
}
