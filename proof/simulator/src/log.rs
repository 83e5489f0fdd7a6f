//! The log of what applications saw.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::plan::Wait;
use locktopus_core::{BackendErrorKind, Phase, lock};

/// One hold of one lock, as its holder saw it. Times are true times in µs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) process: usize,
    pub(crate) task: usize,
    pub(crate) lock: usize,
    pub(crate) exclusive: bool,
    pub(crate) permits: u32,
    pub(crate) token: Option<u64>,
    /// The owner name of the hold on the servers, if it is one of ours.
    pub(crate) owner: Option<String>,
    pub(crate) asked: u64,
    pub(crate) from: u64,
    /// The last time at which the guard was valid.
    pub(crate) valid: u64,
    /// When it was given back.
    pub(crate) ended: Option<u64>,
    /// The requested fixed lease, if any, in µs.
    pub(crate) fixed_lease: Option<u64>,
}

impl Hold {
    /// Whether its lease may have expired before it was given back. No server announces that.
    pub(crate) fn may_have_lapsed(&self) -> bool {
        let held = self.ended.unwrap_or(u64::MAX).saturating_sub(self.asked);
        self.fixed_lease.is_some_and(|lease| held >= lease)
    }
}

/// How long a task wanted a lock, until it had it or gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) process: usize,
    pub(crate) task: usize,
    pub(crate) lock: usize,
    pub(crate) from: u64,
    pub(crate) until: u64,
    /// How long after an unannounced release it polls at the latest, in µs.
    pub(crate) looks: u64,
}

/// A write of data that a lock protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) lock: usize,
    pub(crate) token: u64,
    pub(crate) begun: u64,
    pub(crate) done: u64,
}

/// A forced release that succeeded, as the administrator saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Evicted {
    pub(crate) lock: usize,
    pub(crate) begun: u64,
    /// When the administrator learned that a holder had lost the lock.
    pub(crate) done: u64,
}

/// An act that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) process: usize,
    pub(crate) task: usize,
    pub(crate) lock: usize,
    pub(crate) begun: u64,
    pub(crate) at: u64,
    /// How it waited, and its fixed lease in ms, if any.
    pub(crate) wait: Wait,
    pub(crate) fixed_lease: Option<u64>,
    /// The phase and the kind of the error, if it came from a server.
    pub(crate) error: Option<(Phase, BackendErrorKind)>,
    /// It lost what it had before it had everything it asked for.
    pub(crate) lost: bool,
    pub(crate) told: String,
}

/// Everything that applications saw in one run.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) holds: Vec<Hold>,
    pub(crate) wanted: Vec<Wanted>,
    /// Locks wanted together: one may have been taken before the other was free.
    pub(crate) groups: Vec<[Wanted; 2]>,
    /// Writes that the server accepted.
    pub(crate) written: Vec<Written>,
    pub(crate) evicted: Vec<Evicted>,
    pub(crate) failed: Vec<Failed>,
    /// The latest time at which a waiter for a latch gives up; perhaps no task counts that latch
    /// down.
    pub(crate) latch_until: u64,
    /// How long tasks worked under locks in total, and until when, in µs.
    pub(crate) worked: u64,
    pub(crate) worked_until: u64,
    /// The current act of each task.
    pub(crate) doing: BTreeMap<(usize, usize), String>,
    /// Processes that ended normally.
    pub(crate) ended: Vec<usize>,
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

/// Shared by all tasks of all processes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Notes>>);

impl Log {
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Notes) -> T) -> T {
        change(&mut lock(&self.0))
    }

    /// A task worked under a lock in this time. Time that overlaps counts once.
    pub(crate) fn worked(&self, from: u64, until: u64) {
        self.with(|notes| {
            notes.worked += until.saturating_sub(from.max(notes.worked_until));
            notes.worked_until = notes.worked_until.max(until);
        });
    }

    pub(crate) fn count(&self, what: &'static str) {
        self.with(|notes| *notes.counts.entry(what).or_default() += 1);
    }
}
