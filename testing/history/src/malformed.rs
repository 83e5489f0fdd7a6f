//! Histories that cannot have happened.

use serde::Serialize;

use crate::event::AttemptId;

use crate::clock::ClockKind;

/// A record that contradicts others. It is left out; the rest of the history is still checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Malformed {
    /// Two processes, or two lives of one, record under one number.
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
    /// A worker went on after it had stopped.
    #[error("worker {worker} recorded {event} at {at} ns, after it had closed its history")]
    AfterClosed {
        /// Number of the worker.
        worker: u32,
        /// What it recorded.
        event: &'static str,
        /// When, in nanoseconds.
        at: u64,
    },
    /// A number was given to two attempts.
    #[error("{attempt} was started twice")]
    StartedTwice {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Something happened to an attempt that never began.
    #[error("{attempt}: {event}, but it was never started")]
    NotStarted {
        /// The attempt.
        attempt: AttemptId,
        /// What happened.
        event: &'static str,
    },
    /// Something happened that needs a grant.
    #[error("{attempt}: {event}, but it was not granted")]
    NotGranted {
        /// The attempt.
        attempt: AttemptId,
        /// What happened.
        event: &'static str,
    },
    /// An attempt has one answer.
    #[error("{attempt}: {event}, but it was answered before")]
    AnsweredBefore {
        /// The attempt.
        attempt: AttemptId,
        /// What happened.
        event: &'static str,
    },
    /// A critical section was entered while inside.
    #[error("{attempt}: a use started during another one")]
    UseDuringUse {
        /// The attempt.
        attempt: AttemptId,
    },
    /// A critical section was left that was not entered.
    #[error("{attempt}: a use ended that had not started")]
    UseNotStarted {
        /// The attempt.
        attempt: AttemptId,
    },
    /// A lock was given back twice.
    #[error("{attempt}: {event} a second time")]
    ReleasedTwice {
        /// The attempt.
        attempt: AttemptId,
        /// What happened.
        event: &'static str,
    },
    /// A release was answered that had not begun.
    #[error("{attempt}: a release ended that had not started")]
    ReleaseNotStarted {
        /// The attempt.
        attempt: AttemptId,
    },
    /// A worker claims to have finished, and has not.
    #[error("{attempt}: its worker closed the history, but {what} never ended")]
    NeverEnded {
        /// The attempt.
        attempt: AttemptId,
        /// The attempt, a use, or the release.
        what: &'static str,
    },
    /// A grant of nothing.
    #[error("{attempt}: was granted no permit")]
    NoPermits {
        /// The attempt.
        attempt: AttemptId,
    },
    /// A name is a semaphore or a lock, not both.
    #[error("{attempt}: the lock {lock:?} was granted both as permits and as a lock")]
    MixedModes {
        /// Name of the lock.
        lock: String,
        /// The first grant of the other mode.
        attempt: AttemptId,
    },
    /// Permits were granted, and nobody declared how many there are.
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
    /// A write was issued after it was answered.
    #[error("{attempt}: a write to {resource:?} was answered before it was issued")]
    WriteBeforeIssue {
        /// The attempt.
        attempt: AttemptId,
        /// Name of the resource.
        resource: String,
    },
    /// A resource counted two decisions as one.
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
