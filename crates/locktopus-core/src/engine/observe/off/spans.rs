//! No spans.

use locktopus_contract::{FencingToken, LockTarget};

#[derive(Debug)]
pub(super) struct Wait;

impl Wait {
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
pub(super) struct Position;

impl Position {
    pub(super) fn new(_: &'static str, _: Option<u64>) -> Self {
        Self
    }

    pub(super) fn is(&mut self, _: u64) {}

    pub(super) fn is_wanted(&self) -> bool {
        false
    }
}

#[derive(Debug)]
pub(super) struct Hold;

impl Hold {
    pub(super) fn new(
        _: &'static str,
        _: &LockTarget,
        _: bool,
        _: Option<FencingToken>,
        _: Option<&Wait>,
    ) -> Self {
        Self
    }

    pub(super) fn ended(&mut self, _: &'static str) {}
}
