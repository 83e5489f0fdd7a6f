//! A process in the simulation: its clock, and whether it runs.

use crate::Rng;
use crate::sim::client::{Input, Process};
use crate::sim::rules::{MS, Micros};

/// A process and what surrounds it.
#[derive(Debug)]
pub(super) struct Actor {
    pub(super) process: Process,
    pub(super) clock: Clock,
    pub(super) alive: bool,
    /// It does not run, but its clock and its buffers do.
    pub(super) paused: bool,
    pub(super) backlog: Vec<Input>,
}

impl Actor {
    pub(super) fn new(process: Process, rng: &mut Rng, drift_ppm: i64) -> Self {
        // The two clocks that are compared may differ by the whole drift.
        let drift = drift_ppm * 9 / 10;
        let clock = Clock {
            origin: rng.between(0, 1 << 40),
            drift: rng.between(-drift, drift),
        };
        Self {
            process,
            clock,
            alive: true,
            paused: false,
            backlog: Vec::new(),
        }
    }
}

/// A monotonic clock that is not quite right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    origin: Micros,
    /// In parts per million.
    drift: i64,
}

impl Clock {
    /// What it shows at a true time.
    pub(super) fn local(&self, now: Micros) -> Micros {
        self.origin + now + now * self.drift / 1_000_000
    }

    /// When it shows that, or will.
    pub(super) fn true_time(&self, local: Micros) -> Micros {
        let passed = i128::from(local - self.origin);
        let rate = i128::from(1_000_000 + self.drift);
        let mut at = Micros::try_from(passed * 1_000_000 / rate).unwrap_or(Micros::MAX / 4);
        while self.local(at) < local {
            at += 1;
        }
        at
    }
}

/// Bounds of the time that an outage lasts.
pub(super) const OUTAGE: (Micros, Micros) = (50 * MS, 500 * MS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_can_be_read_backwards() {
        for drift in [-9_000, 0, 9_000] {
            let clock = Clock { origin: 77, drift };
            for now in [0, 1, 999_999, 1_000_001, 3_600_000_000] {
                let local = clock.local(now);
                let back = clock.true_time(local);
                assert!(
                    clock.local(back) >= local && back.abs_diff(now) <= 1,
                    "{drift} {now}"
                );
            }
        }
    }
}
