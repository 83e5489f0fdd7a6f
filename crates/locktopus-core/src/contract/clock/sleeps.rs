//! How long the machine was asleep, from two clocks of which one goes on meanwhile: for Apple's systems.
//!
//! There `Instant` is `CLOCK_UPTIME_RAW`, which stands still, and `CLOCK_MONOTONIC` goes on. But the latter is slewed with the wall clock,
//! by 500 µs in each second or more, and within days the two are further apart than any sleep is long. So what counts is not by how
//! much they differ but by how much more than at the last look: a slew is slow, a sleep is a jump.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::contract::sync::lock;

/// A jump of less than this means nothing: no machine falls asleep and wakes up again within it.
const JUMP: Duration = Duration::from_millis(10);

/// Readings further apart than this are not of one moment.
const ONE_MOMENT: Duration = Duration::from_millis(1);

/// What this process knows.
static SLEEPS: Mutex<Option<(Instant, Sleeps)>> = Mutex::new(None);

/// How long the machine was asleep since this process first asked.
pub(super) fn of_this_process() -> Duration {
    let mut known = lock(&SLEEPS);
    let (origin, sleeps) = known.get_or_insert_with(|| (Instant::now(), Sleeps::default()));
    // Read under the lock, so that no reading is older than the last one.
    let before = origin.elapsed();
    let time = clock_gettime(ClockId::Monotonic);
    let after = origin.elapsed();
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    sleeps.look(Duration::new(seconds, nanos), (before, after))
}

/// What was seen of two clocks.
#[derive(Debug, Default)]
struct Sleeps {
    /// The clock that goes on, and the one that stands still while the machine sleeps.
    last: Option<(Duration, Duration)>,
    total: Duration,
}

impl Sleeps {
    /// What the two clocks show: that which goes on, and the other one before and after that. The time asleep up to now.
    fn look(&mut self, goes_on: Duration, (before, after): (Duration, Duration)) -> Duration {
        // This thread had to wait for the processor in between: the next look tells.
        if after.saturating_sub(before) > ONE_MOMENT {
            return self.total;
        }
        let Some((went_on, stood)) = self.last.replace((goes_on, after)) else {
            return self.total;
        };
        let passed = goes_on.saturating_sub(went_on);
        let jump = passed.saturating_sub(after.saturating_sub(stood));
        if jump >= JUMP {
            self.total = self.total.saturating_add(jump);
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
        assert_eq!(sleeps.look(goes_on, (awake, awake)), Duration::ZERO);
        // A day of looks, each a second after the last: by then the clocks are 43 s apart.
        for _ in 0..86_400 {
            awake += 1_000 * MS;
            goes_on += 1_000 * MS + MS / 2;
            assert_eq!(sleeps.look(goes_on, (awake, awake)), Duration::ZERO);
        }
        goes_on += HOUR;
        assert_eq!(sleeps.look(goes_on, (awake, awake)), HOUR);
        // The other way round nothing is lost of the next one.
        for _ in 0..86_400 {
            awake += 1_000 * MS;
            goes_on += 1_000 * MS - MS / 2;
            assert_eq!(sleeps.look(goes_on, (awake, awake)), HOUR);
        }
        goes_on += JUMP;
        assert_eq!(sleeps.look(goes_on, (awake, awake)), HOUR + JUMP);
    }

    #[test]
    fn a_thread_that_waits_between_two_readings_was_not_asleep() {
        let mut sleeps = Sleeps::default();
        assert_eq!(sleeps.look(HOUR, (MS, MS)), Duration::ZERO);
        let late = (2 * MS, 90 * MS);
        assert_eq!(sleeps.look(HOUR + MS, late), Duration::ZERO);
        let now = (100 * MS, 100 * MS);
        assert_eq!(sleeps.look(HOUR + 99 * MS, now), Duration::ZERO);
        // And a sleep that such a look did not see is seen by the next one.
        let late = (101 * MS, 190 * MS);
        assert_eq!(sleeps.look(2 * HOUR, late), Duration::ZERO);
        let now = (200 * MS, 200 * MS);
        assert_eq!(sleeps.look(2 * HOUR + 199 * MS, now), HOUR);
        let one_moment = (300 * MS, 300 * MS + ONE_MOMENT);
        assert_eq!(sleeps.look(3 * HOUR + 300 * MS, one_moment), 2 * HOUR);
    }

    /// On Linux both clocks stand still, and here nobody sleeps.
    #[test]
    fn a_machine_that_is_awake_is_not_asleep() {
        for _ in 0..1_000 {
            assert_eq!(of_this_process(), Duration::ZERO);
        }
    }
}
