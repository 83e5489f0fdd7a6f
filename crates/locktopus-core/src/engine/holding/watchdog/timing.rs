//! When the watchdog has something to do for a lease, and for how long it asks.

use std::time::Duration;

use super::{BATCHES_PER_PERIOD, RENEWALS_PER_LEASE};
use crate::contract::clock::BootInstant;
use crate::engine::holding::lease::LeaseState;
use crate::engine::holding::services::Services;

/// When to renew a lease that was confirmed at `now`. Any fixed origin will do for the grid.
pub(super) fn renewal(origin: BootInstant, now: BootInstant, lease: Duration) -> BootInstant {
    let period = lease / RENEWALS_PER_LEASE;
    let grid = nanos(period / BATCHES_PER_PERIOD).max(1_000_000);
    let at = now + period;
    let past = nanos(at.since(origin)) % grid;
    at.before(Duration::from_nanos(past))
}

/// As many as there can be in half a millennium.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The lease to ask for: the usual one, but not longer than the maximum hold time needs.
pub(super) fn renewal_lease(lease: &LeaseState, now: BootInstant, services: &Services) -> Duration {
    let (usual, end) = lease.lease_and_end();
    let Some(end) = end else {
        return usual;
    };
    let needed = end.since(now) + services.settings.margin.of(usual);
    // Rounded up to the grid of batches, so that neighbours still share one.
    let needed = Duration::from_millis(u64::try_from(needed.as_millis() + 1).unwrap_or(u64::MAX));
    usual.min(needed)
}
