//! Periodic jobs: one of many instances does each run when it is due.
//!
//! | module | what is in it |
//! |---|---|
//! | `cron` | the times of a cron expression |
//! | `times` | which times are due, by the wall clock |
//! | `catch_up` | what to do about missed runs |
//! | `begun` | which runs have begun, on the backend |
//! | `tick` | one run, as the work sees it |
//! | `instance` | one instance of the job: its options and its loop |
//! | `round` | an instance's work when something is due |
//!
//! Layers, lowest first: cron, times, catch_up, begun, tick, round, instance.

mod begun;
mod catch_up;
#[cfg(feature = "cron")]
mod cron;
mod instance;
mod round;
mod tick;
mod times;

use std::time::{Duration, SystemTime};

pub use catch_up::{CatchUp, MissedRuns};
#[cfg(feature = "cron")]
use instance::REMEMBERED_GIVEN_TIMES;
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

    /// Is due at the times of a cron expression, in this time zone.
    ///
    /// The expression has five fields: minute, hour, day of the month, month, day of the week.
    /// Fields take numbers, names (`MON-FRI`, `JAN`), lists, ranges, steps (`*/5`), and `L`, `W`
    /// and `#`. Or it is a nickname: `@hourly`, `@daily`, `@weekly`, `@monthly` or `@yearly`. The
    /// zone is a name of the IANA database (`Europe/Berlin`), which is built in.
    ///
    /// **When the clock changes**, a job at a fixed time of the day is due once on that day. If the
    /// clock skips the time, the job is due right after the gap; if the time comes twice, at the
    /// first. A job with `*` or a step in the hour or the minute is due at every matching time that
    /// exists, so twice in an hour that comes twice, and not in one that is skipped.
    ///
    /// Runs of the last eight days, at most 100, can be [caught up](ScheduledJob::catch_up); of a
    /// job that is due less often, the last one. [`remember_for`](ScheduledJob::remember_for) is
    /// eight days, or twice the longest time between two runs.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::Job;
    /// let report = Job::new(&locks, "report").cron("0 3 * * MON-FRI", "Europe/Berlin")?;
    /// # drop(report);
    /// assert!(Job::new(&locks, "report").cron("0 25 * * *", "UTC").is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`OptionError`](locktopus_core::OptionError) if the expression or the zone cannot be read,
    /// or if the expression names no time that ever comes. It names the input.
    #[cfg(feature = "cron")]
    pub fn cron(
        self,
        expression: &str,
        zone: &str,
    ) -> Result<ScheduledJob, locktopus_core::OptionError> {
        let read = cron::read(expression, zone, SystemTime::now(), REMEMBERED_GIVEN_TIMES)?;
        let remember = REMEMBERED_GIVEN_TIMES.max(read.longest_gap * 2);
        Ok(self.at_times(read.times).remember_for(remember))
    }

    /// Checks a cron expression and a zone for [`cron`](Self::cron), without a `Locktopus`: for
    /// programs that check their configuration before they connect.
    ///
    /// ```
    /// # use locktopus::Job;
    /// assert!(Job::check_cron("0 3 * * MON-FRI", "Europe/Berlin").is_ok());
    /// let error = Job::check_cron("0 3 * * MON-FRI", "Berlin").unwrap_err();
    /// assert_eq!(error.option, "zone");
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`cron`](Self::cron).
    #[cfg(feature = "cron")]
    pub fn check_cron(expression: &str, zone: &str) -> Result<(), locktopus_core::OptionError> {
        cron::read(expression, zone, SystemTime::now(), REMEMBERED_GIVEN_TIMES).map(drop)
    }

    /// Checks a period for [`every`](Self::every), as [`check_cron`](Self::check_cron) does.
    ///
    /// ```
    /// # use locktopus::Job;
    /// assert!(Job::check_every(std::time::Duration::ZERO).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`OptionError`](locktopus_core::OptionError) if it is shorter than 100 ms or longer than ten
    /// years.
    pub fn check_every(period: Duration) -> Result<(), locktopus_core::OptionError> {
        Times::every(period, Duration::ZERO).check()
    }

    fn scheduled(self, times: Times) -> ScheduledJob {
        ScheduledJob::new(&self.locks, self.name, times)
    }
}
