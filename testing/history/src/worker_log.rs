//! The recorder, as one worker sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::event::{Event, FailReason, Grant, ReleaseOutcome, Rules, Write, WriteOutcome};
use crate::journal::Journal;
use crate::journal::RecordError;

/// Records what one worker does. Cheap to clone.
///
/// Every method takes a mutex of the process and reads the clock. Methods documented to write
/// through write to the file before they return, which takes some microseconds. All fail with
/// [`RecordError`] if the record could not be written or the recorder is closed.
#[derive(Clone, Debug)]
pub struct WorkerLog {
    journal: Journal,
    number: u32,
    attempts: Arc<AtomicU64>,
}

impl WorkerLog {
    pub(super) fn new(journal: Journal, number: u32) -> Self {
        // Shared by all logs of the worker, so that each number is used once.
        let attempts = journal.attempts_of(number);
        Self {
            journal,
            number,
            attempts,
        }
    }

    /// Declares the rules of a lock; once for each lock, by any worker.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn declare(&self, lock: &str, rules: Rules) -> Result<(), RecordError> {
        let lock = lock.to_owned();
        self.journal
            .record(self.number, Event::Declared { lock, rules })
    }

    /// Records a fault, right before it is made. Writes through.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn fault(&self, verb: &str, target: &str) -> Result<(), RecordError> {
        let (verb, target) = (verb.to_owned(), target.to_owned());
        self.journal
            .record(self.number, Event::Fault { verb, target })
    }

    /// The machine did not run this worker's process since a reading of the clock, in nanoseconds.
    /// `everybody` if all workers wait for this process now and then.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn stalled(&self, since: u64, everybody: bool) -> Result<(), RecordError> {
        self.journal
            .record(self.number, Event::Stalled { since, everybody })
    }

    /// An attempt starts. Call it before anything is sent.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn start(&self, lock: &str) -> Result<AttemptLog, RecordError> {
        self.begin(lock, None)
    }

    /// An attempt of a holder that may re-enter. `holder` is the same number for all attempts that
    /// share a lease, in any worker, and for no others.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn start_as(&self, lock: &str, holder: u64) -> Result<AttemptLog, RecordError> {
        self.begin(lock, Some(holder))
    }

    fn begin(&self, lock: &str, holder: Option<u64>) -> Result<AttemptLog, RecordError> {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let lock = lock.to_owned();
        let started = Event::Started {
            attempt,
            lock,
            holder,
        };
        self.journal.record(self.number, started)?;
        Ok(AttemptLog {
            journal: self.journal.clone(),
            worker: self.number,
            attempt,
        })
    }
}

/// Records what happens to one attempt. Cheap to clone.
///
/// All methods fail like those of [`WorkerLog`].
#[derive(Clone, Debug)]
pub struct AttemptLog {
    journal: Journal,
    worker: u32,
    attempt: u64,
}

impl AttemptLog {
    /// The lock's queue is known to contain this attempt since now, or since an earlier reading
    /// `by`.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn enqueued(&self, by: Option<u64>) -> Result<(), RecordError> {
        let by = by.unwrap_or_else(|| self.journal.clock().now_ns());
        let attempt = self.attempt;
        self.record(Event::Enqueued { attempt, by })
    }

    /// The lock was granted. Call it before the critical section. Writes through.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn granted(&self, grant: Grant) -> Result<(), RecordError> {
        let attempt = self.attempt;
        self.record(Event::Granted { attempt, grant })
    }

    /// The attempt ended without the lock. `waited_until`, in nanoseconds, is when it certainly
    /// still waited: its deadline, or a reading of the clock from before it was cancelled. Without
    /// it the wait is not judged for order.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn failed(&self, reason: FailReason, waited_until: Option<u64>) -> Result<(), RecordError> {
        self.record(Event::Failed {
            attempt: self.attempt,
            reason,
            waited_until,
        })
    }

    /// The critical section starts. Call it inside.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn use_started(&self) -> Result<(), RecordError> {
        let attempt = self.attempt;
        self.record(Event::UseStarted { attempt })
    }

    /// The critical section ends. Call it inside.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn use_ended(&self) -> Result<(), RecordError> {
        let attempt = self.attempt;
        self.record(Event::UseEnded { attempt })
    }

    /// A fenced resource answered a write that was issued at `issued` (an earlier reading). Writes
    /// through.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn wrote(
        &self,
        resource: &str,
        token: u64,
        issued: u64,
        outcome: WriteOutcome,
        order: Option<u64>,
    ) -> Result<(), RecordError> {
        let write = Write {
            resource: resource.to_owned(),
            token,
            issued,
            outcome,
            order,
        };
        let attempt = self.attempt;
        self.record(Event::Wrote { attempt, write })
    }

    /// The holder has just learned of an extension until a reading of the clock, in nanoseconds.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn extended(&self, valid_until: u64) -> Result<(), RecordError> {
        let attempt = self.attempt;
        self.record(Event::Extended {
            attempt,
            valid_until,
        })
    }

    /// The guard reports this end of validity now, in nanoseconds; a watchdog may have moved it at
    /// any time since the last report. Record it before uses end and before releases.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn observed(&self, valid_until: u64) -> Result<(), RecordError> {
        let attempt = self.attempt;
        self.record(Event::Observed {
            attempt,
            valid_until,
        })
    }

    /// The holder has just learned that the lock is lost; its validity ended at `valid_until`, in
    /// nanoseconds. Writes through.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn lost(&self, cause: &str, valid_until: u64) -> Result<(), RecordError> {
        let cause = cause.to_owned();
        self.record(Event::Lost {
            attempt: self.attempt,
            cause,
            valid_until,
        })
    }

    /// The holder releases the lock. Call it before anything is sent. Writes through.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn release_started(&self) -> Result<(), RecordError> {
        let attempt = self.attempt;
        self.record(Event::ReleaseStarted { attempt })
    }

    /// The release was answered.
    ///
    /// # Errors
    ///
    /// See [`WorkerLog`].
    pub fn release_ended(&self, outcome: ReleaseOutcome) -> Result<(), RecordError> {
        let attempt = self.attempt;
        self.record(Event::ReleaseEnded { attempt, outcome })
    }

    fn record(&self, event: Event) -> Result<(), RecordError> {
        self.journal.record(self.worker, event)
    }
}
