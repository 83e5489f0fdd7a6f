//! No metrics.

use std::time::Duration;

use locktopus_contract::LockTarget;
use locktopus_contract::clock::BootInstant;

pub(super) fn describe() {}

#[derive(Debug)]
pub(super) struct WaitMeter;

impl WaitMeter {
    pub(super) fn new(_: &'static str, _: &'static str) -> Self {
        Self
    }

    pub(super) fn ended(&mut self, _: &'static str) {}
}

#[derive(Debug)]
pub(super) struct HoldMeter;

impl HoldMeter {
    pub(super) fn new(_: &'static str, _: &'static str) -> Self {
        Self
    }

    pub(super) fn ended(&mut self, _: &'static str) {}
}

pub(super) fn handed_on(_: &'static str, _: &'static str, _: BootInstant) {}

#[derive(Debug, Default)]
pub(crate) struct ExtensionMeter {}

impl ExtensionMeter {
    pub(crate) fn note(&mut self, _: &LockTarget, _: Duration) {}

    pub(super) fn tell(&self, _: &'static str) {}
}
