//! How long the machine slept, from two clocks, only one of them running during sleep: for Apple's
//! systems.
//!
//! There, `Instant` is `CLOCK_UPTIME_RAW`, which stops during sleep, and `CLOCK_MONOTONIC` keeps
//! running. But the latter is slewed with the wall clock, by 500 µs or more in each second. Within
//! days, the two clocks drift further apart than a typical sleep lasts. So this module looks at how
//! much the difference grew since the last check: a slew is slow, a sleep is a jump.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::sync::lock;

/// A smaller jump means nothing: no machine suspends and wakes within it.
const JUMP: Duration = Duration::from_millis(10);

/// Readings further apart than this do not count as one moment.
const ONE_MOMENT: Duration = Duration::from_millis(1);

/// What this process has seen so far.
static SLEEPS: Mutex<Option<(Instant, Sleeps)>> = Mutex::new(None);

/// How often to try, in case the thread has to wait between two readings. Even one wait is rare.
const TRIES: usize = 8;

/// How long the machine has slept since this process first asked.
pub(super) fn of_this_process() -> Duration {
    let mut known = lock(&SLEEPS);
    let (origin, sleeps) = known.get_or_insert_with(|| (Instant::now(), Sleeps::default()));
    // Read under the lock, so that no reading is older than the previous one.
    let readings = of_one_moment(|| {
        let before = origin.elapsed();
        let time = clock_gettime(ClockId::Monotonic);
        let after = origin.elapsed();
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
        (Duration::new(seconds, nanos), (before, after))
    });
    sleeps.look(readings)
}

/// The clock that runs during sleep, and the other clock before and after that reading.
type Readings = (Duration, (Duration, Duration));

fn is_of_one_moment((_, (before, after)): Readings) -> bool {
    after.saturating_sub(before) <= ONE_MOMENT
}

/// Readings of one moment, or those of the last try.
fn of_one_moment(mut read: impl FnMut() -> Readings) -> Readings {
    let mut tries = 1;
    loop {
        let readings = read();
        if is_of_one_moment(readings) || tries == TRIES {
            return readings;
        }
        tries += 1;
    }
}

/// The observations of both clocks.
#[derive(Debug, Default)]
struct Sleeps {
    /// The last readings: of the clock that runs during sleep, and of the one that stops.
    last: Option<(Duration, Duration)>,
    total: Duration,
}

impl Sleeps {
    /// The total time asleep up to these readings.
    fn look(&mut self, readings: Readings) -> Duration {
        let (goes_on, (before, after)) = readings;
        let Some((went_on, stood)) = self.last else {
            self.last = Some((goes_on, after));
            return self.total;
        };
        let passed = goes_on.saturating_sub(went_on);
        // This thread may have waited for the processor between its readings. This much was sleep
        // at least ...
        if passed.saturating_sub(after.saturating_sub(stood)) >= JUMP {
            // ... and this much at most. Take the maximum: a lease that ends too late is worse than
            // one that ends too early.
            let asleep = passed.saturating_sub(before.saturating_sub(stood));
            self.total = self.total.saturating_add(asleep);
            self.last = Some((goes_on, before));
        } else if is_of_one_moment(readings) {
            self.last = Some((goes_on, after));
        }
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_jump_is_a_sleep_and_a_slew_is_none() {
        let mut sleeps = Sleeps::default();
        let (mut goes_on, mut awake) = (7 * HOUR, Duration::ZERO);
        assert_eq!(sleeps.look((goes_on, (awake, awake))), Duration::ZERO);
        // A day of checks, one a second: by then the clocks are 43 s apart.
        for _ in 0..86_400 {
            awake += 1_000 * MS;
            goes_on += 1_000 * MS + MS / 2;
            assert_eq!(sleeps.look((goes_on, (awake, awake))), Duration::ZERO);
        }
        goes_on += HOUR;
        assert_eq!(sleeps.look((goes_on, (awake, awake))), HOUR);
        // In the other direction, the next sleep still counts in full.
        for _ in 0..86_400 {
            awake += 1_000 * MS;
            goes_on += 1_000 * MS - MS / 2;
            assert_eq!(sleeps.look((goes_on, (awake, awake))), HOUR);
        }
        goes_on += JUMP;
        assert_eq!(sleeps.look((goes_on, (awake, awake))), HOUR + JUMP);
    }

    #[test]
    fn a_thread_that_waits_between_two_readings_was_not_asleep() {
        let mut sleeps = Sleeps::default();
        assert_eq!(sleeps.look((HOUR, (MS, MS))), Duration::ZERO);
        let late = (2 * MS, 90 * MS);
        assert_eq!(sleeps.look((HOUR + MS, late)), Duration::ZERO);
        let now = (100 * MS, 100 * MS);
        assert_eq!(sleeps.look((HOUR + 99 * MS, now)), Duration::ZERO);
    }

    /// A caller that asks whether a lease is over cannot wait for the next check.
    #[test]
    fn a_sleep_counts_at_once_and_once_though_a_thread_waits() {
        let mut sleeps = Sleeps::default();
        assert_eq!(sleeps.look((HOUR, (MS, MS))), Duration::ZERO);
        // The thread waits after reading the clock that runs, and then before.
        let late = (101 * MS, 190 * MS);
        assert_eq!(sleeps.look((2 * HOUR + 100 * MS, late)), HOUR);
        let now = (200 * MS, 200 * MS);
        assert_eq!(sleeps.look((2 * HOUR + 199 * MS, now)), HOUR);
        let late = (201 * MS, 290 * MS);
        assert_eq!(sleeps.look((3 * HOUR + 289 * MS, late)), 2 * HOUR + 89 * MS);
        let now = (300 * MS, 300 * MS);
        assert_eq!(sleeps.look((3 * HOUR + 299 * MS, now)), 2 * HOUR + 89 * MS);
        let now = (400 * MS, 400 * MS);
        assert_eq!(sleeps.look((4 * HOUR + 399 * MS, now)), 3 * HOUR + 89 * MS);
    }

    #[test]
    fn readings_of_two_moments_are_taken_again() {
        let mut taken = 0;
        let readings = of_one_moment(|| {
            taken += 1;
            let apart = if taken == 3 {
                ONE_MOMENT
            } else {
                ONE_MOMENT + MS
            };
            (HOUR * taken, (MS, MS + apart))
        });
        assert_eq!(readings, (3 * HOUR, (MS, MS + ONE_MOMENT)));
        let mut taken = 0;
        let never_of_one = of_one_moment(|| {
            taken += 1;
            (HOUR, (MS, 3 * MS))
        });
        assert_eq!((never_of_one.0, taken), (HOUR, TRIES));
    }

    /// On Linux both clocks stop during sleep, and here nothing sleeps.
    #[test]
    fn a_machine_that_is_awake_is_not_asleep() {
        for _ in 0..1_000 {
            assert_eq!(of_this_process(), Duration::ZERO);
        }
    }
}
