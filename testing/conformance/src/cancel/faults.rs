//! The faults of a faulty backend.

use std::time::Duration;

use tokio::task::yield_now;

/// How calls misbehave. Rates are out of 1,000 and drawn from a seeded generator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Faults {
    /// Await points before and again after the execution of each call.
    pub yields: usize,
    /// Longest random delay before and again after the execution.
    pub delay: Duration,
    /// Calls that fail without running.
    pub refused: u32,
    /// Calls that run but lose their answer.
    pub lost: u32,
    /// Calls that run twice.
    pub duplicated: u32,
    /// Executions outlive a dropped call, as a request on its way does.
    pub detached: bool,
    /// The seed of the generator.
    pub seed: u64,
}

impl Faults {
    /// Await points and nothing else.
    #[must_use]
    pub fn yields(count: usize) -> Self {
        Self {
            yields: count,
            ..Self::default()
        }
    }

    /// Sets the rate of lost answers.
    #[must_use]
    pub fn lost(self, rate: u32) -> Self {
        Self { lost: rate, ..self }
    }

    /// Sets the rate of calls that fail without running.
    #[must_use]
    pub fn refused(self, rate: u32) -> Self {
        Self {
            refused: rate,
            ..self
        }
    }

    /// Sets the rate of calls that run twice.
    #[must_use]
    pub fn duplicated(self, rate: u32) -> Self {
        Self {
            duplicated: rate,
            ..self
        }
    }

    /// Sets the longest delay, and lets executions outlive their calls.
    #[must_use]
    pub fn detached(self, delay: Duration) -> Self {
        Self {
            delay,
            detached: true,
            ..self
        }
    }

    /// Sets the seed of the generator.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}

/// The fate of one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fate {
    yields: usize,
    before: Duration,
    after: Duration,
    pub(super) refused: bool,
    pub(super) lost: bool,
    pub(super) duplicated: bool,
    pub(super) detached: bool,
}

impl Fate {
    pub(super) async fn way_there(self) {
        pass(self.yields, self.before).await;
    }

    pub(super) async fn way_back(self) {
        pass(self.yields, self.after).await;
    }
}

async fn pass(yields: usize, delay: Duration) {
    for _ in 0..yields {
        yield_now().await;
    }
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

/// The SplitMix64 generator: small, seedable, and good enough to choose faults.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn fate(&mut self, faults: &Faults) -> Fate {
        Fate {
            yields: faults.yields,
            before: self.up_to(faults.delay),
            after: self.up_to(faults.delay),
            refused: self.hits(faults.refused),
            lost: self.hits(faults.lost),
            duplicated: self.hits(faults.duplicated),
            detached: faults.detached,
        }
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn hits(&mut self, rate: u32) -> bool {
        self.next() % 1000 < u64::from(rate)
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        let part = u32::try_from(self.next() % 1001).unwrap_or(0);
        most * part / 1000
    }
}
