//! When the watchdog must act on a lease, and which length it requests.

use std::time::Duration;

use locktopus_contract::clock::BootInstant;

use super::{BATCHES_PER_PERIOD, RENEWALS_PER_LEASE};
use crate::engine::holding::lease::BackendLease;
use crate::engine::holding::services::Services;

/// Slack for a call past its deadline, and for a busy scheduler.
const SCHEDULER_SLACK: Duration = Duration::from_millis(50);

/// When to renew a lease that was confirmed at `now`. The grid may have any fixed origin.
pub(super) fn renewal_time(origin: BootInstant, now: BootInstant, lease: Duration) -> BootInstant {
    let period = lease / RENEWALS_PER_LEASE;
    let grid = nanos(period / BATCHES_PER_PERIOD).max(1_000_000);
    let at = now + period;
    let past = nanos(at.since(origin)) % grid;
    at.before(Duration::from_nanos(past))
}

/// The watchdog resends a renewal without an answer after this time. Every call ends sooner, so an
/// answer is overdue only if the runtime of the call has ended or is stuck.
pub(super) fn answer_within(lease: Duration) -> Duration {
    lease * 5 / 12 + SCHEDULER_SLACK
}

/// Saturates after half a millennium.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The length to request: the usual one, but no longer than the maximum hold time needs.
pub(super) fn renewal_length(
    lease: &BackendLease,
    now: BootInstant,
    services: &Services,
) -> Duration {
    let (usual, end) = lease.length_and_end();
    let Some(end) = end else {
        return usual;
    };
    let needed = end.since(now) + services.settings.margin.of(usual);
    // Rounded up to whole milliseconds, so that neighbours still share a batch.
    let needed = Duration::from_millis(u64::try_from(needed.as_millis() + 1).unwrap_or(u64::MAX));
    usual.min(needed)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use locktopus_contract::clock;

    use super::*;
    use crate::engine::settings::Settings;
    use crate::test_backend::granted;
    use locktopus_memory::MemoryBackend;

    const SECOND: Duration = Duration::from_secs(1);

    /// A lease of 30 seconds is renewed after ten, on a grid of 312.5 milliseconds.
    #[tokio::test(start_paused = true)]
    async fn a_renewal_is_due_after_a_third_of_the_lease_rounded_down_to_the_grid() {
        let origin = clock::now();
        let micros = |micros| origin + Duration::from_micros(micros);
        for (now, at) in [
            (0, 10_000_000),
            (312_499, 10_000_000),
            (312_500, 10_312_500),
            (700_000, 10_625_000),
        ] {
            assert_eq!(renewal_time(origin, micros(now), SECOND * 30), micros(at));
        }
        // The grid is no finer than timers are.
        for (now, at) in [(0, 10_000), (400, 10_000), (1_999, 11_000)] {
            let lease = Duration::from_millis(30);
            assert_eq!(renewal_time(origin, micros(now), lease), micros(at));
        }
    }

    /// The rest of the maximum hold time, plus the margin of the usual lease, 307 milliseconds,
    /// plus one.
    #[tokio::test(start_paused = true)]
    async fn a_lease_is_asked_for_that_is_not_longer_than_its_hold_may_be() {
        let backend = Arc::new(MemoryBackend::new());
        let services = Services::start(backend, Settings::default());
        let (now, usual) = (clock::now(), SECOND * 30);
        let ms = Duration::from_millis;
        for (left, asked) in [
            (None, usual),
            (Some(ms(100_000)), usual),
            (Some(ms(29_692)), usual),
            (Some(ms(29_691)), ms(29_999)),
            (Some(ms(2_000)), ms(2_308)),
            (Some(Duration::ZERO), ms(308)),
        ] {
            let lease = granted(usual);
            lease.limit_hold(left.map(|left| now + left));
            assert_eq!(renewal_length(&lease, now, &services), asked, "{left:?}");
        }
    }
}
