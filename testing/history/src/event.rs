//! The events that workers record. One record is one line of JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::ClockKind;

/// One event of one worker, with its time.
///
/// ```
/// use locktopus_history::{Event, Record};
///
/// let record = Record { at: 17, worker: 3, event: Event::UseStarted { attempt: 5 } };
/// let line = serde_json::to_string(&record).unwrap();
/// assert_eq!(line, r#"{"at":17,"worker":3,"event":{"use_started":{"attempt":5}}}"#);
/// assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct Record {
    /// Nanoseconds on the clock of the history.
    pub at: u64,
    /// The worker's number, which is unique in a history: a restarted worker takes a new one.
    pub worker: u32,
    /// The event.
    pub event: Event,
}

/// An event. Each worker numbers its own attempts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The worker starts to record.
    Opened {
        /// Version of this format; this one is 1.
        format: u32,
        /// The clock it records with.
        clock: ClockKind,
    },
    /// The worker stops recording, and has finished everything it started.
    Closed,
    /// The rules of a lock, for the checker.
    Declared {
        /// Name of the lock.
        lock: String,
        /// Its rules.
        rules: Rules,
    },
    /// The test did something to a server or a worker.
    Fault {
        /// The action: kill, promote, freeze, ...
        verb: String,
        /// The target of the action.
        target: String,
    },
    /// The machine did not run the worker's process from `since` until now, because it was stopped
    /// or others had its processors, or the worker waited for the resource behind the locks. Being
    /// late in that time is not the lock's fault.
    Stalled {
        /// The start, in nanoseconds.
        since: u64,
        /// Whether all workers waited for this process, as they do for the resource behind the
        /// locks.
        #[serde(default)]
        everybody: bool,
    },
    /// An attempt starts; recorded before anything is sent.
    Started {
        /// Number of the attempt.
        attempt: u64,
        /// Name of the lock.
        lock: String,
        /// The holder, if it may re-enter: attempts of one holder do not exclude each other.
        /// Without it, each attempt is a holder of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder: Option<u64>,
    },
    /// The attempt is known to be in the lock's queue. Recorded again if it had to take a new
    /// place; the last record counts.
    Enqueued {
        /// Number of the attempt.
        attempt: u64,
        /// When it had arrived at the latest, in nanoseconds.
        by: u64,
    },
    /// The lock was granted, and the worker received the grant.
    Granted {
        /// Number of the attempt.
        attempt: u64,
        /// The grant.
        grant: Grant,
    },
    /// The attempt ended without the lock.
    Failed {
        /// Number of the attempt.
        attempt: u64,
        /// The reason.
        reason: FailReason,
        /// Until when it certainly still waited, in nanoseconds: its deadline, or the moment before
        /// it was cancelled. Unknown if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waited_until: Option<u64>,
    },
    /// The critical section starts; recorded inside it.
    UseStarted {
        /// Number of the attempt.
        attempt: u64,
    },
    /// The critical section ends; recorded inside it.
    UseEnded {
        /// Number of the attempt.
        attempt: u64,
    },
    /// A fenced resource answered a write, or the worker gave up on the answer.
    Wrote {
        /// Number of the attempt.
        attempt: u64,
        /// The write.
        write: Write,
    },
    /// The holder has just learned of an extension.
    Extended {
        /// Number of the attempt.
        attempt: u64,
        /// The new end of validity, in nanoseconds.
        valid_until: u64,
    },
    /// The holder checked its guard. A watchdog extends it without reporting when.
    Observed {
        /// Number of the attempt.
        attempt: u64,
        /// The end of validity that the guard reports, in nanoseconds.
        valid_until: u64,
    },
    /// The holder learned that the lock is lost.
    Lost {
        /// Number of the attempt.
        attempt: u64,
        /// The cause, in the lock's words.
        cause: String,
        /// When the local validity ended, in nanoseconds.
        valid_until: u64,
    },
    /// The holder releases the lock; recorded before anything is sent.
    ReleaseStarted {
        /// Number of the attempt.
        attempt: u64,
    },
    /// The release was answered.
    ReleaseEnded {
        /// Number of the attempt.
        attempt: u64,
        /// The answer.
        outcome: ReleaseOutcome,
    },
}

impl Event {
    /// The number of the attempt that it belongs to.
    #[must_use]
    pub const fn attempt(&self) -> Option<u64> {
        match *self {
            Self::Opened { .. }
            | Self::Closed
            | Self::Declared { .. }
            | Self::Fault { .. }
            | Self::Stalled { .. } => None,
            Self::Started { attempt, .. }
            | Self::Enqueued { attempt, .. }
            | Self::Granted { attempt, .. }
            | Self::Failed { attempt, .. }
            | Self::UseStarted { attempt }
            | Self::UseEnded { attempt }
            | Self::Wrote { attempt, .. }
            | Self::Extended { attempt, .. }
            | Self::Observed { attempt, .. }
            | Self::Lost { attempt, .. }
            | Self::ReleaseStarted { attempt }
            | Self::ReleaseEnded { attempt, .. } => Some(attempt),
        }
    }

    /// The event, in words.
    pub(super) const fn what(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "opened",
            Self::Closed => "closed",
            Self::Declared { .. } => "declared",
            Self::Fault { .. } => "a fault",
            Self::Stalled { .. } => "a stall",
            Self::Started { .. } => "started",
            Self::Enqueued { .. } => "enqueued",
            Self::Granted { .. } => "granted",
            Self::Failed { .. } => "failed",
            Self::UseStarted { .. } => "a use started",
            Self::UseEnded { .. } => "a use ended",
            Self::Wrote { .. } => "a write",
            Self::Extended { .. } => "extended",
            Self::Observed { .. } => "observed",
            Self::Lost { .. } => "lost",
            Self::ReleaseStarted { .. } => "a release started",
            Self::ReleaseEnded { .. } => "a release ended",
        }
    }

    /// Whether it must leave the process before the worker continues.
    ///
    /// Without the grant, a killed holder would be missing from the history. Without the loss or
    /// the start of the release, it would look like a holder until its validity ends, and the next
    /// grant like an overlap.
    #[must_use]
    pub const fn is_written_through(&self) -> bool {
        matches!(
            self,
            Self::Opened { .. }
                | Self::Closed
                | Self::Declared { .. }
                | Self::Fault { .. }
                | Self::Granted { .. }
                | Self::Wrote { .. }
                | Self::Lost { .. }
                | Self::ReleaseStarted { .. }
        )
    }
}

/// A grant, as the holder received it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct Grant {
    /// The fencing token, if the lock has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// End of its validity, in nanoseconds.
    pub valid_until: u64,
    /// The sharing mode.
    pub mode: Mode,
    /// Name of its safety mode.
    pub safety: String,
}

/// The grants that a grant may coexist with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "each match needs a review")]
pub enum Mode {
    /// No one: a lock, a mutex, a writer.
    Exclusive,
    /// Other readers.
    Shared,
    /// This many permits of a semaphore.
    Permits(u32),
}

/// Why an attempt ended without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailReason {
    /// Another owner holds it.
    Held,
    /// The wait reached its limit.
    Timeout,
    /// The caller cancelled it.
    Cancelled,
    /// An error; it certainly did not run.
    Error,
    /// An error; it may have run.
    Maybe,
}

/// How a release ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "it is complete")]
pub enum ReleaseOutcome {
    /// The lock was released.
    Ok,
    /// The lock was lost before.
    Lost,
    /// Unknown: no answer, or an error.
    Error,
}

/// A write to a resource that checks tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct Write {
    /// Name of the resource.
    pub resource: String,
    /// The token it carried.
    pub token: u64,
    /// When it was issued, in nanoseconds.
    pub issued: u64,
    /// The resource's answer.
    pub outcome: WriteOutcome,
    /// The resource's own sequence number of this decision, if it has one. With it, the order is
    /// exact; without it, only writes that do not overlap in time are ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u64>,
}

/// A fenced resource's answer to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "it is complete")]
pub enum WriteOutcome {
    /// The write was made.
    Accepted,
    /// Its token was too old.
    Rejected,
    /// No answer came: the write may have been made.
    Unknown,
}

/// The rules of a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct Rules {
    /// Permits of a semaphore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permits: Option<u32>,
    /// Whether it must be granted in order of arrival.
    #[serde(default)]
    pub fair: bool,
}

/// An attempt's id among those of all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "it is complete")]
pub struct AttemptId {
    /// Number of the worker.
    pub worker: u32,
    /// Number of the attempt, counted by the worker.
    pub attempt: u64,
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} attempt {}", self.worker, self.attempt)
    }
}
