//! What to do about missed runs.

use std::fmt;
use std::time::SystemTime;

use humantime::format_rfc3339_millis;

/// What to do about missed runs. No instance began them when they were due, or within the
/// [tolerance](crate::ScheduledJob::tolerance) after that. Possible reasons: no instance was
/// running, the backend was away, or an earlier run took too long.
///
/// A run that has begun is not missed, no matter how it ended. A new job has missed nothing before
/// its first instance starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CatchUp {
    /// Nothing. The next run is when the job is due again.
    #[default]
    Skip,
    /// Runs the last one as soon as an instance can, and none before it.
    Once,
    /// Runs all of them, one after the other, oldest first. If there are more than `at_most` (1 to
    /// 100), only the newest.
    All {
        /// The maximum number of runs.
        at_most: usize,
    },
}

/// Runs that no instance began, and that no instance will.
///
/// ```
/// # fn tell(missed: locktopus::MissedRuns) {
/// // Prints: 3 since 2026-11-29T10:15:00.000Z
/// println!("{missed}");
/// if missed.or_more {
///     println!("at least {} runs", missed.count);
/// }
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissedRuns {
    /// How many.
    pub count: usize,
    /// There may be more, before the first of these: at most 100 are looked for.
    pub or_more: bool,
    /// When the first of them was due.
    pub since: SystemTime,
}

impl fmt::Display for MissedRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_more = if self.or_more { " or more" } else { "" };
        let since = format_rfc3339_millis(self.since);
        write!(f, "{}{or_more} since {since}", self.count)
    }
}

/// A callback for missed runs.
pub(super) struct OnMissed(pub(super) Box<dyn Fn(MissedRuns) + Send + Sync>);

impl fmt::Debug for OnMissed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnMissed")
    }
}

impl CatchUp {
    /// The maximum: each run costs a request to the backend.
    pub(super) const MOST: usize = 100;

    /// How many due runs to check.
    pub(super) fn look_back(self) -> usize {
        match self {
            Self::Skip | Self::Once => 1,
            Self::All { at_most } => at_most,
        }
    }
}
