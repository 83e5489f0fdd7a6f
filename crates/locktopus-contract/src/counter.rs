//! What the core asks of a backend about the number inside a semaphore, a rate limiter or a latch.

use std::time::Duration;

use tokio::time::Instant;

use crate::kind::LockTarget;
use crate::owner::OwnerId;

/// Reads or changes the number of permits of a semaphore or a rate limiter, or the count of a
/// latch. May be executed more than once with the effect of once.
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
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct CounterRequest {
    /// Which semaphore or latch.
    pub target: LockTarget,
    /// Names this operation, so that a repetition is recognised. Ignored by
    /// [`CounterAction::Read`].
    pub operation: OwnerId,
    /// What to do.
    pub action: CounterAction,
    /// When the caller stops waiting for the answer.
    pub deadline: Instant,
}

/// What to do with the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever gets it must look at each case"
)]
pub enum CounterAction {
    /// Nothing.
    Read,
    /// Semaphores and latches: set it unless it is there already. What a semaphore's holders have,
    /// should its number have vanished, is not free.
    Initialise(u64),
    /// Semaphores: set the total, which is what is free and what is held together. What is free
    /// changes by the difference and may fall below zero until holders come back.
    Resize(u64),
    /// Semaphores: add to what is free; negative takes away. If there is no number, the total is
    /// what is added.
    Add(i64),
    /// Semaphores: take everything that is free.
    Drain,
    /// Rate limiters: set the number of permits, and after how long a permit returns. Permits that
    /// were taken before return when they would have, but no later than one new period from now.
    Rate {
        /// How many permits.
        permits: u64,
        /// The period. Whole milliseconds.
        per: Duration,
        /// Change nothing if there is a number already.
        keep: bool,
    },
    /// Latches: one less; at zero all waiters go.
    CountDown,
    /// Forget it, and who holds permits: their holds are gone, and giving them back changes
    /// nothing. Waiters of a latch stay, as for a new count.
    Delete,
}

/// What became of the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[expect(
    clippy::exhaustive_structs,
    reason = "another case or field would make another type of it"
)]
pub struct CounterOutcome {
    /// The number afterwards; for [`CounterAction::Drain`] how many were taken. `None` if there is
    /// none.
    pub value: Option<i64>,
    /// Whether this operation changed anything, now or at its first execution.
    pub changed: bool,
}
