//! Impossible histories.

use serde::Serialize;

use crate::event::AttemptId;

use crate::clock::ClockKind;

/// A record that contradicts others. The checker leaves it out and still checks the rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Malformed {
    /// Two processes, or two lives of one, record under the same number.
    #[error("worker {worker} opened its history twice")]
    OpenedTwice {
        /// Number of the worker.
        worker: u32,
    },
    /// Recorded by another version.
    #[error("worker {worker} records in format {format}, which is not known")]
    UnknownFormat {
        /// Number of the worker.
        worker: u32,
        /// The version.
        format: u32,
    },
    /// Readings of different clocks cannot be compared.
    #[error("worker {worker} records with the clock {clock:?}, others with another")]
    ClocksDiffer {
        /// Number of the worker.
        worker: u32,
        /// Its clock.
        clock: ClockKind,
    },
    /// A worker continued after it had stopped.
    #[error("worker {worker} recorded {event} at {at} ns, after it had closed its history")]
    AfterClosed {
        /// Number of the worker.
        worker: u32,
        /// The recorded event.
        event: &'static str,
        /// When, in nanoseconds.
        at: u64,
    },
    /// Two attempts have the same number.
    #[error("{attempt} was started twice")]
    StartedTwice {
        /// The attempt.
        attempt: AttemptId,
    },
    /// An event of an attempt that never started.
    #[error("{attempt}: {event}, but it was never started")]
    NotStarted {
        /// The attempt.
        attempt: AttemptId,
        /// The event.
        event: &'static str,
    },
    /// An event that needs a grant.
    #[error("{attempt}: {event}, but it was not granted")]
    NotGranted {
        /// The attempt.
        attempt: AttemptId,
        /// The event.
        event: &'static str,
    },
    /// A second answer to an attempt.
    #[error("{attempt}: {event}, but it was answered before")]
    AnsweredBefore {
        /// The attempt.
        attempt: AttemptId,
        /// The event.
        event: &'static str,
    },
    /// A critical section was entered while already inside.
    #[error("{attempt}: a use started during another one")]
    UseDuringUse {
        /// The attempt.
        attempt: AttemptId,
    },
    /// A critical section was left without being entered.
    #[error("{attempt}: a use ended that had not started")]
    UseNotStarted {
        /// The attempt.
        attempt: AttemptId,
    },
    /// A lock was released twice.
    #[error("{attempt}: {event} a second time")]
    ReleasedTwice {
        /// The attempt.
        attempt: AttemptId,
        /// The event.
        event: &'static str,
    },
    /// A release was answered before it started.
    #[error("{attempt}: a release ended that had not started")]
    ReleaseNotStarted {
        /// The attempt.
        attempt: AttemptId,
    },
    /// A worker claims to have finished something, and has not.
    #[error("{attempt}: its worker closed the history, but {what} never ended")]
    NeverEnded {
        /// The attempt.
        attempt: AttemptId,
        /// The unfinished thing: the attempt, a use, or the release.
        what: &'static str,
    },
    /// A grant of zero permits.
    #[error("{attempt}: was granted no permit")]
    NoPermits {
        /// The attempt.
        attempt: AttemptId,
    },
    /// The same name is used as a semaphore and as a lock.
    #[error("{attempt}: the lock {lock:?} was granted both as permits and as a lock")]
    MixedModes {
        /// Name of the lock.
        lock: String,
        /// The first grant of the other mode.
        attempt: AttemptId,
    },
    /// Permits were granted without a declared total.
    #[error("the lock {lock:?} grants permits, but its rules do not say how many there are")]
    NoLimit {
        /// Name of the lock.
        lock: String,
    },
    /// Two declarations contradict each other.
    #[error("worker {worker} declares other rules for the lock {lock:?} than before")]
    RulesDiffer {
        /// Name of the lock.
        lock: String,
        /// Number of the worker.
        worker: u32,
    },
    /// A write was answered before it was issued.
    #[error("{attempt}: a write to {resource:?} was answered before it was issued")]
    WriteBeforeIssue {
        /// The attempt.
        attempt: AttemptId,
        /// Name of the resource.
        resource: String,
    },
    /// A resource used one number for two decisions.
    #[error("the resource {resource:?} gave the number {order} to two writes; also {attempt}")]
    OrderTwice {
        /// Name of the resource.
        resource: String,
        /// Its sequence number.
        order: u64,
        /// The second attempt with it.
        attempt: AttemptId,
    },
}
