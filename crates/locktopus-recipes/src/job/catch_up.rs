//! What to do about missed runs.

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
