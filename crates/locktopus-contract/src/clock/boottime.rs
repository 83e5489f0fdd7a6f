//! How long the machine slept, for Linux and Android: `CLOCK_BOOTTIME`, which runs during sleep,
//! compared with `CLOCK_MONOTONIC`, which stops.
//!
//! Both clocks are slewed alike, so only sleep increases their difference. But a thread may have to
//! wait for the processor between the two readings, and that would look like sleep. So only
//! readings taken within one moment count.

use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A smaller difference is not sleep: no machine suspends and wakes within it.
const JUMP: i128 = 10_000_000;

/// Readings further apart than this do not count as one moment.
const ONE_MOMENT: i128 = 1_000_000;

/// How often to try, in case the thread has to wait between two readings. Even one wait is rare.
const TRIES: usize = 8;

/// How long the machine has slept since this process first asked.
pub(super) fn of_this_process() -> Duration {
    static AT_FIRST: OnceLock<i128> = OnceLock::new();
    asleep(&AT_FIRST, nanos)
}

/// A clock's reading, in nanoseconds.
fn nanos(clock: ClockId) -> i128 {
    let time = clock_gettime(clock);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

/// How long the machine has slept since the first call, which records how far `CLOCK_BOOTTIME` was
/// ahead.
fn asleep(at_first: &OnceLock<i128>, clock: impl Fn(ClockId) -> i128) -> Duration {
    let ahead = ahead(clock);
    let asleep = ahead - at_first.get_or_init(|| ahead);
    match asleep < JUMP {
        true => Duration::ZERO,
        false => Duration::from_nanos(u64::try_from(asleep).unwrap_or(u64::MAX)),
    }
}

/// How far `CLOCK_BOOTTIME` is ahead of the other clock, from readings of one moment.
fn ahead(clock: impl Fn(ClockId) -> i128) -> i128 {
    let mut tries = 1;
    loop {
        let before = clock(ClockId::Monotonic);
        let goes_on = clock(ClockId::Boottime);
        let after = clock(ClockId::Monotonic);
        if after - before <= ONE_MOMENT || tries == TRIES {
            return goes_on - before;
        }
        tries += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;

    use super::*;

    const MS: i128 = 1_000_000;

    /// A machine, and how long its thread waits before each of the next readings.
    #[derive(Default)]
    struct Machine {
        awake: Cell<i128>,
        slept: Cell<i128>,
        waits: RefCell<VecDeque<i128>>,
        readings: Cell<usize>,
        at_first: OnceLock<i128>,
    }

    impl Machine {
        fn new(slept: i128) -> Self {
            let machine = Self::default();
            machine.awake.set(500 * MS);
            machine.slept.set(slept);
            machine
        }

        fn sleeps(&self, time: i128) {
            self.slept.set(self.slept.get() + time);
        }

        fn read(&self, clock: ClockId) -> i128 {
            self.readings.set(self.readings.get() + 1);
            let wait = self.waits.borrow_mut().pop_front().unwrap_or(0);
            self.awake.set(self.awake.get() + wait);
            match clock {
                ClockId::Boottime => self.awake.get() + self.slept.get(),
                _ => self.awake.get(),
            }
        }

        /// The result with these waits, and how many readings it takes.
        fn asleep(&self, waits: &[i128]) -> (Duration, usize) {
            self.waits.borrow_mut().extend(waits);
            self.readings.set(0);
            let asleep = asleep(&self.at_first, |clock| self.read(clock));
            assert!(self.waits.borrow().is_empty(), "it reads less often");
            (asleep, self.readings.get())
        }
    }

    #[test]
    fn what_was_slept_before_the_first_look_does_not_count() {
        let machine = Machine::new(7 * MS);
        assert_eq!(machine.asleep(&[]), (Duration::ZERO, 3));
        machine.sleeps(JUMP - 1);
        assert_eq!(machine.asleep(&[]), (Duration::ZERO, 3));
        machine.sleeps(1);
        assert_eq!(machine.asleep(&[]), (Duration::from_millis(10), 3));
        machine.sleeps(3_600_000 * MS);
        let hour = Duration::from_millis(3_600_010);
        assert_eq!(machine.asleep(&[]), (hour, 3));
        machine.sleeps(i128::from(u64::MAX));
        assert_eq!(machine.asleep(&[]).0, Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn a_thread_that_waits_between_two_readings_was_not_asleep() {
        for slept in [0, 7 * MS] {
            let machine = Machine::new(slept);
            // During the first call, the reference for all others.
            let first = [0, 40 * MS, 0, 0, 0, ONE_MOMENT];
            assert_eq!(machine.asleep(&first), (Duration::ZERO, 6));
            assert_eq!(machine.asleep(&[]), (Duration::ZERO, 3));
            // During later calls, without and with sleep.
            for asleep in [Duration::ZERO, Duration::from_millis(20)] {
                for wait in [ONE_MOMENT + 1, JUMP, 60 * MS] {
                    assert_eq!(machine.asleep(&[0, wait]), (asleep, 6));
                    assert_eq!(machine.asleep(&[0, 0, wait]), (asleep, 6));
                    assert_eq!(machine.asleep(&[wait]), (asleep, 3));
                }
                machine.sleeps(20 * MS);
            }
        }
    }

    /// After the last try, its readings count, so that there is an answer.
    #[test]
    fn it_is_not_tried_for_ever() {
        let machine = Machine::new(3 * MS);
        let waits = [0, 0, 2 * MS].repeat(TRIES);
        assert_eq!(machine.asleep(&waits), (Duration::ZERO, 3 * TRIES));
        machine.sleeps(30 * MS);
        assert_eq!(machine.asleep(&[]).0, Duration::from_millis(30));
    }

    #[test]
    fn clocks_are_read_in_nanoseconds() {
        for clock in [ClockId::Monotonic, ClockId::Boottime] {
            let shown = || {
                let time = clock_gettime(clock);
                let seconds = u64::try_from(time.tv_sec).expect("after the start");
                let nanos = u32::try_from(time.tv_nsec).expect("less than a second");
                Duration::new(seconds, nanos).as_nanos() as i128
            };
            let (before, now, after) = (shown(), nanos(clock), shown());
            assert!((before..=after).contains(&now), "{before} {now} {after}");
        }
    }

    /// Even a busy machine did not sleep.
    #[test]
    fn a_machine_that_is_awake_is_not_asleep() {
        for _ in 0..10_000 {
            assert_eq!(of_this_process(), Duration::ZERO);
        }
    }
}
