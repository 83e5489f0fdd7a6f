//! How long a lease lasts: its length, what the backend confirmed, and when it must end.

use std::time::Duration;

use crate::contract::clock::BootInstant;

/// How long a lease lasts.
#[derive(Clone, Copy)]
pub(super) struct Term {
    pub(super) lease: Duration,
    /// The longest lease ever asked for: what the server may hold it for, confirmed or not.
    pub(super) longest: Duration,
    /// What the backend confirmed.
    pub(super) valid_until: BootInstant,
    /// After this instant it is neither renewed nor believed in.
    pub(super) hold_until: Option<BootInstant>,
    /// Until this instant it stays held, whoever gives it back.
    pub(super) linger_until: Option<BootInstant>,
}

impl Term {
    pub(super) fn valid_until(&self) -> BootInstant {
        self.hold_until
            .map_or(self.valid_until, |end| end.min(self.valid_until))
    }
}
