//! A monotonic clock that includes time asleep, for backends and layers that measure leases
//! themselves. Users of locks get instants of `tokio::time`.
//!
//! A lease keeps running while the holder's machine is suspended, but `Instant` stops on Linux,
//! Android and Apple's systems. This clock therefore adds the time asleep to tokio's clock: see
//! `boottime` for Linux and Android, and `sleeps` for Apple's systems. It has a type of its own, so
//! that you cannot compare its readings with timer instants by mistake. [`BootInstant::timer`] and
//! [`BootInstant::of_timer`] convert between the two, as of now.
//!
//! Sums of instants and user-supplied durations are capped here and never overflow.

use std::time::Duration;

use tokio::time::Instant;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod boottime;
#[cfg(any(target_vendor = "apple", test))]
mod sleeps;

/// The longest wait: a century. Longer durations are cut to this, because clocks cannot represent
/// their end.
pub const LONGEST_WAIT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// An instant on the clock that includes time asleep.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::clock::{self, BootInstant};
/// let sent = clock::now();
/// let valid_until = sent + Duration::from_secs(30);
/// assert_eq!(valid_until.since(sent), Duration::from_secs(30));
/// assert_eq!(sent.since(valid_until), Duration::ZERO);
/// assert_eq!(valid_until.before(Duration::from_secs(30)), sent);
/// assert!(BootInstant::of_timer(valid_until.timer()) <= valid_until);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootInstant(Instant);

/// The current instant on the suspend-aware clock.
///
/// ```
/// use locktopus_contract::clock;
/// let begun = clock::now();
/// assert!(clock::now() >= begun);
/// ```
#[must_use]
pub fn now() -> BootInstant {
    BootInstant::of_timer(Instant::now())
}

/// The instant `time` from now, for a timer.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::clock;
/// let deadline = clock::timer_in(Duration::MAX); // cut to a value that the clock can represent
/// assert!(deadline > tokio::time::Instant::now());
/// ```
#[must_use]
pub fn timer_in(time: Duration) -> Instant {
    timer_after(Instant::now(), time)
}

/// The instant `time` after another one, for a timer.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::clock;
/// let now = tokio::time::Instant::now();
/// assert_eq!(clock::timer_after(now, Duration::from_secs(2)), now + Duration::from_secs(2));
/// ```
#[must_use]
pub fn timer_after(from: Instant, time: Duration) -> Instant {
    from + time.min(LONGEST_WAIT)
}

impl BootInstant {
    /// The reading of this clock when a tokio timer for `at` fires, unless the machine sleeps
    /// first.
    #[must_use]
    pub fn of_timer(at: Instant) -> Self {
        Self(at + suspended())
    }

    /// The instant at which a tokio timer must fire to match this one.
    #[must_use]
    pub fn timer(self) -> Instant {
        self.0.checked_sub(suspended()).unwrap_or_else(Instant::now)
    }

    /// The time since `earlier`; zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// The instant `time` earlier, or the same one if the clock does not go back that far.
    #[must_use]
    pub fn before(self, time: Duration) -> Self {
        Self(self.0.checked_sub(time).unwrap_or(self.0))
    }
}

/// Durations longer than `LONGEST_WAIT` count as `LONGEST_WAIT`.
impl std::ops::Add<Duration> for BootInstant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0 + time.min(LONGEST_WAIT))
    }
}

/// How long the machine has slept since this process first asked.
#[cfg(not(test))]
pub(crate) fn suspended() -> Duration {
    #[cfg(feature = "simulation")]
    if let Some(asleep) = crate::simulation::asleep() {
        return asleep;
    }
    of_this_process()
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(test)))]
use self::boottime::of_this_process;
#[cfg(all(target_vendor = "apple", not(test)))]
use self::sleeps::of_this_process;

/// On other systems, the standard library's clock already includes the time asleep, or there is no
/// way to know.
#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    test
)))]
fn of_this_process() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
pub(crate) use self::asleep::{sleep_machine, suspended};

/// A machine that sleeps when a test says so.
#[cfg(test)]
mod asleep {
    use std::cell::Cell;
    use std::time::Duration;

    thread_local! {
        static SUSPENDED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    /// Makes the machine of this thread sleep for this long, just now.
    pub(crate) fn sleep_machine(time: Duration) {
        SUSPENDED.set(SUSPENDED.get() + time);
    }

    pub(crate) fn suspended() -> Duration {
        SUSPENDED.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_asleep_counts_here_and_not_for_timers() {
        let (before, timer) = (now(), Instant::now());
        sleep_machine(Duration::from_secs(60));
        assert!(now().since(before) >= Duration::from_secs(60));
        assert_eq!(BootInstant::of_timer(timer).timer(), timer);
        assert!(before.timer() < timer);
    }

    #[test]
    fn no_sum_is_too_large() {
        let now = now();
        let longest = now + LONGEST_WAIT;
        for part in [1, 2, 3, 1_000] {
            assert_eq!(now + Duration::MAX / part, longest);
            assert!(timer_in(Duration::MAX / part) > Instant::now());
        }
        assert_eq!(now.since(longest), Duration::ZERO);
    }

    #[test]
    fn the_longest_time_is_a_century() {
        let day = Duration::from_secs(86_400);
        assert_eq!(LONGEST_WAIT, day * 36_500);
    }
}
