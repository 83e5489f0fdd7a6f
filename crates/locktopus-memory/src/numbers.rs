//! The number of a semaphore, a rate limiter or a latch.

use locktopus_contract::{
    AcquireAttempt, BackendError, CounterAction, CounterOutcome, Mode, OwnerId,
};

use tokio::time::Instant;

use crate::BACKEND_NAME;
use crate::table::LockEntry;

/// How many operations on one number are remembered, to recognise a repetition.
const MAX_OPERATIONS: usize = 128;

/// Whether this change may let a waiter go. Even a smaller total may: it leaves free permits to
/// those behind a waiter that now wants too many.
pub(super) fn may_free(action: CounterAction, outcome: CounterOutcome) -> bool {
    match action {
        CounterAction::Delete => false,
        CounterAction::Resize(_) | CounterAction::Rate { .. } => true,
        _ => outcome.changed,
    }
}

impl LockEntry {
    fn held(&self) -> i64 {
        self.holders.iter().map(|h| i64::from(h.permits)).sum()
    }

    /// Refuses an attempt for more permits than the total, which would wait in vain.
    pub(super) fn check_total(&self, attempt: &AcquireAttempt) -> Result<(), BackendError> {
        if self.has_enough(attempt) {
            return Ok(());
        }
        let total = self.total().map(|total| u64::try_from(total).unwrap_or(0));
        let (target, asked) = (&attempt.target, attempt.permits);
        Err(BackendError::too_few_permits(
            BACKEND_NAME,
            target,
            asked,
            total,
        ))
    }

    /// Whether the total covers an attempt's permits, free or not.
    pub(super) fn has_enough(&self, attempt: &AcquireAttempt) -> bool {
        attempt.target.kind().mode() != Mode::Permits
            || self
                .total()
                .is_some_and(|total| i64::from(attempt.permits) <= total)
    }

    /// All permits: free, held and drained. `None` if the number was never set.
    fn total(&self) -> Option<i64> {
        let free = self.number?;
        Some(free.saturating_add(self.held() + self.drained))
    }

    /// Changes the number, once for each operation.
    pub(super) fn count(&mut self, operation: &OwnerId, action: CounterAction) -> CounterOutcome {
        let done = self.operations.iter().find(|(id, _)| id == operation);
        // A read is not an operation, even if its id is known.
        if let Some((_, outcome)) = done.filter(|_| action != CounterAction::Read) {
            return *outcome;
        }
        let held = self.held();
        let before = self.number;
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let mut answer = None;
        // If the number was lost, holders keep their permits. Those are not free now, and come back
        // later.
        match action {
            CounterAction::Read => {}
            CounterAction::Initialise(_) | CounterAction::Rate { keep: true, .. }
                if before.is_some() => {}
            CounterAction::Rate { permits, per, .. } => {
                self.number = Some(signed(permits).saturating_sub(held));
                self.period = Some(per);
                let latest = Instant::now() + per;
                for taken in &mut self.holders {
                    taken.expires = taken.expires.min(latest);
                }
            }
            CounterAction::Initialise(total) | CounterAction::Resize(total) => {
                self.number = Some(signed(total).saturating_sub(held));
                self.drained = 0;
            }
            CounterAction::Add(more) => {
                self.number = Some(before.unwrap_or(-held).saturating_add(more));
                // Drained permits come back first.
                let left = self.drained - more.clamp(0, self.drained);
                self.drained = if before.is_some() { left } else { 0 };
            }
            CounterAction::Drain => {
                let free = before.unwrap_or(0).max(0);
                self.number = before.map(|value| value.saturating_sub(free));
                answer = Some(free);
                self.drained += free;
            }
            CounterAction::CountDown => {
                self.number = before.map(|count| count - 1).filter(|count| *count > 0);
            }
            CounterAction::Delete => {
                (self.number, self.period) = (None, None);
                self.holders.clear();
            }
        }
        let outcome = CounterOutcome {
            value: answer.or(self.number).or(match action {
                CounterAction::CountDown => Some(0),
                _ => None,
            }),
            changed: self.number != before,
        };
        if action != CounterAction::Read {
            self.operations.push_back((operation.clone(), outcome));
            if self.operations.len() > MAX_OPERATIONS {
                self.operations.pop_front();
            }
        }
        outcome
    }
}
