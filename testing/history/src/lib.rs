//! What happened to the locks: workers record it, the checker judges it.
//!
//! A lock that grants twice rarely says so. Each worker of a test therefore writes down what it
//! did and believed ([`Recorder`]), with one clock for all of them ([`Clock`]). Afterwards the
//! files are read together ([`History`]) and checked ([`Checker`]), whatever the lock claims. The
//! [`Verdict`] states every [`Property`] as passed, failed or not judged. Used by the validation
//! of failovers and by stress tests, of this library's locks and of others.
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
//! Only what is certain is reported. A process that was killed has written down less than it did;
//! what it left unfinished stays open-ended, as in Jepsen: an unfinished use is believed up to the
//! last record of its worker, an attempt without an answer may have been granted or not. Two
//! things that overlap in time have no order.
//!
//! *Validity* runs from the moment a grant was received to the end that the lock promised, that the
//! loss was signalled, or that the release began, whichever is first. *Use* is the critical section
//! itself. Overlaps of validity are the lock's fault; overlaps of use may also come from holders
//! that slept through the end of their lease, and are what fencing tokens are for. Where the
//! history says that a worker was stalled ([`Event::Stalled`]), what it did late for that long is
//! counted, and is no violation.
//!
//! | modules | what is in them |
//! |---|---|
//! | `clock`, `event` | the clock that all workers share; what they write down |
//! | `recorder`, `worker_log`, `journal` | writing it down: for a process, for a worker, to a file or memory |
//! | `reader`, `malformed` | reading the files of all workers; histories that cannot have happened |
//! | `attempt`, `stalls`, `assemble` | from records to attempts, and when the machine ran nobody |
//! | `check`, `options` | the judgement of each property; how strict it is |
//! | `overlap`, `fenwick`, `quantiles`, `wilson` | the algorithms that it uses |
//! | `locking_set`, `leftovers` | lost updates under a lock; what must be gone at the end |
//! | `property`, `verdict`, `offence`, `render` | what was found, with examples, as data and as text |
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
