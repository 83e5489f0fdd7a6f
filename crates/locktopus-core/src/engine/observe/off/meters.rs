//! No metrics.

use std::time::Duration;

use locktopus_contract::clock::BootInstant;

pub(super) fn describe() {}

#[derive(Debug)]
pub(super) struct Wait;

impl Wait {
    pub(super) fn new(_: &'static str, _: &'static str) -> Self {
        Self
    }

    pub(super) fn ended(&mut self, _: &'static str) {}
}

#[derive(Debug)]
pub(super) struct Hold;

impl Hold {
    pub(super) fn new(_: &'static str, _: &'static str) -> Self {
        Self
    }

    pub(super) fn ended(&mut self, _: &'static str) {}
}

pub(super) fn handed_on(_: &'static str, _: &'static str, _: BootInstant) {}

#[derive(Debug, Default)]
pub(super) struct Extensions;

impl Extensions {
    pub(super) fn note(&mut self, _: &'static str, _: Duration) {}

    pub(super) fn tell(&self, _: &'static str) {}
}
