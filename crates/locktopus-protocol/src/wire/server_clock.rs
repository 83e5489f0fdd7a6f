//! Estimates of the servers' clocks.
//!
//! An attempt carries the latest server time at which it may run, so that a copy that was stuck in a
//! network or a queue cannot take a lock after its caller is gone. For that the server's time must be
//! estimated; every answer that carries the time corrects the estimate. A wrong estimate costs one more round trip,
//! never a wrong grant: a server that finds an attempt late refuses it and tells its time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::layout::slot::SLOTS;

/// Slots that share an estimate. A cluster's nodes own ranges of slots, and each node has a clock of its own.
const SLOTS_PER_GUESS: u16 = 64;
const GUESSES: usize = (SLOTS / SLOTS_PER_GUESS) as usize;
const UNKNOWN: i64 = i64::MIN;
/// How much later than the caller's deadline an attempt may still run.
const SLACK: Duration = Duration::from_millis(100);

/// Estimates of server time minus local monotonic time, in microseconds.
#[derive(Debug)]
pub(crate) struct ServerClock {
    offsets: Vec<AtomicI64>,
    /// The last one observed anywhere: the estimate for slots that were not asked yet. Right if there is one
    /// server, and close if clocks are synchronised.
    latest: AtomicI64,
    /// When local time began. On tokio's clock, as deadlines are, so that tests may pause it.
    origin: Instant,
}

impl ServerClock {
    pub(crate) fn new() -> Self {
        Self {
            offsets: (0..GUESSES).map(|_| AtomicI64::new(UNKNOWN)).collect(),
            latest: AtomicI64::new(UNKNOWN),
            origin: Instant::now(),
        }
    }

    /// Now, on the local monotonic clock that offsets refer to.
    pub(crate) fn stamp(&self) -> i64 {
        micros(self.origin.elapsed())
    }

    /// The latest server time in microseconds at which a request of this slot may run that has this much time left at
    /// `now` (see [`stamp`](Self::stamp)); 0 if unknown.
    pub(crate) fn not_after(&self, slot: u16, now: i64, time_left: Duration) -> i64 {
        let offset = match self.guess(slot).load(Ordering::Relaxed) {
            UNKNOWN => self.latest.load(Ordering::Relaxed),
            offset => offset,
        };
        match offset {
            UNKNOWN => 0,
            // A server may say anything about its clock.
            offset => now
                .saturating_add(offset)
                .saturating_add(micros(time_left.saturating_add(SLACK))),
        }
    }

    /// Takes note of a server's time, in an answer to a request sent at `sent` (see [`stamp`](Self::stamp)).
    pub(crate) fn observe(&self, slot: u16, sent: i64, server_micros: i64) {
        // Counted from the time of sending, the estimate errs towards a later limit, never towards refusing.
        let offset = server_micros.saturating_sub(sent);
        self.guess(slot).store(offset, Ordering::Relaxed);
        self.latest.store(offset, Ordering::Relaxed);
    }

    fn guess(&self, slot: u16) -> &AtomicI64 {
        &self.offsets[usize::from(slot % SLOTS) / usize::from(SLOTS_PER_GUESS)]
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_say_anything_about_its_clock() {
        let (clock, sent) = (ServerClock::new(), 1_000);
        assert_eq!(clock.not_after(0, sent, Duration::MAX), 0);
        clock.observe(0, sent, i64::MAX);
        let limit = clock.not_after(0, sent + 5, Duration::from_secs(1));
        assert_eq!(limit, i64::MAX);
        clock.observe(0, sent, i64::MIN);
        assert!(clock.not_after(0, sent, Duration::MAX) <= i64::MAX / 2);
        // And says something sensible in the end.
        clock.observe(0, sent, 5_000_000);
        let limit = clock.not_after(0, sent, Duration::from_secs(1));
        assert_eq!(limit, 6_000_000 + micros(SLACK));
    }
}
