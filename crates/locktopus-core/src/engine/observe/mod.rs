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
use std::time::Duration;

use locktopus_contract::clock::BootInstant;
use locktopus_contract::{FencingToken, LockTarget, lock};

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
    pub(crate) fn waits<'a>(&'a self, target: &'a LockTarget) -> Waiting<'a> {
        Waiting {
            observer: self,
            target,
            span: spans::Wait::new(self.backend, target, self.names),
            meter: meters::Wait::new(self.backend, target.kind().as_str()),
        }
    }

    /// A task has a lock without a wait of its own: it took a ticket, or one of several locks
    /// requested together.
    pub(crate) fn holds(&self, target: &LockTarget, token: Option<FencingToken>) -> Holding {
        self.holds_after(target, token, None)
    }

    fn holds_after(
        &self,
        target: &LockTarget,
        token: Option<FencingToken>,
        wait: Option<&spans::Wait>,
    ) -> Holding {
        Holding {
            span: spans::Hold::new(self.backend, target, self.names, token, wait),
            meter: meters::Hold::new(self.backend, target.kind().as_str()),
        }
    }

    /// A task got a lock that another task of this process released at `given_up`. The clock is
    /// read only if a recorder is installed.
    pub(crate) fn handed_on(&self, target: &LockTarget, given_up: BootInstant) {
        meters::handed_on(self.backend, target.kind().as_str(), given_up);
    }

    /// Reports these confirmed extensions.
    pub(crate) fn extended(&self, extensions: &Extensions) {
        extensions.0.tell(self.backend);
    }
}

/// A task that requests a lock. If it is dropped without an answer, the task gave up.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    observer: &'a Observer,
    target: &'a LockTarget,
    span: spans::Wait,
    meter: meters::Wait,
}

impl Waiting<'_> {
    /// Runs the work of the wait inside its span.
    pub(crate) fn around<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        self.span.around(work)
    }

    /// The task got the lock.
    pub(crate) fn granted(mut self, token: Option<FencingToken>) -> Holding {
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

/// How many waiters were ahead of this task's current wait in the backend's queue, by the last
/// answer. Drop it in that task.
#[derive(Debug)]
pub(crate) struct Position(spans::Position);

impl Position {
    /// No answer came yet.
    pub(crate) fn unknown() -> Self {
        Self(spans::Position::new("lock.ahead", None))
    }

    pub(crate) fn is(&mut self, ahead: u64) {
        self.0.is(ahead);
    }

    /// Whether a subscriber wants the position. Call it in the wait's task.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }
}

/// Reports how many tasks of this process were waiting when this task's wait began.
pub(crate) fn stands_behind_here(ahead: u64) {
    let _told_at_once = spans::Position::new("lock.ahead_here", Some(ahead));
}

/// A held lock. The hold ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Holding {
    span: spans::Hold,
    meter: meters::Hold,
}

/// The [`Holding`] of a lease, while it lasts.
#[derive(Debug, Default)]
pub(crate) struct Hold(Mutex<Option<Holding>>);

impl Hold {
    /// Starts the hold. It may be `over` already, after [`end`](Self::end) found nothing.
    pub(crate) fn begin<'a>(&self, holding: Holding, over: impl FnOnce() -> Option<&'a LostCause>) {
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

/// How late confirmed extensions were, until they are reported.
#[derive(Debug, Default)]
pub(crate) struct Extensions(meters::Extensions);

impl Extensions {
    /// Notes that an extension was confirmed this long after it was due.
    pub(crate) fn note(&mut self, target: &LockTarget, late: Duration) {
        self.0.note(target.kind().as_str(), late);
    }
}
