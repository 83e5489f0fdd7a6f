//! Periodic jobs: one of many instances does each run when it is due.
//!
//! | module | what is in it |
//! |---|---|
//! | `times` | which times are due, by the wall clock |
//! | `catch_up` | what to do about missed runs |
//! | `begun` | which runs have begun, on the backend |
//! | `tick` | one run, as the work sees it |
//! | `instance` | one instance of the job: its options and its loop |
//! | `round` | an instance's work when something is due |
//!
//! Layers, lowest first: times, catch_up, begun, tick, round, instance.

mod begun;
mod catch_up;
mod instance;
mod round;
mod tick;
mod times;

use std::time::{Duration, SystemTime};

pub use catch_up::CatchUp;
pub use instance::ScheduledJob;
use locktopus_core::Locktopus;
pub use tick::Tick;

use self::times::Times;

/// A job that is due at fixed times. All instances of a service together run it once each time. It
/// needs a schedule: [`every`](Self::every) or one of its siblings.
///
/// Runs never overlap: the instance that runs the job holds the [mutex](Locktopus::mutex) of that
/// name. The fencing tokens of `NAME@MILLISECONDS`, with the run's time since the epoch, record
/// which runs have begun.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # let locks = locktopus::connect("memory:").await?;
/// use locktopus::{CancellationToken, CatchUp, Job, LockError};
/// let stop = CancellationToken::new();
/// # stop.cancel();
/// let ended = Job::new(&locks, "report")
///     .every(Duration::from_secs(15 * 60)) // on the quarter hours, by the wall clock
///     .at_most(Duration::from_secs(10 * 60))
///     .catch_up(CatchUp::Once)
///     .cancel_on(stop)
///     .run(|tick| async move {
///         println!("the report of {:?}, under token {:?}", tick.scheduled_at(), tick.token());
///     })
///     .await;
/// assert!(matches!(ended, Err(LockError::Cancelled { .. })));
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a job needs a schedule, and does nothing until it runs"]
pub struct Job {
    locks: Locktopus,
    name: String,
}

impl Job {
    /// Names the job. Every instance of a service does so, and gives it the same schedule. Sends
    /// nothing.
    pub fn new(locks: &Locktopus, name: impl Into<String>) -> Self {
        Self {
            locks: locks.clone(),
            name: name.into(),
        }
    }

    /// Due at all multiples of `period` since the epoch (1970-01-01 00:00 UTC): with 15 minutes on
    /// the quarter hours, with a day at midnight UTC. At least 100 ms. Rounded down to whole
    /// milliseconds.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::Job;
    /// let quarter_hours = Job::new(&locks, "report").every(Duration::from_secs(15 * 60));
    /// # drop(quarter_hours);
    /// # Ok(()) }
    /// ```
    pub fn every(self, period: Duration) -> ScheduledJob {
        self.every_at(period, Duration::ZERO)
    }

    /// Like [`every`](Self::every), but `offset` later each time: with a day and two hours at 02:00
    /// UTC.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::Job;
    /// const HOUR: Duration = Duration::from_secs(60 * 60);
    /// let at_two_utc = Job::new(&locks, "backup").every_at(24 * HOUR, 2 * HOUR);
    /// # drop(at_two_utc);
    /// # Ok(()) }
    /// ```
    pub fn every_at(self, period: Duration, offset: Duration) -> ScheduledJob {
        self.scheduled(Times::every(period, offset))
    }

    /// Due at each of these times. Each must be later than the one before it, and every instance
    /// must have the same ones. The job ends when there are no more. It fails with
    /// [`LockError::Option`](locktopus_core::LockError::Option) at a time that is not later.
    ///
    /// For calendars and time zones: most libraries for cron expressions have an iterator. Times
    /// that have already passed when the job starts count as missed runs, so begin early enough to
    /// [catch up](ScheduledJob::catch_up).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::{Duration, SystemTime};
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::Job;
    /// let soon = SystemTime::now() + Duration::from_millis(20);
    /// let mut runs = 0;
    /// let job = Job::new(&locks, "once").at_times([soon]);
    /// job.run(|_| { runs += 1; async {} }).await?;
    /// assert_eq!(runs, 1);
    /// # Ok(()) }
    /// ```
    pub fn at_times<I>(self, times: I) -> ScheduledJob
    where
        I: IntoIterator<Item = SystemTime>,
        I::IntoIter: Send + 'static,
    {
        self.scheduled(Times::given(times.into_iter()))
    }

    fn scheduled(self, times: Times) -> ScheduledJob {
        ScheduledJob::new(&self.locks, self.name, times)
    }
}
