//! Workers record what happened to locks, and the checker judges it.
//!
//! A lock that grants twice rarely says so. Each worker of a test therefore records what it did and
//! believed ([`Recorder`]), with one clock for all workers ([`Clock`]). Afterwards the [`Checker`]
//! judges all files together ([`History`]), independently of the lock's own claims. The [`Verdict`]
//! rates every [`Property`] as passed, failed or not judged. Locktopus uses it in its failover and
//! stress tests, for its own locks and for others.
//!
//! ```
//! use std::time::Duration;
//! use locktopus_history::{Checker, Grant, Mode, Property, Recorder, ReleaseOutcome};
//!
//! # fn main() -> Result<(), locktopus_history::RecordError> {
//! let recorder = Recorder::in_memory();
//! for number in 1..=2 {
//!     let worker = recorder.worker(number);
//!     let attempt = worker.start("invoice:42")?;
//!     // ... acquire ...
//!     attempt.granted(Grant {
//!         token: Some(u64::from(number)),
//!         valid_until: recorder.clock().after(Duration::from_secs(10)),
//!         mode: Mode::Exclusive,
//!         safety: "plain".to_owned(),
//!     })?;
//!     attempt.use_started()?;
//!     // ... the critical section ...
//!     attempt.use_ended()?;
//!     attempt.release_started()?;
//!     // ... release ...
//!     attempt.release_ended(ReleaseOutcome::Ok)?;
//! }
//! recorder.close()?;
//! let history = recorder.history().expect("recorded to memory");
//! let verdict = Checker::new().check(&history);
//! assert!(verdict.passed(Property::ValidityOverlap), "{verdict}");
//! assert!(verdict.violations().is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! # What counts as proof
//!
//! The checker reports only certain facts. A killed process has recorded less than it did, and its
//! unfinished actions stay open-ended, as in Jepsen. An unfinished use counts up to the last record
//! of its worker, and an attempt without an answer may have been granted or not. Two events that
//! overlap in time have no order.
//!
//! *Validity* runs from the moment a grant was received to the first of three events: the promised
//! end, the signal of a loss, or the start of the release. *Use* is the critical section itself.
//! Overlaps of validity are the lock's fault. Overlaps of use may also come from holders that slept
//! through the end of their lease; fencing tokens protect against those. If the history says that a
//! worker was stalled ([`Event::Stalled`]), being late by that time is counted, but is no
//! violation.
//!
//! | modules | what is in them |
//! |---|---|
//! | `clock`, `event` | the clock that all workers share; the events they record |
//! | `recorder`, `worker_log`, `journal` | recording a process or a worker, to a file or memory |
//! | `reader`, `malformed` | reading the files of all workers; impossible histories |
//! | `attempt`, `stalls`, `assemble` | from records to attempts; when the machine ran no worker |
//! | `check`, `options` | the judgement of each property; how strict it is |
//! | `overlap`, `fenwick`, `quantiles`, `wilson` | the algorithms that it uses |
//! | `locking_set`, `leftovers` | lost updates under a lock; what must be gone at the end |
//! | `property`, `verdict`, `offence`, `render` | findings and examples, as data and as text |
//!
//! Layers, lowest first: clock, fenwick, leftovers, locking_set, options, overlap, property,
//! quantiles, stalls, wilson, event, attempt, journal, malformed, offence, reader, worker_log,
//! assemble, verdict, recorder, check, render.

#![cfg(unix)]
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod assemble;
mod attempt;
mod check;
mod clock;
mod event;
mod fenwick;
mod journal;
mod leftovers;
mod locking_set;
mod malformed;
mod offence;
mod options;
mod overlap;
mod property;
mod quantiles;
mod reader;
mod recorder;
mod render;
mod stalls;
mod verdict;
mod wilson;
mod worker_log;

pub use check::Checker;
pub use clock::{Clock, ClockKind};
pub use event::{
    AttemptId, Event, FailReason, Grant, Mode, Record, ReleaseOutcome, Rules, Write, WriteOutcome,
};
pub use journal::RecordError;
pub use leftovers::Leftovers;
pub use locking_set::{CounterLoss, LockingSet, LostUpdates, SetLoss};
pub use malformed::Malformed;
pub use offence::Offence;
pub use options::Options;
pub use overlap::{
    Access, Conflict, Excess, Overlaps, Span, WeightedSpan, find_excess, find_overlaps,
};
pub use property::{Judgement, Outcome, Property};
pub use quantiles::Quantiles;
pub use reader::{Damage, History, ReadError};
pub use recorder::Recorder;
pub use verdict::{
    AfterEnd, Facts, FaultEffect, FencedWrites, Lateness, Order, Outage, OverlapCount, Tokens,
    VerbEffect, Verdict, Violation,
};
pub use wilson::Rate;
pub use worker_log::{AttemptLog, WorkerLog};
