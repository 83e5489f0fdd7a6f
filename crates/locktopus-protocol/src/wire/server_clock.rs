//! Estimates of the servers' clocks.
//!
//! Each attempt carries the latest server time at which it may run. So a copy stuck in a network or
//! a queue cannot take a lock after its caller is gone. This needs an estimate of the server's
//! time, and every reply that carries the time corrects it. A wrong estimate costs one more round
//! trip, never a wrong grant: a server that finds an attempt late refuses it and sends its time.

use std::sync::Mutex;
use std::time::Duration;

use locktopus_contract::lock;
use tokio::time::Instant;

use crate::layout::slot::SLOTS;

/// The number of slots that share an estimate. The nodes of a cluster own ranges of slots, and each
/// node has its own clock.
const SLOTS_PER_GUESS: u16 = 64;
const GUESSES: usize = (SLOTS / SLOTS_PER_GUESS) as usize;
/// How much later than the caller's deadline an attempt may still run.
const SLACK: Duration = Duration::from_millis(100);

/// A range that contains server time minus local monotonic time, in microseconds.
///
/// A request leaves at `sent`, and its answer arrives at `received` with the server time `t`. So
/// the difference is between `t - received` and `t - sent`. All answers together prove the
/// intersection of their ranges. A quick answer narrows it, and a slow one does no harm.
#[derive(Debug, Clone, Copy)]
struct Range {
    least: i64,
    most: i64,
}

impl Range {
    /// Adds an answer. If it contradicts the earlier ones, a clock was set or another server
    /// answered, so only the new answer counts.
    fn narrowed_by(self, answer: Self) -> Self {
        let both = Self {
            least: self.least.max(answer.least),
            most: self.most.min(answer.most),
        };
        if both.least > both.most { answer } else { both }
    }
}

/// Estimates of the clocks of all servers.
#[derive(Debug)]
pub(crate) struct ServerClock {
    /// One entry for all slots if there is a single server.
    guesses: Mutex<Vec<Option<Range>>>,
    /// The start of local time. It uses tokio's clock, as deadlines do, so that tests may pause it.
    origin: Instant,
}

impl ServerClock {
    /// Creates an empty estimate. With `several` servers, each range of slots has its own.
    pub(crate) fn new(several: bool) -> Self {
        let guesses = if several { GUESSES } else { 1 };
        Self {
            guesses: Mutex::new(vec![None; guesses]),
            origin: Instant::now(),
        }
    }

    /// Now, on the local monotonic clock that estimates refer to.
    pub(crate) fn stamp(&self) -> i64 {
        micros(self.origin.elapsed())
    }

    /// Whether no server has sent its time yet.
    pub(crate) fn is_unknown(&self) -> bool {
        lock(&self.guesses).iter().all(Option::is_none)
    }

    /// The latest server time, in microseconds, at which a request to this slot may run; 0 if
    /// unknown. `time_left` is what the request has left at `now` (see [`stamp`](Self::stamp)).
    ///
    /// It uses the lower end of the range, so the limit is never later than the caller's deadline
    /// plus the slack. It is early by at most the time that the quickest answer took to come back.
    /// An attempt that runs later is useless, because its own answer arrives after the deadline.
    pub(crate) fn not_after(&self, slot: u16, now: i64, time_left: Duration) -> i64 {
        let guesses = lock(&self.guesses);
        // An unknown slot may be on any server. Using the slowest clock errs towards refusing.
        let least = guesses[index(&guesses, slot)].map(|range| range.least);
        let least = least.or_else(|| guesses.iter().flatten().map(|range| range.least).min());
        least.map_or(0, |least| {
            // A server may send any time.
            now.saturating_add(least)
                .saturating_add(micros(time_left.saturating_add(SLACK)))
        })
    }

    /// Notes a server's time, which just arrived in the answer to a request sent at `sent` (see
    /// [`stamp`](Self::stamp)).
    pub(crate) fn observe(&self, slot: u16, sent: i64, server_micros: i64) {
        self.note(slot, (sent, self.stamp()), server_micros);
    }

    fn note(&self, slot: u16, (sent, received): (i64, i64), server_micros: i64) {
        let answer = Range {
            least: server_micros.saturating_sub(received),
            most: server_micros.saturating_sub(sent),
        };
        let mut guesses = lock(&self.guesses);
        let guess = index(&guesses, slot);
        let known = guesses[guess].map_or(answer, |known| known.narrowed_by(answer));
        guesses[guess] = Some(known);
    }
}

fn index(guesses: &[Option<Range>], slot: u16) -> usize {
    usize::from(slot % SLOTS / SLOTS_PER_GUESS) % guesses.len()
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000;
    const SECOND: i64 = 1_000 * MS;

    #[test]
    fn a_server_may_say_anything_about_its_clock() {
        let (clock, sent) = (ServerClock::new(true), 1_000);
        let seen = (sent, sent);
        assert_eq!(clock.not_after(0, sent, Duration::MAX), 0);
        clock.note(0, seen, i64::MAX);
        let limit = clock.not_after(0, sent + 5_000, Duration::from_secs(1));
        assert_eq!(limit, i64::MAX);
        clock.note(0, seen, i64::MIN);
        assert!(clock.not_after(0, sent, Duration::MAX) <= i64::MAX / 2);
        // And says something sensible in the end.
        clock.note(0, seen, 5_000_000);
        let limit = clock.not_after(0, sent, Duration::from_secs(1));
        assert_eq!(limit, 6_000_000 + micros(SLACK));
    }

    #[test]
    fn a_slot_that_was_not_asked_yet_goes_by_the_clock_that_is_furthest_behind() {
        let clock = ServerClock::new(true);
        clock.note(0, (0, 0), 9 * SECOND);
        clock.note(SLOTS - 1, (0, 0), 5 * SECOND);
        let limit = |slot| clock.not_after(slot, 0, Duration::ZERO) - micros(SLACK);
        assert_eq!(
            [0, 5_000, SLOTS - 1].map(limit),
            [9, 5, 5].map(|s| s * SECOND)
        );
        let one = ServerClock::new(false);
        one.note(0, (0, 0), 9 * SECOND);
        one.note(SLOTS - 1, (0, 0), 9 * SECOND);
        assert_eq!(lock(&one.guesses).len(), 1);
    }

    /// Random numbers that are the same in every run.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: i64) -> i64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            i64::try_from(self.0 >> 33).unwrap() % end
        }

        /// A travel time in µs. Most are short, some almost as long as a call may take.
        fn travel(&mut self) -> i64 {
            match self.below(4) {
                0 => self.below(SECOND),
                _ => self.below(5 * MS),
            }
        }
    }

    /// However fast or slow the answers, no attempt runs later than the slack after its deadline.
    /// And the server refuses no attempt whose answer could come in time.
    #[test]
    fn slow_answers_make_no_limit_later() {
        for seed in 0..2_000 {
            let mut dice = Dice(seed);
            let (clock, mut now) = (ServerClock::new(false), dice.below(SECOND));
            let offset = 1_700_000_000 * SECOND + dice.below(SECOND);
            let mut quickest_back = i64::MAX;
            for _ in 0..=dice.below(5) {
                let (sent, ran) = (now, now + dice.travel());
                now = ran + dice.travel();
                quickest_back = quickest_back.min(now - ran);
                clock.note(0, (sent, now), ran + offset);
                let left = dice.below(SECOND);
                let limit = clock.not_after(0, now, Duration::from_micros(left.unsigned_abs()));
                let too_late = limit - offset - (now + left);
                assert!(too_late <= micros(SLACK), "{seed}: by {too_late} µs");
                let needed = now + left - quickest_back;
                assert!(limit - offset >= needed, "{seed}: refused in time");
                now += dice.below(SECOND);
            }
        }
    }

    /// After a clock was set or another server took over, the server refuses at most one attempt.
    #[test]
    fn a_wrong_estimate_costs_one_round_trip() {
        for seed in 0..2_000 {
            let mut dice = Dice(seed);
            let clock = ServerClock::new(false);
            let (there, back) = (dice.travel(), dice.travel());
            clock.note(0, (0, there + back), there);
            let (mut now, set) = (10 * SECOND, dice.below(7_200 * SECOND) - 3_600 * SECOND);
            let (there, back) = (dice.below(400 * MS), dice.below(400 * MS));
            let deadline = now + SECOND;
            let limit = |now: i64| {
                let left = Duration::from_micros((deadline - now).unsigned_abs());
                clock.not_after(0, now, left)
            };
            if now + there + set > limit(now) {
                clock.note(0, (now, now + there + back), now + there + set);
                now += there + back;
                let in_time = now + there + back <= deadline;
                assert!(!in_time || now + there + set <= limit(now), "{seed}");
            } else {
                clock.note(0, (now, now + there + back), now + there + set);
                let late = limit(now) - set - deadline - micros(SLACK);
                // A step back by less than a round trip goes unnoticed.
                assert!(late <= there + back, "{seed}: by {late} µs");
            }
        }
    }
}
