//! The clock that all workers of a test share.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Which clock of the machine recorded a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "it is complete")]
pub enum ClockKind {
    /// Nanoseconds since boot, including the time the machine was asleep, because leases run on
    /// meanwhile.
    Boottime,
    /// The monotonic clock, on systems without a boot-time clock.
    Monotonic,
}

/// One clock for all processes of one machine, in nanoseconds.
///
/// Readings of different machines, or from before a reboot, must not be mixed.
///
/// ```
/// use std::time::{Duration, Instant};
/// use locktopus_history::Clock;
///
/// let clock = Clock::new();
/// let now = clock.now_ns();
/// assert!(clock.now_ns() >= now);
/// let end = clock.at(Instant::now() + Duration::from_secs(10));
/// assert!(end >= now + 9_000_000_000);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    kind: ClockKind,
}

/// If two readings are further apart than this, the thread was interrupted between them.
const QUICK_NS: u64 = 20_000;
/// On a busy machine, some conversions stay imprecise rather than become slow.
const TRIES: usize = 5;

impl Clock {
    /// The clock that counts the time asleep, if the machine has one.
    #[must_use]
    pub const fn new() -> Self {
        let kind = if cfg!(any(target_os = "linux", target_os = "android")) {
            ClockKind::Boottime
        } else {
            ClockKind::Monotonic
        };
        Self { kind }
    }

    /// Which clock of the machine it is.
    #[must_use]
    pub const fn kind(&self) -> ClockKind {
        self.kind
    }

    /// Nanoseconds now.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        let time = clock_gettime(self.id());
        let nanos = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
        u64::try_from(nanos).unwrap_or(0)
    }

    /// The reading after `remaining` has passed, in nanoseconds; for the remaining time that a
    /// guard reports.
    #[must_use]
    pub fn after(&self, remaining: Duration) -> u64 {
        self.now_ns().saturating_add(nanos(remaining))
    }

    /// The reading at `instant`, never later than it really is, in nanoseconds.
    ///
    /// For the `valid_until()` of a guard, which is a tokio instant: `into_std()` first.
    #[must_use]
    pub fn at(&self, instant: Instant) -> u64 {
        let mut best = (u64::MAX, 0);
        for _ in 0..TRIES {
            let before = self.now_ns();
            let now = Instant::now();
            let took = self.now_ns().saturating_sub(before);
            let reading = if instant >= now {
                before.saturating_add(nanos(instant - now))
            } else {
                before.saturating_sub(nanos(now - instant))
            };
            best = best.min((took, reading));
            if took <= QUICK_NS {
                break;
            }
        }
        best.1
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn id(&self) -> ClockId {
        match self.kind {
            ClockKind::Boottime => ClockId::Boottime,
            ClockKind::Monotonic => ClockId::Monotonic,
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn id(&self) -> ClockId {
        ClockId::Monotonic
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// A duration in nanoseconds; 584 years at most.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_never_placed_too_late() {
        let clock = Clock::new();
        for ms in [0, 1, 5_000] {
            let instant = Instant::now() + Duration::from_millis(ms);
            let reading = clock.at(instant);
            // Read after the conversion, so the same sum can only be later.
            let upper = clock.now_ns() + nanos(Duration::from_millis(ms));
            assert!(reading <= upper);
            assert!(upper - reading < 5_000_000_000, "{}", upper - reading);
        }
    }

    #[test]
    fn instants_in_the_past_are_placed_in_the_past() {
        let clock = Clock::new();
        let past = Instant::now();
        let now = clock.now_ns();
        assert!(clock.at(past) <= clock.now_ns());
        assert!(clock.at(past) <= now + 1_000_000_000);
    }
}
