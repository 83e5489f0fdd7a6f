//! True time, for a process that runs a little ahead of the world.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::world::MS;
use locktopus_core::lock;

/// Turns a process's clock into true time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    /// The last `tell`: the time on the process's clock, the true time, and until when it may run.
    told: Arc<Mutex<Option<(Instant, u64, u64)>>>,
}

impl Pace {
    /// Tells the true time, and until when it may run. Call it on the process's runtime.
    pub(crate) fn tell(&self, now: u64, until: u64) {
        *lock(&self.told) = Some((Instant::now(), now, until));
    }

    /// True time in µs.
    pub(crate) fn now(&self) -> u64 {
        let told = lock(&self.told);
        let Some((begun, now, until)) = *told else {
            return 0;
        };
        let passed = begun.elapsed();
        (now + u64::try_from(passed.as_micros()).unwrap_or(u64::MAX)).min(until)
    }
}

pub(crate) fn millis(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// Rounds up to a full millisecond, the resolution of a process's timers.
pub(crate) fn full_millis(time: u64) -> u64 {
    time.div_ceil(MS)
}
