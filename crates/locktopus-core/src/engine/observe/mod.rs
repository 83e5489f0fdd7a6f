//! What is told of waits and holds to those who watch a program: spans (feature
//! `tracing`) and metrics (feature `metrics`).
//!
//! The engine calls what is here, and no other file knows of the features: without one, its types
//! are empty and its methods do nothing. `docs/observability.md` has the names and units.
//!
//! | file | what is in it |
//! |---|---|
//! | `mod` | what the engine calls |
//! | `words` | the values of labels |
//! | `spans`, `meters` | each of the features |
//! | `off` | the same without them |
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

/// Tells of the waits and holds of one `Locktopus`.
#[derive(Debug)]
pub(crate) struct Observer {
    backend: &'static str,
    /// Whether spans say which lock it is.
    names: bool,
}

impl Observer {
    pub(crate) fn new(backend: &'static str, names: bool) -> Self {
        meters::describe();
        Self { backend, names }
    }

    /// Somebody asks for a lock, and waits for it if it must. Ends when what comes back is dropped.
    pub(crate) fn waits<'a>(&'a self, target: &'a LockTarget) -> Waiting<'a> {
        Waiting {
            observer: self,
            target,
            span: spans::Wait::new(self.backend, target, self.names),
            meter: meters::Wait::new(self.backend, target.kind().as_str()),
        }
    }

    /// Somebody has a lock that it did not wait for: it took a ticket, or one of several locks that
    /// were asked for together.
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

    /// A task of this process has a lock that another one of it gave up at that instant. The clock
    /// is read only if somebody measures.
    pub(crate) fn handed_on(&self, target: &LockTarget, given_up: BootInstant) {
        meters::handed_on(self.backend, target.kind().as_str(), given_up);
    }

    /// These extensions were confirmed.
    pub(crate) fn extended(&self, extensions: &Extensions) {
        extensions.0.tell(self.backend);
    }
}

/// One who asks for a lock. Dropped without an answer, it gave up.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    observer: &'a Observer,
    target: &'a LockTarget,
    span: spans::Wait,
    meter: meters::Wait,
}

impl Waiting<'_> {
    /// Runs what is done meanwhile inside the span of the wait.
    pub(crate) fn around<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        self.span.around(work)
    }

    /// It got the lock.
    pub(crate) fn granted(mut self, token: Option<FencingToken>) -> Holding {
        self.span.granted(token);
        self.ended(words::GRANTED);
        self.observer
            .holds_after(self.target, token, Some(&self.span))
    }

    /// It did not, because somebody else holds it, and it would not wait.
    pub(crate) fn busy(mut self) {
        self.ended(words::BUSY);
    }

    /// It did not, for this reason.
    pub(crate) fn failed(mut self, error: &LockError) {
        self.ended(words::of_error(error));
    }

    fn ended(&mut self, outcome: &'static str) {
        self.span.ended(outcome);
        self.meter.ended(outcome);
    }
}

/// How many the wait under way in this task had before it in the backend's queue when it last
/// heard. To be dropped in that task.
#[derive(Debug)]
pub(crate) struct Position(spans::Position);

impl Position {
    /// Nothing was heard yet.
    pub(crate) fn unknown() -> Self {
        Self(spans::Position::new("lock.ahead", None))
    }

    pub(crate) fn is(&mut self, ahead: u64) {
        self.0.is(ahead);
    }

    /// Whether somebody wants to know. To be asked in the wait's task.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }
}

/// The wait under way in this task came when so many of this process waited.
pub(crate) fn stands_behind_here(ahead: u64) {
    let _told_at_once = spans::Position::new("lock.ahead_here", Some(ahead));
}

/// A lock that is held. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Holding {
    span: spans::Hold,
    meter: meters::Hold,
}

/// The [`Holding`] of a lease, for as long as it is held.
#[derive(Debug, Default)]
pub(crate) struct Hold(Mutex<Option<Holding>>);

impl Hold {
    /// The hold has begun. It may be `over` already, and [`end`](Self::end) have found nothing.
    pub(crate) fn begin<'a>(&self, holding: Holding, over: impl FnOnce() -> Option<&'a LostCause>) {
        *lock(&self.0) = Some(holding);
        if let Some(cause) = over() {
            self.end(cause);
        }
    }

    /// The hold is over, for this reason. Only the first one counts.
    pub(crate) fn end(&self, cause: &LostCause) {
        let holding = lock(&self.0).take();
        if let Some(mut holding) = holding {
            let cause = words::of_cause(cause);
            holding.span.ended(cause);
            holding.meter.ended(cause);
        }
    }
}

/// How late extensions were confirmed that are to be told of.
#[derive(Debug, Default)]
pub(crate) struct Extensions(meters::Extensions);

impl Extensions {
    /// One was confirmed so long after it was due.
    pub(crate) fn note(&mut self, target: &LockTarget, late: Duration) {
        self.0.note(target.kind().as_str(), late);
    }
}
