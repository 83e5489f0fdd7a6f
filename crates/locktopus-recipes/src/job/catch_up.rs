//! What to do about runs that were missed.

/// What to do about missed runs. No instance began them when they were due, or within the
/// [tolerance](crate::ScheduledJob::tolerance) after that. Either no instance was there, the
/// backend was away, or an earlier run took too long.
///
/// A run that was begun is not missed, however it ended. In the first life of a job nothing is
/// missed before its first instance is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CatchUp {
    /// Nothing: the next run is when the job is due again.
    #[default]
    Skip,
    /// Runs the last one as soon as an instance can, and none before it.
    Once,
    /// All are run, one after the other, oldest first; if there are more than `at_most` (1 to 100),
    /// only the newest.
    All {
        /// How many.
        at_most: usize,
    },
}

impl CatchUp {
    /// The maximum: each run costs a question to the backend.
    pub(super) const MOST: usize = 100;

    /// How many due runs to check.
    pub(super) fn look_back(self) -> usize {
        match self {
            Self::Skip | Self::Once => 1,
            Self::All { at_most } => at_most,
        }
    }
}
