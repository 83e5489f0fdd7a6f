//! Reports waits and holds as spans (feature `tracing`) and metrics (feature `metrics`).
//!
//! The engine calls this module, and no other file knows the features: without one, its types are
//! empty and its methods do nothing. `docs/observability.md` has the names and units.
//!
//! | file | what is in it |
//! |---|---|
//! | `mod` | what the engine calls |
//! | `words` | the values of labels |
//! | `spans`, `meters` | one file per feature |
//! | `off` | their empty versions |
//!
//! Layers, lowest first: words, meters, spans.

#[cfg(feature = "metrics")]
mod meters;
#[cfg(not(feature = "metrics"))]
#[path = "off/meters.rs"]
mod meters;
#[cfg(feature = "tracing")]
mod spans;
#[cfg(not(feature = "tracing"))]
#[path = "off/spans.rs"]
mod spans;
mod words;

use std::sync::Mutex;

use locktopus_contract::clock::BootInstant;
use locktopus_contract::{FencingToken, LockTarget, lock};

pub(crate) use self::meters::ExtensionMeter;
pub(crate) use self::spans::PositionField;

use crate::engine::error::{LockError, LostCause};

/// Reports the waits and holds of one `Locktopus`.
#[derive(Debug)]
pub(crate) struct Observer {
    backend: &'static str,
    /// Whether spans include the lock's name.
    names: bool,
}

impl Observer {
    pub(crate) fn new(backend: &'static str, names: bool) -> Self {
        meters::describe();
        Self { backend, names }
    }

    /// A task requests a lock, and waits if it must. The wait ends when the returned value is
    /// dropped.
    pub(crate) fn waits<'a>(&'a self, target: &'a LockTarget) -> WaitObservation<'a> {
        WaitObservation {
            observer: self,
            target,
            span: spans::WaitSpan::new(self.backend, target, self.names),
            meter: meters::WaitMeter::new(self.backend, target.kind().as_str()),
        }
    }

    /// A task has a lock without a wait of its own: it took a ticket, or one of several locks
    /// requested together.
    pub(crate) fn holds(
        &self,
        target: &LockTarget,
        token: Option<FencingToken>,
    ) -> HoldObservation {
        self.holds_after(target, token, None)
    }

    fn holds_after(
        &self,
        target: &LockTarget,
        token: Option<FencingToken>,
        wait: Option<&spans::WaitSpan>,
    ) -> HoldObservation {
        HoldObservation {
            span: spans::HoldSpan::new(self.backend, target, self.names, token, wait),
            meter: meters::HoldMeter::new(self.backend, target.kind().as_str()),
        }
    }

    /// A task got a lock that another task of this process released at `given_up`. The clock is
    /// read only if a recorder is installed.
    pub(crate) fn handed_on(&self, target: &LockTarget, given_up: BootInstant) {
        meters::handed_on(self.backend, target.kind().as_str(), given_up);
    }

    /// Reports these confirmed extensions.
    pub(crate) fn extended(&self, extensions: &ExtensionMeter) {
        extensions.tell(self.backend);
    }
}

/// A task that requests a lock. If it is dropped without an answer, the task gave up.
#[derive(Debug)]
pub(crate) struct WaitObservation<'a> {
    observer: &'a Observer,
    target: &'a LockTarget,
    span: spans::WaitSpan,
    meter: meters::WaitMeter,
}

impl WaitObservation<'_> {
    /// Runs the work of the wait inside its span.
    pub(crate) fn around<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        self.span.around(work)
    }

    /// The task got the lock.
    pub(crate) fn granted(mut self, token: Option<FencingToken>) -> HoldObservation {
        self.span.granted(token);
        self.ended(words::GRANTED);
        self.observer
            .holds_after(self.target, token, Some(&self.span))
    }

    /// The task did not wait, and another owner holds the lock.
    pub(crate) fn busy(mut self) {
        self.ended(words::BUSY);
    }

    /// The wait ended with this error.
    pub(crate) fn failed(mut self, error: &LockError) {
        self.ended(words::of_error(error));
    }

    fn ended(&mut self, outcome: &'static str) {
        self.span.ended(outcome);
        self.meter.ended(outcome);
    }
}

/// How many waiters are ahead of this task's current wait in the backend's queue. No answer came
/// yet.
pub(crate) fn unknown_position() -> PositionField {
    PositionField::new("lock.ahead", None)
}

/// Reports how many tasks of this process were waiting when this task's wait began.
pub(crate) fn stands_behind_here(ahead: u64) {
    let _told_at_once = PositionField::new("lock.ahead_here", Some(ahead));
}

/// A held lock. The hold ends when it is dropped.
#[derive(Debug)]
pub(crate) struct HoldObservation {
    span: spans::HoldSpan,
    meter: meters::HoldMeter,
}

/// The [`HoldObservation`] of a lease, while it lasts.
#[derive(Debug, Default)]
pub(crate) struct ObservedHold(Mutex<Option<HoldObservation>>);

impl ObservedHold {
    /// Starts the hold. It may be `over` already, after [`end`](Self::end) found nothing.
    pub(crate) fn begin<'a>(
        &self,
        holding: HoldObservation,
        over: impl FnOnce() -> Option<&'a LostCause>,
    ) {
        *lock(&self.0) = Some(holding);
        if let Some(cause) = over() {
            self.end(cause);
        }
    }

    /// Ends the hold with this cause. Only the first call counts.
    pub(crate) fn end(&self, cause: &LostCause) {
        let holding = lock(&self.0).take();
        if let Some(mut holding) = holding {
            let cause = words::of_cause(cause);
            holding.span.ended(cause);
            holding.meter.ended(cause);
        }
    }
}
