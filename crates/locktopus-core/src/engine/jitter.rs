//! Random durations, so that many clients do not act at the same moment.

use std::time::Duration;

use locktopus_contract::internal::random;

/// A random duration between the two.
pub(crate) fn jitter(low: Duration, high: Duration) -> Duration {
    let spread = high.saturating_sub(low).as_nanos();
    let random = u128::from(u64::from_le_bytes(random()));
    low + Duration::from_nanos(u64::try_from((spread * (random >> 32)) >> 32).unwrap_or(u64::MAX))
}
