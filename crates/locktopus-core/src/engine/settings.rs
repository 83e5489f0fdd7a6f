//! The settings shared by all locks of one `Locktopus`.

use std::time::Duration;

use locktopus_contract::{
    Label, MIN_LEASE, NameEncoding, OptionError, TokenRetention, ValidityMargin,
};

use crate::engine::cohort_settings::CohortSettings;

/// The upper limit of `max_lease`: ten years.
pub(crate) const LONGEST_LEASE: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) namespace: String,
    pub(crate) names: NameEncoding,
    pub(crate) renewed_lease: Duration,
    pub(crate) max_lease: Duration,
    /// The longest lease that the backend's safety mode allows.
    pub(crate) longest_lease: Option<Duration>,
    pub(crate) margin: ValidityMargin,
    pub(crate) strategy: WaitStrategy,
    pub(crate) tolerate_outage: Duration,
    pub(crate) cohort: CohortSettings,
    /// How long a lease is kept after a release; zero means not at all.
    pub(crate) lease_cache: Duration,
    /// How long tokens are remembered; `None` uses the backend's own setting.
    pub(crate) token_retention: Option<TokenRetention>,
    /// Whether spans include the lock's name.
    pub(crate) names_in_spans: bool,
    /// What this instance publishes about itself.
    pub(crate) label: Option<Label>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: String::new(),
            names: NameEncoding::default(),
            renewed_lease: Duration::from_secs(30),
            max_lease: Duration::from_secs(24 * 60 * 60),
            longest_lease: None,
            margin: ValidityMargin::default(),
            strategy: WaitStrategy::default(),
            tolerate_outage: Duration::from_secs(10),
            cohort: CohortSettings::default(),
            lease_cache: Duration::ZERO,
            token_retention: None,
            names_in_spans: false,
            label: None,
        }
    }
}

impl Settings {
    /// Checks a lease and cuts it to whole milliseconds.
    pub(crate) fn check_lease(
        &self,
        option: &'static str,
        lease: Duration,
    ) -> Result<Duration, OptionError> {
        if lease < MIN_LEASE || self.margin.validity(lease).is_zero() {
            return Err(OptionError::new(
                option,
                lease,
                format!(
                    "a lease must be at least {MIN_LEASE:?} and longer than the validity margin"
                ),
            ));
        }
        if lease > self.max_lease {
            let rule = format!("a lease must be at most {:?} (max_lease)", self.max_lease);
            return Err(OptionError::new(option, lease, rule));
        }
        if let Some(longest) = self.longest_lease.filter(|longest| lease > *longest) {
            let rule = format!(
                "a lease must be at most {longest:?} (quarantine_max_lease), because after a failover nothing is \
                 granted for that long and a longer one could outlive it"
            );
            return Err(OptionError::new(option, lease, rule));
        }
        Ok(Duration::from_millis(
            u64::try_from(lease.as_millis()).unwrap_or(u64::MAX),
        ))
    }
}

/// The allowed pauses between two checks.
pub(crate) fn heartbeat_bounds() -> std::ops::RangeInclusive<Duration> {
    Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60)
}

/// How to wait for a lock that another owner holds.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # let locks = locktopus::connect("memory:").await?;
/// use locktopus::WaitStrategy;
/// let careful = WaitStrategy::HandOff { heartbeat: Duration::from_secs(1), confirm: true };
/// locks.lock("invoice:42").strategy(careful).acquire().await?.release().await?;
/// let impossible = WaitStrategy::Notify { heartbeat: Duration::ZERO };
/// assert!(locks.lock("invoice:42").strategy(impossible).acquire().await.is_err());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// Queue at the backend and get the lock handed over. The default, with a heartbeat of one
    /// second.
    ///
    /// A pushed grant is used at once, without asking the backend, if enough of the lease is left
    /// since the waiter's last heartbeat: half of a renewed lease, nine tenths of any other.
    /// Otherwise, or with `confirm`, the waiter asks the backend first, which costs a round trip.
    /// If the kind or the backend has no queue, this is [`Notify`](Self::Notify).
    HandOff {
        /// How often to tell the backend that the waiter is alive, plus or minus a quarter. After
        /// three heartbeats and a call timeout of silence the waiter loses its place in the queue.
        /// Shortened to a twelfth of the lease, but not below 50 ms.
        heartbeat: Duration,
        /// Never trust a pushed grant, for networks where others could forge one.
        confirm: bool,
    },
    /// Sleep until the backend announces a release, then try again. Also check periodically, in
    /// case the message was lost. Waiters in a queue come first.
    Notify {
        /// The longest sleep, plus or minus a quarter.
        heartbeat: Duration,
    },
    /// Spin: try again after a random pause that doubles from `min` to `max`. For locks shared with
    /// libraries that send no message. Waiters in a queue come first.
    Poll {
        /// Upper limit of the first pause.
        min: Duration,
        /// Upper limit of later pauses.
        max: Duration,
    },
}

impl Default for WaitStrategy {
    fn default() -> Self {
        Self::HandOff {
            heartbeat: Duration::from_secs(1),
            confirm: false,
        }
    }
}

impl WaitStrategy {
    /// The strategy of a waiter that cannot be woken.
    pub(crate) const POLL: Self = Self::Poll {
        min: Duration::from_millis(5),
        max: Duration::from_millis(50),
    };

    pub(crate) fn check(self) -> Result<Self, OptionError> {
        let bounds = heartbeat_bounds();
        let good = match self {
            Self::HandOff { heartbeat, .. } | Self::Notify { heartbeat } => {
                bounds.contains(&heartbeat)
            }
            Self::Poll { min, max } => bounds.contains(&min) && bounds.contains(&max) && max >= min,
        };
        if good {
            return Ok(self);
        }
        Err(OptionError::new(
            "strategy",
            self,
            "pauses must be between 1 ms and a day, and max not below min",
        ))
    }
}
