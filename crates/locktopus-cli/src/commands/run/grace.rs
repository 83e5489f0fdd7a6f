//! Computes how long ending the program may take, and checks that the lease leaves that much time.
//!
//! A lease is renewed after a third, and failed renewals are retried. To leave retries another
//! third, ending the program may take a third at most. It begins when the remaining validity is
//! [`Grace::needed`].

use std::time::Duration;

use crate::failure::{Failure, spell};

/// Time allowed from `KILL` until the last process of a group is gone.
const KILLING: Duration = Duration::from_millis(500);

/// Longest default time between `TERM` and `KILL`.
const USUAL: Duration = Duration::from_secs(5);

/// The default grace is at most the lease divided by this.
const USUAL_PART: u32 = 6;

/// The shortest lease that fits the default grace and [`KILLING`].
const SHORTEST: Duration = Duration::from_secs(3);

/// How long ending a program may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) struct Grace {
    /// Between `TERM` and `KILL`.
    pub(super) polite: Duration,
}

impl Grace {
    /// The grace given by `asked`, or the default. Fails if the lease leaves no room for it.
    /// Without `lease`, the configured one counts.
    pub(super) fn within(
        lease: Option<Duration>,
        configured: Duration,
        max_hold: Option<(&str, Duration)>,
        asked: Option<Duration>,
    ) -> Result<Self, Failure> {
        let length = lease.unwrap_or(configured);
        let grace = Self {
            polite: asked.unwrap_or_else(|| USUAL.min(length / USUAL_PART)),
        };
        let needed = grace.needed();
        if needed > length / 3 {
            let lease = match lease {
                Some(lease) => format!("--lease {}", spell(lease)),
                None => format!("the lease of {}", spell(configured)),
            };
            return Err(Failure::usage(match asked {
                Some(asked) => format!(
                    "{lease} is too short for --grace {}: --lease must be at least {}. Ending the program takes --grace plus {}, \
                     which must fit into a third of the lease",
                    spell(asked),
                    spell(needed * 3),
                    spell(KILLING)
                ),
                None => format!(
                    "{lease} is too short: --lease must be at least {}",
                    spell(SHORTEST)
                ),
            }));
        }
        match max_hold {
            Some((option, hold)) if hold <= needed => Err(Failure::usage(format!(
                "{option} {} leaves no time to work: ending the program takes up to {} of it",
                spell(hold),
                spell(needed)
            ))),
            _ => Ok(grace),
        }
    }

    /// The validity needed to end a program.
    pub(super) fn needed(self) -> Duration {
        self.polite + KILLING
    }

    /// The part of it reserved for `KILL`.
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

    fn said(lease: Duration, hold: Option<Duration>, asked: Option<Duration>) -> String {
        let hold = hold.map(|time| ("--max-term", time));
        Grace::within(Some(lease), seconds(30), hold, asked)
            .unwrap_err()
            .message
    }

    #[test]
    fn ending_fits_into_a_third() {
        let usual = |lease| {
            let grace = Grace::within(Some(lease), seconds(30), None, None);
            grace.map(|grace| grace.polite)
        };
        assert_eq!(usual(seconds(30)).unwrap(), seconds(5));
        assert_eq!(usual(seconds(600)).unwrap(), seconds(5));
        assert_eq!(usual(SHORTEST).unwrap(), Duration::from_millis(500));
        usual(SHORTEST.saturating_sub(Duration::from_nanos(10))).unwrap_err();
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let asked = |lease, grace| Grace::within(Some(lease), seconds(30), None, Some(grace));
        asked(seconds(30), Duration::from_millis(9_500)).unwrap();
        asked(seconds(30), Duration::from_millis(9_501)).unwrap_err();
        asked(Duration::from_millis(1_500), Duration::ZERO).unwrap();
        let held = |hold| {
            let hold = Some(("--max-hold", hold));
            Grace::within(Some(seconds(30)), seconds(30), hold, None)
        };
        held(Duration::from_millis(5_501)).unwrap();
        held(Duration::from_millis(5_500)).unwrap_err();
    }

    #[test]
    fn without_a_lease_the_configured_one_counts() {
        let (hold, grace) = (
            Some(("--max-hold", seconds(2))),
            Some(Duration::from_millis(200)),
        );
        Grace::within(None, seconds(30), hold, grace).unwrap();
        let short = Grace::within(None, seconds(2), hold, grace).unwrap_err();
        assert!(
            short
                .message
                .starts_with("the lease of 2s is too short for --grace 200ms")
        );
    }

    #[test]
    fn refusals_say_what_would_do() {
        let short = said(Duration::from_millis(2_999), None, None);
        assert_eq!(
            short,
            "--lease 2s999ms is too short: --lease must be at least 3s"
        );
        let graceful = said(seconds(30), None, Some(seconds(10)));
        assert!(graceful.starts_with(
            "--lease 30s is too short for --grace 10s: --lease must be at least 31s500ms."
        ));
        let held = said(seconds(30), Some(seconds(5)), None);
        assert!(held.starts_with("--max-term 5s leaves no time") && held.contains("up to 5s500ms"));
    }
}
