//! The rules that cases refer to.

use std::error::Error;
use std::fmt;

use locktopus_core::internal::with_causes;
#[cfg(test)]
use locktopus_core::{BackendError, BackendErrorKind, Executed};

use crate::lasting::{self, TooLate};

/// A rule of the contract, or of the documented behaviour on top of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// One owner at a time.
    Exclusion,
    /// A lease lasts as long as requested, and then ends.
    Lease,
    /// Running a request twice has the effect of running it once.
    Idempotence,
    /// Only the holder's id can change or end a hold.
    Ownership,
    /// Tokens grow strictly over the grants of a name.
    Tokens,
    /// `Err` says whether the request ran, and which kind of error it is.
    Errors,
    /// Nothing takes much longer than its deadline.
    Deadlines,
    /// Any future may be dropped at any time.
    CancelSafety,
    /// A release wakes a waiter.
    Wakes,
    /// First come, first served. Waiters do not overtake, and dead ones do not block the queue.
    Queue,
    /// A release grants the lock to the first waiters that can have it, and notifies them.
    HandOff,
    /// A holder that asked for it is notified when others want its lock.
    Recall,
    /// Several locks are taken together or not at all.
    Group,
    /// Readers share, writers do not.
    ReadWrite,
    /// Permits are neither lost nor invented.
    Permits,
    /// The number inside a semaphore or a latch changes once for each operation.
    Counter,
    /// An eviction ends every hold, and a list shows the locks that exist.
    Admin,
    /// A name means one lock, or the backend refuses it.
    Names,
    /// A name is in use as one kind at a time.
    Kinds,
    /// [`inspect`](locktopus_core::LockBackend::inspect) reports the real state.
    Inspection,
    /// What [`Locktopus`](locktopus_core::Locktopus) promises its users.
    Api,
}

impl Rule {
    /// Fails the case. If [leases of the case](crate::Ctx::short) may have expired because the
    /// machine is slow, the suite runs it again with longer ones instead.
    ///
    /// # Panics
    ///
    /// Always, with a message that names the rule.
    #[track_caller]
    pub fn broken(self, what: impl fmt::Display) -> ! {
        let message = format!("rule {self:?} is broken: {what}");
        if lasting::is_too_late() {
            // Skips the panic hook: the case may still pass.
            std::panic::resume_unwind(Box::new(TooLate(message)));
        }
        panic!("{message}")
    }

    /// Fails the case unless `good`.
    ///
    /// # Panics
    ///
    /// If `good` is false.
    #[track_caller]
    pub fn check(self, good: bool, what: impl fmt::Display) {
        if !good {
            self.broken(what)
        }
    }

    /// The value of an operation that a healthy store must accept.
    ///
    /// # Panics
    ///
    /// If it did not.
    #[track_caller]
    pub fn ok<T, E: Error>(self, result: Result<T, E>, what: impl fmt::Display) -> T {
        match result {
            Ok(value) => value,
            Err(error) => self.broken(format_args!("{what} failed: {}", with_causes(&error))),
        }
    }
}

#[cfg(test)]
#[test]
#[should_panic(
    expected = "rule Api is broken: acquiring failed: test: no answer: the cable is cut"
)]
fn a_broken_rule_names_the_causes() {
    let (kind, executed) = (BackendErrorKind::Timeout, Executed::No);
    let error = BackendError::new("test", kind, executed, "no answer");
    let error = error.with_source(std::io::Error::other("the cable is cut"));
    Rule::Api.ok(Err::<(), _>(error), "acquiring");
}
