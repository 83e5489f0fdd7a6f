//! A monotonic clock that notices when the machine was asleep.
//!
//! A lease runs on while the holder's machine is suspended, but `Instant` on Linux does not. The time spent
//! asleep (`CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC`) is therefore added to tokio's clock. Instants made by
//! [`now`] may only be compared with each other; [`timer`] turns one into an instant for a tokio timer.

use std::time::Duration;

use tokio::time::Instant;

/// The current instant on the suspend-aware clock.
pub(crate) fn now() -> Instant {
    Instant::now() + suspended()
}

/// The instant at which a tokio timer must fire for `at` on the suspend-aware clock.
pub(crate) fn timer(at: Instant) -> Instant {
    at.checked_sub(suspended()).unwrap_or_else(Instant::now)
}

/// How long the machine was asleep since this process first asked.
#[cfg(target_os = "linux")]
pub(crate) fn suspended() -> Duration {
    use std::sync::OnceLock;

    use rustix::time::{ClockId, clock_gettime};

    static BASE: OnceLock<i128> = OnceLock::new();
    let nanos = |id| {
        let time = clock_gettime(id);
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    let asleep = nanos(ClockId::Boottime) - nanos(ClockId::Monotonic);
    let since = asleep - BASE.get_or_init(|| asleep);
    // The two readings are not taken at the same moment: small differences mean nothing.
    if since < 10_000_000 {
        Duration::ZERO
    } else {
        Duration::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
    }
}

/// Elsewhere the standard library's clock already counts the time asleep, or there is no way to know.
#[cfg(not(target_os = "linux"))]
pub(crate) fn suspended() -> Duration {
    Duration::ZERO
}
