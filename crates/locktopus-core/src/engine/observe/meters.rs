//! Metrics, through the facade crate `metrics`, for any recorder that the program installed.

use std::time::Duration;

use locktopus_contract::LockTarget;
use locktopus_contract::clock::{self, BootInstant};
use metrics::Unit;
use tokio::time::Instant;

use super::words::{RELEASED, TRANSFERRED};

const WAIT: &str = "locktopus_wait_seconds";
const HOLD: &str = "locktopus_hold_seconds";
const HAND_OFF: &str = "locktopus_hand_off_seconds";
const LATENESS: &str = "locktopus_extension_lateness_seconds";
const WAITING: &str = "locktopus_waiting";
const HELD: &str = "locktopus_held";
const LOST: &str = "locktopus_lost_total";

/// The outcome if none was reported: the future was dropped, or the runtime shut down.
const DROPPED: &str = "dropped";

pub(super) fn describe() {
    let seconds = Unit::Seconds;
    metrics::describe_histogram!(WAIT, seconds, "From asking for a lock to the answer");
    metrics::describe_histogram!(HOLD, seconds, "From the grant of a lock to its end");
    metrics::describe_histogram!(
        HAND_OFF,
        seconds,
        "From the end of one task's hold to the start of the next one's in this process"
    );
    metrics::describe_histogram!(
        LATENESS,
        seconds,
        "How long after it was due the extension of a lease was confirmed"
    );
    metrics::describe_gauge!(WAITING, Unit::Count, "Tasks that ask for a lock now");
    metrics::describe_gauge!(HELD, Unit::Count, "Locks that are held now");
    metrics::describe_counter!(LOST, Unit::Count, "Locks that were lost while held");
}

/// A task that requests a lock.
#[derive(Debug)]
pub(super) struct WaitMeter {
    backend: &'static str,
    kind: &'static str,
    outcome: &'static str,
    since: Instant,
}

impl WaitMeter {
    pub(super) fn new(backend: &'static str, kind: &'static str) -> Self {
        metrics::gauge!(WAITING, "backend" => backend, "kind" => kind).increment(1.0);
        Self {
            backend,
            kind,
            outcome: DROPPED,
            since: Instant::now(),
        }
    }

    pub(super) fn ended(&mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for WaitMeter {
    fn drop(&mut self) {
        let Self {
            backend,
            kind,
            outcome,
            since,
        } = *self;
        metrics::gauge!(WAITING, "backend" => backend, "kind" => kind).decrement(1.0);
        metrics::histogram!(WAIT, "backend" => backend, "kind" => kind, "outcome" => outcome)
            .record(since.elapsed());
    }
}

/// A held lock.
#[derive(Debug)]
pub(super) struct HoldMeter {
    backend: &'static str,
    kind: &'static str,
    /// This stays if no end is reported, because the runtime shut down.
    end: &'static str,
    since: Instant,
}

impl HoldMeter {
    pub(super) fn new(backend: &'static str, kind: &'static str) -> Self {
        metrics::gauge!(HELD, "backend" => backend, "kind" => kind).increment(1.0);
        Self {
            backend,
            kind,
            end: DROPPED,
            since: Instant::now(),
        }
    }

    pub(super) fn ended(&mut self, cause: &'static str) {
        self.end = cause;
    }
}

impl Drop for HoldMeter {
    fn drop(&mut self) {
        let Self {
            backend,
            kind,
            end,
            since,
        } = *self;
        metrics::gauge!(HELD, "backend" => backend, "kind" => kind).decrement(1.0);
        metrics::histogram!(HOLD, "backend" => backend, "kind" => kind, "end" => end)
            .record(since.elapsed());
        if ![RELEASED, TRANSFERRED, DROPPED].contains(&end) {
            metrics::counter!(LOST, "backend" => backend, "kind" => kind, "cause" => end)
                .increment(1);
        }
    }
}

pub(super) fn handed_on(backend: &'static str, kind: &'static str, given_up: BootInstant) {
    let took = clock::now().since(given_up);
    metrics::histogram!(HAND_OFF, "backend" => backend, "kind" => kind).record(took);
}

/// How late confirmed extensions were, by kind, until they are reported.
#[derive(Debug, Default)]
pub(crate) struct ExtensionMeter(Vec<(&'static str, Duration)>);

impl ExtensionMeter {
    /// Notes that an extension was confirmed this long after it was due.
    pub(crate) fn note(&mut self, target: &LockTarget, late: Duration) {
        self.0.push((target.kind().as_str(), late));
    }

    pub(super) fn tell(&self, backend: &'static str) {
        for &(kind, late) in &self.0 {
            metrics::histogram!(LATENESS, "backend" => backend, "kind" => kind).record(late);
        }
    }
}
