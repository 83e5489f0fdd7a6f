//! How long it takes to end a program, and whether the lease leaves that much.
//!
//! A lease is renewed when a third of it is over, and attempts go on if that fails. So that they have another third, ending
//! the program may take a third at most: it begins when the validity that is left is [`Grace::needed`].

use std::time::Duration;

use crate::failure::Failure;

/// What `KILL` may take until the last process of a group is gone.
const KILLING: Duration = Duration::from_millis(500);

/// What is given between `TERM` and `KILL` at most, unless somebody says more.
const USUAL: Duration = Duration::from_secs(5);

/// How a program is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grace {
    /// Between `TERM` and `KILL`.
    pub(super) polite: Duration,
}

impl Grace {
    /// The grace that was asked for, or the usual one, if the lease leaves it.
    pub(super) fn within(
        lease: Duration,
        max_hold: Option<Duration>,
        asked: Option<Duration>,
    ) -> Result<Self, Failure> {
        let grace = Self {
            polite: asked.unwrap_or_else(|| USUAL.min(lease / 6)),
        };
        let needed = grace.needed();
        if needed > lease / 3 {
            return Err(Failure::usage(format!(
                "a program that has {:?} to end, and {KILLING:?} to be killed, needs a lease of {:?} or more, not {lease:.1?}: \
                 it must be gone while the lease lasts, and renewals need two thirds of it. Set --lease and --grace",
                grace.polite,
                needed * 3
            )));
        }
        match max_hold {
            Some(hold) if hold <= needed => Err(Failure::usage(format!(
                "--max-hold {hold:?} leaves no time to work: ending the program takes up to {needed:?} of it"
            ))),
            _ => Ok(grace),
        }
    }

    /// How much validity ending a program takes.
    pub(super) fn needed(self) -> Duration {
        self.polite + KILLING
    }

    /// What of it is kept for `KILL`.
    pub(super) const fn killing() -> Duration {
        KILLING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn ending_fits_into_a_third() {
        let usual = |lease| Grace::within(lease, None, None).map(|grace| grace.polite);
        assert_eq!(usual(seconds(30)).unwrap(), seconds(5));
        assert_eq!(usual(seconds(600)).unwrap(), seconds(5));
        assert_eq!(usual(seconds(3)).unwrap(), Duration::from_millis(500));
        usual(Duration::from_millis(2_900)).unwrap_err();
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let asked = |lease, grace| Grace::within(lease, None, Some(grace));
        asked(seconds(30), Duration::from_millis(9_500)).unwrap();
        asked(seconds(30), Duration::from_millis(9_501)).unwrap_err();
        asked(Duration::from_millis(1_500), Duration::ZERO).unwrap();
        let held = |hold| Grace::within(seconds(30), Some(hold), None);
        held(Duration::from_millis(5_501)).unwrap();
        held(Duration::from_millis(5_500)).unwrap_err();
    }
}
