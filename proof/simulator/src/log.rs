//! What applications saw.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::plan::Wait;
use locktopus_core::{BackendErrorKind, Phase, lock};

/// One hold of one lock, as its holder saw it. Times are true ones in µs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) process: usize,
    pub(crate) task: usize,
    pub(crate) lock: usize,
    pub(crate) exclusive: bool,
    pub(crate) permits: u32,
    pub(crate) token: Option<u64>,
    /// Under which name servers know the hold, if it is one.
    pub(crate) owner: Option<String>,
    pub(crate) asked: u64,
    pub(crate) from: u64,
    /// The last time at which the guard was found valid.
    pub(crate) valid: u64,
    /// When it was given back.
    pub(crate) ended: Option<u64>,
    /// The lease that it asked for and that is not renewed.
    pub(crate) fixed_lease: Option<u64>,
}

impl Hold {
    /// Whether its lease may have run out before it was given back, of which servers say nothing to
    /// anybody.
    pub(crate) fn may_have_lapsed(&self) -> bool {
        let held = self.ended.unwrap_or(u64::MAX).saturating_sub(self.asked);
        self.fixed_lease.is_some_and(|lease| held >= lease)
    }
}

/// Somebody wanted a lock, from then until it had it or gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) process: usize,
    pub(crate) task: usize,
    pub(crate) lock: usize,
    pub(crate) from: u64,
    pub(crate) until: u64,
    /// How long after a release of which nothing is said it looks by itself at the latest, in µs.
    pub(crate) looks: u64,
}

/// Something that a lock protects was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) lock: usize,
    pub(crate) token: u64,
    pub(crate) begun: u64,
    pub(crate) done: u64,
}

/// An administrator took a lock away, and knows that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Evicted {
    pub(crate) lock: usize,
    pub(crate) begun: u64,
    /// When it was known that somebody had held it, and does not any more.
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
    /// How it waited, and the lease that it asked for and that is not renewed, in ms.
    pub(crate) wait: Wait,
    pub(crate) fixed_lease: Option<u64>,
    /// In doing what, and for which reason, if that came from a server.
    pub(crate) error: Option<(Phase, BackendErrorKind)>,
    /// What it had was lost before it had everything that it asked for.
    pub(crate) lost: bool,
    pub(crate) told: String,
}

/// Everything that applications saw in one run.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) holds: Vec<Hold>,
    pub(crate) wanted: Vec<Wanted>,
    /// Locks that were wanted together: one may have been taken before the other was free.
    pub(crate) groups: Vec<[Wanted; 2]>,
    /// Writes that were let through.
    pub(crate) written: Vec<Written>,
    pub(crate) evicted: Vec<Evicted>,
    pub(crate) failed: Vec<Failed>,
    /// The latest time until which anybody said that it would wait for a latch, which perhaps
    /// nobody counts down.
    pub(crate) latch_until: u64,
    /// For how long anybody worked under a lock, and until when, in µs.
    pub(crate) worked: u64,
    pub(crate) worked_until: u64,
    /// What each task does now.
    pub(crate) doing: BTreeMap<(usize, usize), String>,
    /// Processes that have ended in order.
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

    /// Somebody worked under a lock from then to then. What several do at once counts once.
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
