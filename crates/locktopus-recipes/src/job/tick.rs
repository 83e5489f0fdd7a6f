//! One run, as the work sees it.

use std::time::SystemTime;

use locktopus_core::{FencingToken, Lease};

/// One run of a job. [`ScheduledJob::run`](crate::ScheduledJob::run) passes it to the work.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// # use locktopus::Job;
/// use std::time::{Duration, SystemTime};
/// let soon = SystemTime::now() + Duration::from_millis(20);
/// let job = Job::new(&locks, "report").at_times([soon]);
/// job.run(|tick| async move {
///     assert_eq!(tick.scheduled_at(), soon);
///     assert_eq!((tick.token(), tick.was_missed()), (tick.lease().token(), false));
/// }).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Tick {
    pub(super) scheduled_at: SystemTime,
    pub(super) missed: bool,
    pub(super) lease: Lease,
}

impl Tick {
    /// The time when it was due. The same in every instance, so it identifies the run: use it for
    /// the report of that hour, or in the key of what it writes.
    #[must_use]
    pub fn scheduled_at(&self) -> SystemTime {
        self.scheduled_at
    }

    /// Whether it was missed and now runs to [catch up](crate::CatchUp).
    #[must_use]
    pub fn was_missed(&self) -> bool {
        self.missed
    }

    /// The fencing token of this run, greater than those of all earlier runs.
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.lease.token()
    }

    /// The lease of the job's mutex. When it ends, the work is dropped.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.lease
    }
}
