//! Measures how fast the servers answer, and compares that with the timeout.

use std::fmt;
use std::time::{Duration, Instant};

use locktopus::Locktopus;
use serde::Serialize;

use super::ReportedFinding;
use crate::failure::Failure;

/// How many requests to send.
const QUESTIONS: usize = 20;

/// `timeout` should be at least this many times the slowest answer.
const ENOUGH: u32 = 4;

/// How fast the servers answer.
#[derive(Debug, Serialize)]
pub(super) struct Answers {
    median_us: u64,
    slowest_us: u64,
    timeout_ms: u64,
    #[serde(skip)]
    slowest: Duration,
    #[serde(skip)]
    timeout: Duration,
}

impl Answers {
    /// Times requests that inspect a free lock.
    pub(super) async fn measure(locks: &Locktopus) -> Result<Self, Failure> {
        let mut times = Vec::with_capacity(QUESTIONS);
        for _ in 0..QUESTIONS {
            let asked = Instant::now();
            locks.mutex("locktopus:doctor").inspect().await?;
            times.push(asked.elapsed());
        }
        times.sort_unstable();
        let slowest = times.last().copied().unwrap_or_default();
        let median = times.get(QUESTIONS / 2).copied().unwrap_or_default();
        let timeout = locks.backend().call_timeout;
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Ok(Self {
            median_us: micros(median),
            slowest_us: micros(slowest),
            timeout_ms: micros(timeout) / 1_000,
            slowest,
            timeout,
        })
    }

    pub(super) fn finding(&self) -> Option<ReportedFinding> {
        (self.slowest.saturating_mul(ENOUGH) > self.timeout).then(|| {
            let message = format!(
                "the slowest of {QUESTIONS} answers took {:?}, and the timeout is {:?}: renewals will fail under load. \
                 Raise timeout= in the URL, or use servers that are nearer",
                self.slowest, self.timeout
            );
            ReportedFinding::new(locktopus::Severity::Warning, "timeout", &message)
        })
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |micros: u64| Duration::from_micros(micros).as_secs_f64() * 1_000.0;
        write!(
            f,
            "within {:.2} ms (median of {QUESTIONS}), {:.2} ms at worst; timeout {} ms",
            millis(self.median_us),
            millis(self.slowest_us),
            self.timeout_ms
        )
    }
}
