//! The clock that all processes of a run share.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on the machine's monotonic clock.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let nanos = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    u64::try_from(nanos).unwrap_or(0)
}

/// Nanoseconds since a moment on that clock.
pub(super) fn since(start_ns: u64) -> u64 {
    monotonic_ns().saturating_sub(start_ns)
}
