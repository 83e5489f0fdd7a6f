//! How long the machine was asleep, from
//! `CLOCK_BOOTTIME`, which goes on meanwhile, and `CLOCK_MONOTONIC`, which stands still: for Linux
//! and Android.
//!
//! Both are slewed alike, so that only a sleep makes the one get further ahead of the other. But
//! they are read one after the other, and a thread that has to wait for the processor in between
//! would take that for a sleep. Readings of one moment are what counts.

use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What is less than this is no sleep: no machine falls asleep and wakes up again within it.
const JUMP: i128 = 10_000_000;

/// Readings further apart than this are not of one moment.
const ONE_MOMENT: i128 = 1_000_000;

/// So often in a row a thread may have to wait between two readings. To be stopped there once is
/// rare already.
const TRIES: usize = 8;

/// How long the machine was asleep since this process first asked.
pub(super) fn of_this_process() -> Duration {
    static AT_FIRST: OnceLock<i128> = OnceLock::new();
    asleep(&AT_FIRST, nanos)
}

/// What a clock shows, in nanoseconds.
fn nanos(clock: ClockId) -> i128 {
    let time = clock_gettime(clock);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

/// How long the machine was asleep since the first look, which notes by how much the clock that
/// goes on was ahead.
fn asleep(at_first: &OnceLock<i128>, clock: impl Fn(ClockId) -> i128) -> Duration {
    let ahead = ahead(clock);
    let asleep = ahead - at_first.get_or_init(|| ahead);
    match asleep < JUMP {
        true => Duration::ZERO,
        false => Duration::from_nanos(u64::try_from(asleep).unwrap_or(u64::MAX)),
    }
}

/// By how much the clock that goes on is ahead of the other one, from readings of one moment.
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

    /// A machine, and how long its thread has to wait before each of the next readings.
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

        /// What is made of it where these are the waits, and how many readings that takes.
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
            // In the first look, which all others are compared with.
            let first = [0, 40 * MS, 0, 0, 0, ONE_MOMENT];
            assert_eq!(machine.asleep(&first), (Duration::ZERO, 6));
            assert_eq!(machine.asleep(&[]), (Duration::ZERO, 3));
            // And in later ones, where it was not asleep, and where it was.
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

    /// Then the last readings count, rather than none.
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

    /// While nobody sleeps here, whatever the machine has to do.
    #[test]
    fn a_machine_that_is_awake_is_not_asleep() {
        for _ in 0..10_000 {
            assert_eq!(of_this_process(), Duration::ZERO);
        }
    }
}
