//! When the watchdog has something to do for a lease, and for how long it asks.

use std::time::Duration;

use tokio::time::Instant;

use super::{BATCHES_PER_PERIOD, FARTHEST, RENEWALS_PER_LEASE};
use crate::clock;
use crate::lease::LeaseState;
use crate::services::Services;

/// When to renew a lease that was confirmed just now.
pub(super) fn renewal(now: Instant, lease: Duration) -> Instant {
    let period = lease / RENEWALS_PER_LEASE;
    let grid = (period / BATCHES_PER_PERIOD).max(Duration::from_millis(1));
    let at = now + period;
    // Any fixed origin will do for the grid.
    let origin = *ORIGIN.get_or_init(Instant::now);
    let past = at.saturating_duration_since(origin).as_nanos() % grid.as_nanos();
    at - Duration::from_nanos(u64::try_from(past).unwrap_or(0))
}

static ORIGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();

/// When a timer must fire for `at`. The wheel cannot count further than two years; firing early does no
/// harm, because whatever is not due then is put back.
pub(super) fn timer(at: Instant) -> Instant {
    clock::timer(at).min(Instant::now() + FARTHEST)
}

/// The next instant at which something must be done for a lease.
pub(super) fn next(lease: &LeaseState, renew_at: Option<Instant>) -> Instant {
    let valid_until = lease.valid_until();
    renew_at.map_or(valid_until, |at| at.min(valid_until))
}

/// The lease to ask for: the usual one, but not longer than the maximum hold time needs.
pub(super) fn renewal_lease(lease: &LeaseState, now: Instant, services: &Services) -> Duration {
    let usual = lease.lease();
    let Some(end) = lease.hold_until() else {
        return usual;
    };
    let needed = end.saturating_duration_since(now) + services.settings.margin.of(usual);
    // Rounded up to the grid of batches, so that neighbours still share one.
    let needed = Duration::from_millis(u64::try_from(needed.as_millis() + 1).unwrap_or(u64::MAX));
    usual.min(needed)
}
