//! The shared counters of a run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use locktopus::{LockError, Locktopus};

use super::outages::Outages;
use super::places::Place;
use crate::shared::error_chain::chain;

/// The number of different errors to keep.
const EXAMPLES: usize = 20;

#[derive(Debug)]
pub(super) struct Tally {
    pub(super) outages: Outages,
    pub(super) begun: AtomicU64,
    pub(super) granted: AtomicU64,
    /// Grants that came in time.
    pub(super) in_time: AtomicU64,
    pub(super) ended: AtomicU64,
    pub(super) skipped: AtomicU64,
    pub(super) overlaps: AtomicU64,
    pub(super) excused: AtomicU64,
    /// Errors that no outage explains.
    pub(super) errors: AtomicU64,
    examples: Mutex<BTreeMap<String, u64>>,
    waits: Mutex<Histogram<u64>>,
}

impl Tally {
    pub(super) fn new() -> Result<Self, hdrhistogram::CreationError> {
        Ok(Self {
            outages: Outages::default(),
            begun: AtomicU64::new(0),
            granted: AtomicU64::new(0),
            in_time: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            overlaps: AtomicU64::new(0),
            excused: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            examples: Mutex::default(),
            waits: Mutex::new(Histogram::new_with_bounds(1, 600_000_000, 3)?),
        })
    }

    /// Counts a failed operation that began at `since`.
    pub(super) fn failed(&self, error: &LockError, since: Instant) {
        if self.outages.explain(error, since) {
            self.excused.fetch_add(1, Ordering::Relaxed);
        } else {
            self.wrong(chain(error));
        }
    }

    /// Counts an error that no outage explains.
    pub(super) fn wrong(&self, what: String) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let mut examples = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        if examples.len() < EXAMPLES || examples.contains_key(&what) {
            *examples.entry(what).or_default() += 1;
        }
    }

    /// Takes the lock, stays inside for `hold`, and releases it; returns whether it was granted. A
    /// grant after `end` is not in time.
    pub(super) async fn use_once(
        &self,
        locks: &Locktopus,
        place: &Place,
        hold: Duration,
        end: Instant,
    ) -> bool {
        let since = Instant::now();
        let guard = match place.take(locks).await {
            Ok(guard) => guard,
            Err(error) => {
                self.failed(&error, since);
                return false;
            }
        };
        self.granted.fetch_add(1, Ordering::Relaxed);
        self.in_time
            .fetch_add(u64::from(Instant::now() <= end), Ordering::Relaxed);
        let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.waits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .saturating_record(micros.max(1));
        if place.enter() {
            self.overlaps.fetch_add(1, Ordering::Relaxed);
        }
        if hold.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(hold).await;
        }
        place.leave();
        let since = Instant::now();
        if let Err(error) = guard.release().await {
            self.failed(&error, since);
        }
        true
    }

    pub(super) fn examples(&self) -> BTreeMap<String, u64> {
        let examples = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        examples.clone()
    }

    /// The median wait, and the 99.9th percentile, in microseconds.
    pub(super) fn waits(&self) -> (u64, u64) {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        (waits.value_at_quantile(0.5), waits.value_at_quantile(0.999))
    }
}
