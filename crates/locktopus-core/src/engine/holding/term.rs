//! How long a lease lasts: its length, what the backend confirmed, and when it must end.

use std::time::Duration;

use locktopus_contract::TokenRetention;
use locktopus_contract::clock::BootInstant;

/// How long a lease lasts.
#[derive(Clone, Copy)]
pub(super) struct Term {
    pub(super) lease: Duration,
    /// The longest lease ever requested. The server may hold the lock this long, confirmed or not.
    pub(super) longest: Duration,
    /// The end of the validity that the backend confirmed.
    pub(super) valid_until: BootInstant,
    /// After this instant the lease is neither renewed nor relied on.
    pub(super) hold_until: Option<BootInstant>,
    /// Until this instant the lock stays held, even if released earlier.
    pub(super) linger_until: Option<BootInstant>,
    /// Until when the backend remembers the token. `None` before the first extension: as long as
    /// after a grant.
    pub(super) token_until: Option<BootInstant>,
}

impl Term {
    pub(super) fn valid_until(&self) -> BootInstant {
        self.hold_until
            .map_or(self.valid_until, |end| end.min(self.valid_until))
    }

    /// How long an extension for this lease must make the backend remember the token. `None` while
    /// three quarters of the retention are left, and twice the lease: so one renewal in a quarter
    /// of the retention asks for it.
    pub(super) fn keep_token(
        &mut self,
        retention: TokenRetention,
        lease: Duration,
        now: BootInstant,
    ) -> Option<Duration> {
        let keep = retention.after_lease(Duration::ZERO)?;
        let granted = self.valid_until.before(self.lease);
        let kept = granted + keep.max(self.lease * 2);
        let until = *self.token_until.get_or_insert(kept);
        let least = (keep * 3 / 4).max(lease * 2);
        // Half a lease more than twice, or each renewal of a long lease would have to ask.
        (until.since(now) < least).then(|| keep.max(lease * 5 / 2))
    }
}
