//! The records of one process, on their way to a file or kept in memory.
//!
//! Records gather in a buffer. It goes to the file when it is full, and with every event that must
//! survive the process (see [`Event::is_written_through`]). Data in the kernel survives SIGKILL.
//! Nothing is synced to the disk, so a crash of the machine may lose data.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;

use crate::event::{Event, Record};

/// Version of the format, in every [`Event::Opened`].
pub(super) const FORMAT: u32 = 1;
/// Some hundred records: few system calls, and little to lose.
const BUFFER: usize = 32 * 1024;

/// Why an event was not recorded. The history is then incomplete, and proves nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file could not be created; an older history is never overwritten.
    #[error("cannot create the history {path}: {source}")]
    Create {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file could not be written.
    #[error("cannot write the history {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Recorded after [`Recorder::close`](super::Recorder::close), or after a write failed.
    #[error("the history is closed, or could not be written before; nothing can be added")]
    Closed,
}

/// The journal of one process. Clones write to the same place.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    clock: Clock,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    sink: Sink,
    workers: BTreeMap<u32, Worker>,
    closed: bool,
}

#[derive(Debug, Default)]
struct Worker {
    opened: bool,
    /// Shared by all logs of the worker, so that each number is used once.
    attempts: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Sink {
    File {
        file: File,
        path: PathBuf,
        buffer: Vec<u8>,
    },
    Memory(Vec<Record>),
}

impl Journal {
    /// A journal in a new file.
    pub(super) fn create(path: &Path) -> Result<Self, RecordError> {
        let path = path.to_owned();
        let file = File::create_new(&path).map_err(|source| RecordError::Create {
            path: path.clone(),
            source,
        })?;
        let buffer = Vec::with_capacity(BUFFER + BUFFER / 4);
        Ok(Self::to(Sink::File { file, path, buffer }))
    }

    pub(super) fn in_memory() -> Self {
        Self::to(Sink::Memory(Vec::new()))
    }

    fn to(sink: Sink) -> Self {
        let inner = Inner {
            sink,
            workers: BTreeMap::new(),
            closed: false,
        };
        Self {
            clock: Clock::new(),
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// The clock of the records.
    pub(super) const fn clock(&self) -> Clock {
        self.clock
    }

    /// The number of attempts of a worker so far.
    pub(super) fn attempts_of(&self, worker: u32) -> Arc<AtomicU64> {
        let mut inner = self.inner();
        Arc::clone(&inner.workers.entry(worker).or_default().attempts)
    }

    /// Adds a record, after the one that opens the history of its worker.
    pub(super) fn record(&self, worker: u32, event: Event) -> Result<(), RecordError> {
        let mut inner = self.inner();
        let opened = &mut inner.workers.entry(worker).or_default().opened;
        if !std::mem::replace(opened, true) {
            let opened = Event::Opened {
                format: FORMAT,
                clock: self.clock.kind(),
            };
            inner.append(self.clock, worker, opened)?;
        }
        inner.append(self.clock, worker, event)
    }

    /// Hands all records to the kernel.
    pub(super) fn flush(&self) -> Result<(), RecordError> {
        self.inner().flush()
    }

    /// Closes the history of every worker, and writes the rest.
    pub(super) fn close(&self) -> Result<(), RecordError> {
        let mut inner = self.inner();
        if inner.closed {
            return Err(RecordError::Closed);
        }
        for (number, worker) in std::mem::take(&mut inner.workers) {
            if worker.opened {
                inner.append(self.clock, number, Event::Closed)?;
            }
        }
        inner.flush()?;
        inner.closed = true;
        Ok(())
    }

    /// The records so far; `None` for a file.
    pub(super) fn records(&self) -> Option<Vec<Record>> {
        match &self.inner().sink {
            Sink::Memory(records) => Some(records.clone()),
            Sink::File { .. } => None,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Reads the clock under the mutex, so that a file is in order.
    fn append(&mut self, clock: Clock, worker: u32, event: Event) -> Result<(), RecordError> {
        if self.closed {
            return Err(RecordError::Closed);
        }
        let through = event.is_written_through();
        let record = Record {
            at: clock.now_ns(),
            worker,
            event,
        };
        match &mut self.sink {
            Sink::Memory(records) => {
                records.push(record);
                Ok(())
            }
            Sink::File { path, buffer, .. } => {
                serde_json::to_writer(&mut *buffer, &record).map_err(|error| {
                    RecordError::Write {
                        path: path.clone(),
                        source: error.into(),
                    }
                })?;
                buffer.push(b'\n');
                if through || buffer.len() >= BUFFER {
                    self.flush()
                } else {
                    Ok(())
                }
            }
        }
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        if let Sink::File { file, path, buffer } = &mut self.sink
            && !buffer.is_empty()
        {
            let written = file.write_all(buffer);
            buffer.clear();
            written.map_err(|source| {
                // Part of a line may be in the file, so nothing may follow it.
                self.closed = true;
                RecordError::Write {
                    path: path.clone(),
                    source,
                }
            })?;
        }
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Without close() this is the history of a stopped process; an error can be reported to no
        // one.
        let _ = self.flush();
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_and_ends_the_history() {
        let path = PathBuf::from("/dev/full");
        let file = File::options().write(true).open(&path).unwrap();
        let buffer = Vec::new();
        let journal = Journal::to(Sink::File { file, path, buffer });
        let fault = Event::Fault {
            verb: "kill".to_owned(),
            target: "node-1".to_owned(),
        };
        let error = journal.record(1, fault).unwrap_err();
        assert!(matches!(error, RecordError::Write { .. }), "{error}");
        assert!(error.to_string().contains("/dev/full"), "{error}");
        let error = journal.record(1, Event::Closed).unwrap_err();
        assert!(matches!(error, RecordError::Closed), "{error}");
        assert!(journal.close().is_err());
    }
}
