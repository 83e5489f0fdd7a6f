//! How long a holder may trust its lock.

use std::time::Duration;

use crate::clock::BootInstant;

/// How much earlier than the server the holder considers its lease over.
///
/// Validity is `sent + lease * (1 - drift) - clock_step - 2 ms`. It counts from before the request
/// was sent: if it counted from the answer, two holders could trust their locks at once. Source:
/// the distributed-lock page of the Redis documentation, with the start moved to the send time and
/// a bound for clock steps added.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{ValidityMargin, clock};
/// let (margin, lease) = (ValidityMargin::default(), Duration::from_secs(30));
/// assert_eq!(margin.of(lease), Duration::from_millis(300 + 5 + 2));
/// assert_eq!(margin.validity(lease), lease - margin.of(lease));
/// let sent = clock::now();
/// assert_eq!(margin.valid_until(sent, lease), sent + margin.validity(lease));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct ValidityMargin {
    /// Upper bound for the difference in speed between this machine's monotonic clock and the
    /// server's clock, in parts per million. Default 10,000 (1 %).
    pub drift_ppm: u32,
    /// Upper bound for a forward step of the server's wall clock within one lease. Default 5 ms.
    /// Zero for a store whose leases run on a monotonic clock, such as etcd.
    pub clock_step: Duration,
}

impl Default for ValidityMargin {
    fn default() -> Self {
        Self {
            drift_ppm: 10_000,
            clock_step: Duration::from_millis(5),
        }
    }
}

impl ValidityMargin {
    /// The part of a lease that is subtracted.
    #[must_use]
    pub fn of(&self, lease: Duration) -> Duration {
        let drift = lease.as_nanos() * u128::from(self.drift_ppm) / 1_000_000;
        Duration::from_nanos(u64::try_from(drift).unwrap_or(u64::MAX))
            .saturating_add(self.clock_step)
            .saturating_add(Duration::from_millis(2))
    }

    /// How long a holder may trust a lease after the request was sent. Zero if the margin uses up
    /// all of it.
    #[must_use]
    pub fn validity(&self, lease: Duration) -> Duration {
        lease.saturating_sub(self.of(lease))
    }

    /// The end of trust in a lease that was requested at `sent`.
    #[must_use]
    pub fn valid_until(&self, sent: BootInstant, lease: Duration) -> BootInstant {
        sent + self.validity(lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_is_shorter_than_the_lease() {
        let margin = ValidityMargin::default();
        assert_eq!(
            margin.validity(Duration::from_secs(30)),
            Duration::from_millis(29_693)
        );
        for millis in [0, 1, 7, 20, 1_000, 86_400_000] {
            let lease = Duration::from_millis(millis);
            assert!(margin.validity(lease) < lease || lease.is_zero());
        }
    }
}
