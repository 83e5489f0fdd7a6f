//! How long a backend remembers the last fencing token of a name.

use std::time::Duration;

use crate::option_error::OptionError;

/// How long a backend with tokens in keys keeps a name's token after its last grant. Default: a
/// day.
///
/// Tokens keep growing without the key, because the server's clock is their floor. The key protects
/// against a clock that is set back, and against a promoted replica whose clock is behind. So keep
/// it for longer than your clocks may be wrong. If you use each name once, such as one for each
/// request, keep it no longer than that: every name costs memory until its key is gone.
///
/// Renewals and `extend` prolong it. After each of them, the key stays for at least three quarters
/// of this time, and for twice the lease.
///
/// Use [`Forever`](Self::Forever) for names that Java services lock with `RFencedLock`, which
/// counts from 1 when the key is gone.
///
/// ```
/// # use std::time::Duration;
/// # use locktopus_contract::TokenRetention;
/// assert_eq!(TokenRetention::default(), Duration::from_secs(24 * 60 * 60).into());
/// assert!(TokenRetention::from(Duration::from_secs(1)).check().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "it is complete")]
pub enum TokenRetention {
    /// For this long after the last grant, and for at least twice the lease. After an extension,
    /// for three quarters of it. From [`SHORTEST`](Self::SHORTEST) to [`LONGEST`](Self::LONGEST).
    For(Duration),
    /// Until you delete it.
    Forever,
}

impl TokenRetention {
    /// The shortest allowed value: a minute. Attempts and grants that take longer have expired, and
    /// synchronised clocks differ by less.
    pub const SHORTEST: Duration = Duration::from_secs(60);

    /// The longest allowed value: ten years.
    pub const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

    /// Checks that it is within the bounds.
    ///
    /// # Errors
    ///
    /// If it is outside them.
    pub fn check(self) -> Result<Self, OptionError> {
        match self {
            Self::For(keep) if !(Self::SHORTEST..=Self::LONGEST).contains(&keep) => {
                let rule = format!(
                    "must be between {:?} and {:?}, or for ever",
                    Self::SHORTEST,
                    Self::LONGEST
                );
                Err(OptionError::new("token_retention", keep, rule))
            }
            Self::For(_) | Self::Forever => Ok(self),
        }
    }

    /// How long a key is kept after a grant with this lease. `None`: for ever.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use locktopus_contract::TokenRetention;
    /// let hour = Duration::from_secs(3600);
    /// assert_eq!(TokenRetention::For(hour).after_lease(Duration::from_secs(30)), Some(hour));
    /// assert_eq!(TokenRetention::For(hour).after_lease(hour), Some(hour * 2));
    /// assert_eq!(TokenRetention::Forever.after_lease(hour), None);
    /// ```
    #[must_use]
    pub fn after_lease(self, lease: Duration) -> Option<Duration> {
        match self {
            Self::For(keep) => Some(
                keep.clamp(Self::SHORTEST, Self::LONGEST)
                    .max(lease.saturating_mul(2)),
            ),
            Self::Forever => None,
        }
    }
}

impl Default for TokenRetention {
    fn default() -> Self {
        Self::For(Duration::from_secs(24 * 60 * 60))
    }
}

impl From<Duration> for TokenRetention {
    fn from(keep: Duration) -> Self {
        Self::For(keep)
    }
}
