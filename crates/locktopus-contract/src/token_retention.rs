//! How long the last fencing token of a name is remembered.

use std::time::Duration;

use crate::option_error::OptionError;

/// How long a backend that keeps fencing tokens in keys keeps the one of a name after its last
/// grant. Default: a day.
///
/// Tokens go on growing without the key, because the server's clock is their floor. What the key is
/// for is a clock that is set back, or that of a promoted replica that is behind: as long as the
/// key is there, tokens grow all the same. So keep it for longer than clocks may be wrong, and no
/// longer where names are used once, such as one for each request: every name costs memory until
/// its key is gone.
///
/// Renewals and `extend` prolong it: after each of them, the key is kept for at least three
/// quarters of this time, and for twice the lease.
///
/// [`Forever`](Self::Forever) is for names that Java services lock with `RFencedLock`, which counts
/// from 1 when the key is gone.
///
/// ```
/// # use std::time::Duration;
/// # use locktopus_contract::TokenRetention;
/// assert_eq!(TokenRetention::default(), Duration::from_secs(24 * 60 * 60).into());
/// assert!(TokenRetention::from(Duration::from_secs(1)).check().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(
    clippy::exhaustive_enums,
    reason = "another case or field would make another type of it"
)]
pub enum TokenRetention {
    /// For this long after the last grant, and for at least twice the lease. For three quarters of
    /// it after an extension. From [`SHORTEST`](Self::SHORTEST) to [`LONGEST`](Self::LONGEST).
    For(Duration),
    /// Until somebody deletes it.
    Forever,
}

impl TokenRetention {
    /// The shortest that can be asked for: a minute. Attempts and grants that are under way for
    /// longer are nobody's any more, and clocks that are kept are off by less.
    pub const SHORTEST: Duration = Duration::from_secs(60);

    /// The longest that can be asked for: ten years.
    pub const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

    /// The same, if it is within the bounds.
    ///
    /// # Errors
    ///
    /// Unless it is.
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

    /// For how long a key is kept after a grant for this lease; `None`: for ever.
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
