//! Records what the workers of one process do.

use std::path::Path;

use crate::clock::Clock;
use crate::journal::Journal;
use crate::journal::RecordError;
use crate::reader::History;
use crate::worker_log::WorkerLog;

/// The history of one process. Cheap to clone; clones write to the same place.
#[derive(Clone, Debug)]
pub struct Recorder {
    journal: Journal,
}

impl Recorder {
    /// Records to a new file.
    ///
    /// # Errors
    ///
    /// [`RecordError::Create`], also if the file already exists.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, RecordError> {
        let journal = Journal::create(path.as_ref())?;
        Ok(Self { journal })
    }

    /// Records to memory, for tests in one process.
    #[must_use]
    pub fn in_memory() -> Self {
        let journal = Journal::in_memory();
        Self { journal }
    }

    /// The clock of the records.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.journal.clock()
    }

    /// The log of one worker. `number` must be unique in the whole history: a worker that was
    /// killed and restarted takes another one.
    #[must_use]
    pub fn worker(&self, number: u32) -> WorkerLog {
        WorkerLog::new(self.journal.clone(), number)
    }

    /// Hands all records to the kernel.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`].
    pub fn flush(&self) -> Result<(), RecordError> {
        self.journal.flush()
    }

    /// States that every worker has finished, and writes the rest.
    ///
    /// Without this statement the history counts as that of a killed process: anything unfinished
    /// in it stays open.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`], and [`RecordError::Closed`] if it is already closed or a write
    /// failed before.
    pub fn close(&self) -> Result<(), RecordError> {
        self.journal.close()
    }

    /// The records so far, if they are in memory; `None` for a file, see [`History::read`].
    #[must_use]
    pub fn history(&self) -> Option<History> {
        self.journal.records().map(History::from_records)
    }
}
