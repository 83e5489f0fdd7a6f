//! When to retry what failed: connecting, asking sentinels, refreshing a slot map, subscribing.
//!
//! Both adapters and the hub follow one rule. The first retry after a loss comes at once. Then
//! pauses grow by half each time, from 20 ms to two seconds, and each is shortened at random by up
//! to a half, so that thousands of clients do not return to a server at the same moment. A pause is
//! about a third of the outage so far, so reconnecting is late by at most that.
//!
//! No caller waits for the end of a pause: a call in between gets the error of the last attempt at
//! once. The layers above know their callers' deadlines and retry.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(2);

/// The pauses reset after a success that lasted this long.
pub const SETTLED: Duration = Duration::from_secs(1);

/// Growing, random pauses.
#[derive(Debug, Clone)]
pub struct Backoff {
    next: Duration,
    longest: Duration,
    random: fn() -> u64,
}

impl Backoff {
    /// Pauses of up to two seconds.
    #[must_use]
    pub fn new() -> Self {
        Self::up_to(LONGEST)
    }

    /// Pauses of up to `longest`, for retries that cost an absent server nothing.
    #[must_use]
    pub fn up_to(longest: Duration) -> Self {
        Self {
            next: FIRST.min(longest),
            longest,
            random: random_bits,
        }
    }

    /// Uses this source of 64 random bits, for tests.
    #[must_use]
    pub fn with_random(mut self, random: fn() -> u64) -> Self {
        self.random = random;
        self
    }

    /// The pause to make now.
    pub fn pause(&mut self) -> Duration {
        let full = self.next;
        self.next = (full + full / 2).min(self.longest);
        let share = u32::try_from((self.random)() >> 32).unwrap_or(u32::MAX);
        full / 2 + (full / 2).mul_f64(f64::from(share) / f64::from(u32::MAX))
    }

    /// Notes a success: the next pause is the first one again.
    pub fn reset(&mut self) {
        self.next = FIRST.min(self.longest);
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

/// When a connection may be reopened.
#[derive(Debug, Clone)]
pub struct Redial {
    /// The client that owns the connection, for the metric of reconnections.
    client: &'static str,
    /// Whether there was a connection before.
    before: bool,
    backoff: Backoff,
    not_before: Option<Instant>,
    connected: Option<Instant>,
    /// A connection was lost right after it was opened, and none has lasted since.
    short_lived: bool,
}

impl Redial {
    /// For a server that this client was never connected to: the first attempt may start at once.
    #[must_use]
    pub fn new(client: &'static str) -> Self {
        Self {
            client,
            before: false,
            backoff: Backoff::default(),
            not_before: None,
            connected: None,
            short_lived: false,
        }
    }

    /// Uses this source of 64 random bits, for tests.
    #[must_use]
    pub fn with_random(mut self, random: fn() -> u64) -> Self {
        self.backoff = self.backoff.with_random(random);
        self
    }

    /// How long to wait before the next attempt; `None` if it may start now.
    #[must_use]
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let left = self.not_before?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// Notes that an attempt failed.
    pub fn failed(&mut self, now: Instant) {
        self.connected = None;
        self.not_before = Some(now + self.backoff.pause());
    }

    /// Notes that an attempt succeeded.
    pub fn connected(&mut self, now: Instant) {
        if std::mem::replace(&mut self.before, true) {
            reconnected(self.client);
        }
        self.connected = Some(now);
        self.not_before = None;
    }

    /// Notes that the connection is gone. A server that accepts connections and closes them at
    /// once, because it has too many or is a proxy for a dead one, counts as refusing them.
    pub fn lost(&mut self, now: Instant) {
        let since = self.connected.take();
        if since.is_some_and(|since| now.saturating_duration_since(since) >= SETTLED) {
            self.backoff.reset();
            self.short_lived = false;
        } else if std::mem::replace(&mut self.short_lived, true) {
            self.failed(now);
        }
    }
}

/// Counts a connection reopened after one to the same server ended.
#[cfg(feature = "metrics")]
fn reconnected(client: &'static str) {
    const RECONNECTS: &str = "locktopus_reconnects_total";
    metrics::describe_counter!(
        RECONNECTS,
        metrics::Unit::Count,
        "Connections that were made again after one ended"
    );
    metrics::counter!(RECONNECTS, "backend" => client).increment(1);
}

#[cfg(not(feature = "metrics"))]
fn reconnected(_: &'static str) {}

fn random_bits() -> u64 {
    #[cfg(feature = "simulation")]
    if let Some(bits) = locktopus_contract::Simulated::random_bits() {
        return bits;
    }
    RandomState::new().hash_one(())
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "metrics")]
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    use super::*;

    fn full() -> u64 {
        u64::MAX
    }

    fn half() -> u64 {
        0
    }

    fn millis(pauses: &[Duration]) -> Vec<u128> {
        pauses.iter().map(Duration::as_millis).collect()
    }

    #[test]
    fn pauses_grow_up_to_a_bound_and_begin_anew() {
        let mut backoff = Backoff::new().with_random(full);
        let pauses: Vec<_> = (0..14).map(|_| backoff.pause()).collect();
        let said = millis(&pauses);
        assert_eq!(said[..5], [20, 30, 45, 67, 101]);
        assert_eq!(said[12..], [2000, 2000]);
        backoff.reset();
        assert_eq!(backoff.pause().as_millis(), 20);
        let mut short = Backoff::up_to(Duration::from_millis(50)).with_random(full);
        let pauses: Vec<_> = (0..4).map(|_| short.pause()).collect();
        assert_eq!(millis(&pauses), [20, 30, 45, 50]);
    }

    #[test]
    fn chance_takes_up_to_a_half() {
        let mut least = Backoff::new().with_random(half);
        let pauses: Vec<_> = (0..14).map(|_| least.pause()).collect();
        assert_eq!(millis(&pauses[..3]), [10, 15, 22]);
        assert_eq!(pauses[13], LONGEST / 2);
        let (mut a, mut b) = (Backoff::new(), Backoff::new());
        let differ = (0..20).any(|_| a.pause() != b.pause());
        assert!(differ, "two clients pause for different times");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_connection_is_replaced_at_once_and_a_failed_attempt_is_paused_after() {
        let begin = Instant::now();
        let at = |millis| begin + Duration::from_millis(millis);
        let mut redial = Redial::new("test").with_random(full);
        assert_eq!(redial.wait(at(0)), None);
        redial.connected(at(0));
        redial.lost(at(1000));
        assert_eq!(redial.wait(at(1000)), None);
        redial.failed(at(1000));
        assert_eq!(redial.wait(at(1000)), Some(Duration::from_millis(20)));
        assert_eq!(redial.wait(at(1020)), None);
        redial.failed(at(1020));
        assert_eq!(redial.wait(at(1020)), Some(Duration::from_millis(30)));
        // A connection that lasts resets everything from before.
        redial.connected(at(1050));
        redial.lost(at(2050));
        redial.failed(at(2050));
        assert_eq!(redial.wait(at(2050)), Some(Duration::from_millis(20)));
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_do_not_last_are_failures_but_for_the_first() {
        let begin = Instant::now();
        let mut redial = Redial::new("test").with_random(full);
        let mut waits = Vec::new();
        for _ in 0..4 {
            redial.connected(begin);
            redial.lost(begin);
            waits.push(redial.wait(begin).unwrap_or_default());
        }
        assert_eq!(millis(&waits), [0, 20, 30, 45]);
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn connections_that_are_made_again_are_counted() {
        let recorder = DebuggingRecorder::new();
        metrics::with_local_recorder(&recorder, || {
            let mut redial = Redial::new("test");
            let now = Instant::now();
            redial.failed(now);
            redial.connected(now);
            for _ in 0..3 {
                redial.lost(now);
                redial.failed(now);
                redial.connected(now);
            }
        });
        let counted = recorder.snapshotter().snapshot().into_vec();
        let [(key, _, _, value)] = &counted[..] else {
            panic!("{counted:?}");
        };
        assert_eq!(key.key().name(), "locktopus_reconnects_total");
        assert_eq!(*value, DebugValue::Counter(3));
    }
}
