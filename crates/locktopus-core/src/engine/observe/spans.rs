//! Spans, through `tracing`.

use locktopus_contract::{FencingToken, LockTarget};
use tracing::field::Empty;
use tracing::instrument::{Instrument as _, Instrumented};
use tracing::{Span, info_span};

/// The lock's name for both spans, if wanted.
fn name(target: &LockTarget, names: bool) -> Option<&str> {
    names.then(|| target.name().as_str())
}

/// A task that requests a lock.
#[derive(Debug)]
pub(super) struct WaitSpan {
    span: Span,
    told: bool,
}

impl WaitSpan {
    pub(super) fn new(backend: &'static str, target: &LockTarget, names: bool) -> Self {
        let span = info_span!(
            target: "locktopus",
            "lock.wait",
            lock.kind = target.kind().as_str(),
            lock.backend = backend,
            lock.name = name(target, names),
            lock.ahead = Empty,
            lock.ahead_here = Empty,
            lock.outcome = Empty,
            lock.token = Empty,
        );
        Self { span, told: false }
    }

    pub(super) fn around<F: Future>(&self, work: F) -> Instrumented<F> {
        work.instrument(self.span.clone())
    }

    pub(super) fn granted(&self, token: Option<FencingToken>) {
        self.span.record("lock.token", token_number(token));
    }

    pub(super) fn ended(&mut self, outcome: &'static str) {
        self.told = true;
        self.span.record("lock.outcome", outcome);
    }
}

impl Drop for WaitSpan {
    fn drop(&mut self) {
        if !self.told {
            self.ended("dropped");
        }
    }
}

/// The position of a wait. It is recorded once, on drop: OpenTelemetry keeps all values that a
/// field ever had, and accepts only so many fields.
#[derive(Debug)]
pub(crate) struct PositionField {
    field: &'static str,
    ahead: Option<u64>,
}

impl PositionField {
    pub(super) fn new(field: &'static str, ahead: Option<u64>) -> Self {
        Self { field, ahead }
    }

    pub(crate) fn is(&mut self, ahead: u64) {
        self.ahead = Some(ahead);
    }

    /// Whether the program's subscriber wants the wait's span. If so, that is the innermost span.
    pub(crate) fn is_wanted(&self) -> bool {
        let span = Span::current();
        let metadata = span.metadata();
        metadata.is_some_and(|span| span.fields().field(self.field).is_some())
    }
}

impl Drop for PositionField {
    /// The wait's span is the innermost one when the engine drops this. If the subscriber does not
    /// want that span, the innermost one is the program's own, which lacks this field.
    fn drop(&mut self) {
        Span::current().record(self.field, self.ahead.map(number));
    }
}

/// Attributes of OpenTelemetry are signed. Other numbers would become text.
fn number(of: u64) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

fn token_number(token: Option<FencingToken>) -> Option<i64> {
    token.map(|token| number(token.get()))
}

/// A held lock.
#[derive(Debug)]
pub(super) struct HoldSpan {
    span: Span,
}

impl HoldSpan {
    pub(super) fn new(
        backend: &'static str,
        target: &LockTarget,
        names: bool,
        token: Option<FencingToken>,
        wait: Option<&WaitSpan>,
    ) -> Self {
        let span = info_span!(
            target: "locktopus",
            "lock.hold",
            lock.kind = target.kind().as_str(),
            lock.backend = backend,
            lock.name = name(target, names),
            lock.token = token_number(token),
            lock.end = Empty,
        );
        if let Some(wait) = wait {
            span.follows_from(&wait.span);
        }
        Self { span }
    }

    pub(super) fn ended(&mut self, cause: &'static str) {
        self.span.record("lock.end", cause);
    }
}
