//! What time it is truly, for a process that runs ahead of the world for a moment.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::world::MS;
use locktopus_core::lock;

/// Turns a process's clock into true time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    /// When the process was told what time it is: by its clock, and truly; and up to when it may
    /// run.
    told: Arc<Mutex<Option<(Instant, u64, u64)>>>,
}

impl Pace {
    /// It is this time, truly, and it may run until then. Must be called on the process's runtime.
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

/// Up to the next full millisecond: a process's timers know no less.
pub(crate) fn full_millis(time: u64) -> u64 {
    time.div_ceil(MS)
}
