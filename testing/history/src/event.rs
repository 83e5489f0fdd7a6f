//! What workers write down. One record is one line of JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::ClockKind;

/// One event, when it happened and to whom.
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
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct Record {
    /// Nanoseconds on the clock of the history.
    pub at: u64,
    /// Who. One number is used once in a history: a restarted worker takes a new one.
    pub worker: u32,
    /// What.
    pub event: Event,
}

/// What happened. Attempts are numbered by their worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The worker begins to record.
    Opened {
        /// Version of this format; this one is 1.
        format: u32,
        /// The clock it records with.
        clock: ClockKind,
    },
    /// The worker stops recording, and has finished everything it began.
    Closed,
    /// The rules of a lock, for the checker.
    Declared {
        /// Name of the lock.
        lock: String,
        /// How it has to behave.
        rules: Rules,
    },
    /// Something was done to a server or a worker.
    Fault {
        /// What: kill, promote, freeze, ...
        verb: String,
        /// To whom.
        target: String,
    },
    /// The machine did not run the worker's process from `since` until now: it was stopped, or
    /// others had its processors; or the worker waited for what the locks protect. What it did late
    /// meanwhile is not the lock's doing.
    Stalled {
        /// From when, in nanoseconds.
        since: u64,
        /// Whether everybody waited for this process, as for what the locks protect.
        #[serde(default)]
        everybody: bool,
    },
    /// An attempt begins; recorded before anything is sent.
    Started {
        /// Number of the attempt.
        attempt: u64,
        /// Name of the lock.
        lock: String,
        /// Who may enter again: attempts of one holder do not exclude each other. Without it,
        /// each attempt is a holder of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder: Option<u64>,
    },
    /// The attempt is known to wait in the lock's queue; recorded again when it had to take a new
    /// place, the last one counts.
    Enqueued {
        /// Number of the attempt.
        attempt: u64,
        /// It had arrived by then, in nanoseconds.
        by: u64,
    },
    /// The lock was granted, and the grant received.
    Granted {
        /// Number of the attempt.
        attempt: u64,
        /// What was granted.
        grant: Grant,
    },
    /// The attempt ended without the lock.
    Failed {
        /// Number of the attempt.
        attempt: u64,
        /// Why.
        reason: FailReason,
        /// Until when it was certainly still waiting, in nanoseconds: its deadline, or the moment
        /// before it was cancelled. Unknown if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waited_until: Option<u64>,
    },
    /// The critical section begins; recorded inside it.
    UseStarted {
        /// Number of the attempt.
        attempt: u64,
    },
    /// The critical section ends; recorded inside it.
    UseEnded {
        /// Number of the attempt.
        attempt: u64,
    },
    /// A fenced resource answered a write, or was given up on.
    Wrote {
        /// Number of the attempt.
        attempt: u64,
        /// The write.
        write: Write,
    },
    /// The holder was told of an extension now.
    Extended {
        /// Number of the attempt.
        attempt: u64,
        /// The new end of validity, in nanoseconds.
        valid_until: u64,
    },
    /// The holder looked at its guard: a watchdog extends it without saying when.
    Observed {
        /// Number of the attempt.
        attempt: u64,
        /// The end of validity that the guard states, in nanoseconds.
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
    /// The holder gives the lock back; recorded before anything is sent.
    ReleaseStarted {
        /// Number of the attempt.
        attempt: u64,
    },
    /// The release was answered.
    ReleaseEnded {
        /// Number of the attempt.
        attempt: u64,
        /// How.
        outcome: ReleaseOutcome,
    },
}

impl Event {
    /// The attempt it belongs to.
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

    /// What happened, in words.
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

    /// Whether it must have left the process before the worker goes on.
    ///
    /// Without the grant, a killed holder would look like nobody. Without the loss or the start of
    /// the release, it would look like a holder until its validity ends, and the next grant like
    /// an overlap.
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

/// What a holder was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct Grant {
    /// The fencing token, if the lock has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// End of its validity, in nanoseconds.
    pub valid_until: u64,
    /// With whom it is shared.
    pub mode: Mode,
    /// Name of the safety mode it was granted under.
    pub safety: String,
}

/// With whom a grant is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever gets it must look at each case"
)]
pub enum Mode {
    /// Nobody: a lock, a mutex, a writer.
    Exclusive,
    /// Other readers.
    Shared,
    /// So many permits of a semaphore.
    Permits(u32),
}

/// Why an attempt ended without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailReason {
    /// Somebody else holds it.
    Held,
    /// The wait was over.
    Timeout,
    /// The caller did not want it any more.
    Cancelled,
    /// It certainly did not run.
    Error,
    /// It may have run.
    Maybe,
}

/// How a release ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "another case or field would make another type of it"
)]
pub enum ReleaseOutcome {
    /// It was given back.
    Ok,
    /// It was lost before.
    Lost,
    /// Unknown: no answer, or an error.
    Error,
}

/// A write to a resource that checks tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct Write {
    /// Name of the resource.
    pub resource: String,
    /// The token it carried.
    pub token: u64,
    /// When it was issued, in nanoseconds.
    pub issued: u64,
    /// What the resource said.
    pub outcome: WriteOutcome,
    /// The resource's own sequence number of this decision, if it has one. With it, order is
    /// exact; without it, only writes that do not overlap in time are ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u64>,
}

/// What a fenced resource said to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "another case or field would make another type of it"
)]
pub enum WriteOutcome {
    /// It was done.
    Accepted,
    /// Its token was too old.
    Rejected,
    /// No answer came: it may have been done.
    Unknown,
}

/// How a lock has to behave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct Rules {
    /// Permits of a semaphore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permits: Option<u32>,
    /// Whether it must be granted in the order of arrival.
    #[serde(default)]
    pub fair: bool,
}

/// One attempt among those of all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "another case or field would make another type of it"
)]
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
