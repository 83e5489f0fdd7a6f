//! No spans.

use locktopus_contract::{FencingToken, LockTarget};

#[derive(Debug)]
pub(super) struct WaitSpan;

impl WaitSpan {
    pub(super) fn new(_: &'static str, _: &LockTarget, _: bool) -> Self {
        Self
    }

    pub(super) fn around<F: Future>(&self, work: F) -> F {
        work
    }

    pub(super) fn granted(&self, _: Option<FencingToken>) {}

    pub(super) fn ended(&mut self, _: &'static str) {}
}

#[derive(Debug)]
pub(crate) struct PositionField;

impl PositionField {
    pub(super) fn new(_: &'static str, _: Option<u64>) -> Self {
        Self
    }

    pub(crate) fn is(&mut self, _: u64) {}

    pub(crate) fn is_wanted(&self) -> bool {
        false
    }
}

#[derive(Debug)]
pub(super) struct HoldSpan;

impl HoldSpan {
    pub(super) fn new(
        _: &'static str,
        _: &LockTarget,
        _: bool,
        _: Option<FencingToken>,
        _: Option<&WaitSpan>,
    ) -> Self {
        Self
    }

    pub(super) fn ended(&mut self, _: &'static str) {}
}
