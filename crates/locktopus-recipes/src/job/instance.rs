//! One instance of a job: its options and its loop.

use std::time::{Duration, SystemTime};

use locktopus_core::internal::with_causes;
use locktopus_core::{
    BackendError, CancellationToken, LockError, LockRequest, LockTarget, Locktopus, OptionError,
    Phase, TokenRetention,
};
use tokio::runtime::Handle;

use super::begun::BegunRuns;
use super::catch_up::{CatchUp, MissedRuns, OnMissed};
use super::round::JobRunner;
use super::tick::Tick;
use super::times::Times;
use crate::pauses::{Pauses, may_pass, unless_cancelled};

/// Runs are remembered at least this long, because clocks of instances may differ by as much.
const MIN_REMEMBERED: Duration = Duration::from_secs(10 * 60);

/// How many periods to remember beyond those that may be caught up.
const REMEMBERED_RUNS: u32 = 30;

/// How long runs at given times are remembered.
pub(super) const REMEMBERED_GIVEN_TIMES: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// How often to check the wall clock: it may be set, or the machine may have slept.
const MAX_SLEEP: Duration = Duration::from_secs(10);

/// A job with a schedule, from [`Job::every`](crate::Job::every) and its siblings.
///
/// Of all instances that have a job of this name, one does each run. Chance decides which one. If
/// it goes away, any other replaces it.
///
/// **Each run begins at most once** across all instances, as long as the backend keeps its data. A
/// run whose instance crashes, is cut off, or takes longer than [`at_most`](Self::at_most) has
/// begun, and is not repeated. So let the next run make up for it, or make the work safe to repeat.
///
/// **Clocks need not agree.** The backend knows which runs have begun, by the times when they were
/// due. An instance whose clock is ahead runs early. An instance whose clock is behind finds its
/// runs begun. This holds for differences of up to [`remember_for`](Self::remember_for).
///
/// **Not promised:** a backend that loses its data forgets which runs have begun. A quorum forgets
/// a run once there may be a majority without a node that noted it. If only a bare majority noted
/// it, one node that loses its data is enough. Its locks stay exclusive then, but its jobs begin
/// again, so let its nodes keep their data. An instance that is stopped in the middle of a step may
/// finish that step later, so send the [token](Tick::token) of the run with each write.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # let locks = locktopus::connect("memory:").await?;
/// use std::time::SystemTime;
/// use locktopus::{CatchUp, Job, ScheduledJob};
/// # let soon = SystemTime::now() + Duration::from_millis(20);
/// let job: ScheduledJob = Job::new(&locks, "report")
///     .at_times([soon])
///     .renewed_lease(Duration::from_secs(20)) // after a crash, nothing runs for this long
///     .at_least(Duration::from_millis(10))
///     .at_most(Duration::from_secs(60))
///     .catch_up(CatchUp::Once)
///     .tolerance(Duration::from_secs(30))
///     .remember_for(Duration::from_secs(60 * 60));
/// let mut runs = 0;
/// job.run(|_tick| { runs += 1; async {} }).await?;
/// assert_eq!(runs, 1);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a job does nothing until `run` is awaited"]
pub struct ScheduledJob {
    locks: Locktopus,
    name: String,
    times: Times,
    request: LockRequest,
    at_least: Duration,
    at_most: Option<Duration>,
    catch_up: CatchUp,
    tolerance: Option<Duration>,
    remember_for: Option<Duration>,
    cancel: Option<CancellationToken>,
    on_missed: Option<OnMissed>,
}

impl ScheduledJob {
    pub(super) fn new(locks: &Locktopus, name: String, times: Times) -> Self {
        Self {
            // A cached lease would delay other instances' next run.
            request: locks.mutex(&name).lease_cache(Duration::ZERO),
            locks: locks.clone(),
            name,
            times,
            at_least: Duration::ZERO,
            at_most: None,
            catch_up: CatchUp::default(),
            tolerance: None,
            remember_for: None,
            cancel: None,
            on_missed: None,
        }
    }

    /// Sets the lease of the job's mutex during a run, renewed after a third of that time. If an
    /// instance crashes during a run, nothing runs for this long. Default:
    /// [`LocktopusBuilder::renewed_lease`](locktopus_core::LocktopusBuilder::renewed_lease), 30 s.
    pub fn renewed_lease(mut self, lease: Duration) -> Self {
        self.request = self.request.renewed_lease(lease);
        self
    }

    /// Keeps the job's mutex for at least this long, even if the run finishes earlier. No instance
    /// begins another run before that, not even to catch up. It ends when this instance ends, and
    /// after [`at_most`](Self::at_most) at the latest.
    ///
    /// You do not need this to keep a run from beginning twice when clocks differ: see
    /// [`remember_for`](Self::remember_for).
    pub fn at_least(mut self, time: Duration) -> Self {
        self.at_least = time;
        self
    }

    /// Ends a run after this long, counted from its request for the job's mutex: the work is
    /// dropped at its current await point. Without a limit, a run that hangs blocks all later ones.
    pub fn at_most(mut self, time: Duration) -> Self {
        self.at_most = Some(time);
        self.request = self.request.max_hold(time);
        self
    }

    /// What to do about missed runs. Default: [`CatchUp::Skip`].
    pub fn catch_up(mut self, policy: CatchUp) -> Self {
        self.catch_up = policy;
        self
    }

    /// Sets a callback for missed runs that no instance will catch up. Default: a warning in the
    /// log.
    ///
    /// An instance calls it when it begins the next run, or when it finds that the last one can no
    /// longer begin in time, and names each run once. It knows missed runs only if the backend
    /// remembers that the job ran before. The callback must not block.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use std::time::Duration;
    /// use locktopus::Job;
    /// let job = Job::new(&locks, "report").every(Duration::from_secs(60));
    /// // Prints: missed 3 since 2026-11-29T10:15:00.000Z
    /// let job = job.on_missed(|missed| eprintln!("missed {missed}"));
    /// # drop(job);
    /// # Ok(()) }
    /// ```
    pub fn on_missed(mut self, tell: impl Fn(MissedRuns) + Send + Sync + 'static) -> Self {
        self.on_missed = Some(OnMissed(Box::new(tell)));
        self
    }

    /// How late a run may begin without counting as missed. Default: half of the time until the
    /// next run, but at most a minute.
    pub fn tolerance(mut self, time: Duration) -> Self {
        self.tolerance = Some(time);
        self
    }

    /// How long it matters which runs have begun, from a minute to ten years. A run that was due
    /// longer ago is neither caught up nor begun, even within its [tolerance](Self::tolerance). No
    /// two clocks may differ by more than this, and no two [given times](crate::Job::at_times) may
    /// be further apart. The backend keeps a small key for each run, for twice this time plus a
    /// minute. Default: 30 periods more than may be caught up, and at least ten minutes. Eight days
    /// for given times.
    pub fn remember_for(mut self, time: Duration) -> Self {
        self.remember_for = Some(time);
        self
    }

    /// Ends [`run`](Self::run) when you cancel this token. A run under way is dropped.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use std::time::Duration;
    /// use locktopus::{CancellationToken, Job, LockError};
    /// let stop = CancellationToken::new();
    /// let job = Job::new(&locks, "report").every(Duration::from_secs(60)).cancel_on(stop.clone());
    /// let running = tokio::spawn(job.run(|_tick| async {}));
    /// stop.cancel();
    /// assert!(matches!(running.await?, Err(LockError::Cancelled { .. })));
    /// # Ok(()) }
    /// ```
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// When the job is due next, by the clock of this machine. `None` if there are no more [given
    /// times](crate::Job::at_times). Sends nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use std::time::{Duration, SystemTime};
    /// use locktopus::Job;
    /// let mut job = Job::new(&locks, "report").every(Duration::from_secs(60));
    /// assert!(job.next_due().await?.expect("it never ends") > SystemTime::now());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`OptionError`] for given times that do not grow.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn next_due(&mut self) -> Result<Option<SystemTime>, OptionError> {
        let now = SystemTime::now();
        Ok(self.times.due(now, CatchUp::MOST).await?.next)
    }

    /// Waits for each time when the job is due, then does `work`, unless another instance does.
    /// Every instance calls this, with the same schedule.
    ///
    /// If the lease is lost, the work is dropped at its current await point, before it takes
    /// another step, and a warning is logged. Handle the work's own errors inside it. Temporary
    /// errors of the backend are logged as warnings and waited out. Runs due in the meantime were
    /// missed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use std::time::{Duration, SystemTime};
    /// use locktopus::Job;
    /// let soon = SystemTime::now() + Duration::from_millis(20);
    /// let job = Job::new(&locks, "report").at_times([soon]);
    /// job.run(|tick| async move { println!("the report of {:?}", tick.scheduled_at()) }).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Cancelled`] and [`LockError::ShutDown`] when you end it. Errors that do not go
    /// away on their own: [`LockError::Name`]; [`LockError::Option`], also for [given
    /// times](crate::Job::at_times) that do not grow; [`LockError::Backend`] for a missing
    /// permission, a name in use as another kind, or a backend without fencing tokens. `Ok` when
    /// there are no more [given times](crate::Job::at_times).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work at its current await point, and releases the mutex in the
    /// background. The run counts as begun.
    pub async fn run<F, Fut>(self, work: F) -> Result<(), LockError>
    where
        F: FnMut(Tick) -> Fut,
        Fut: Future<Output = ()>,
    {
        let target = self.request.target()?;
        if Handle::try_current().is_err() {
            return Err(LockError::Backend {
                target,
                phase: Phase::Acquire,
                source: BackendError::no_runtime(self.locks.backend().name),
            });
        }
        let (closing, cancel) = (self.locks.shutdown_token(), self.cancel.clone());
        let runner = self.runner(target.clone())?;
        let ended = unless_cancelled(cancel.as_ref(), go_on(runner, work));
        tokio::select! {
            biased;
            () = closing.cancelled() => Err(LockError::ShutDown),
            ended = ended => ended.unwrap_or(Err(LockError::Cancelled { target })),
        }
    }

    fn runner(self, target: LockTarget) -> Result<JobRunner, LockError> {
        self.times.check()?;
        if let CatchUp::All { at_most } = self.catch_up
            && !(1..=CatchUp::MOST).contains(&at_most)
        {
            let rule = format!("must be between 1 and {}", CatchUp::MOST);
            return Err(OptionError::new("catch_up", at_most, rule).into());
        }
        if self.at_most.is_some_and(|most| most < self.at_least) {
            let rule = "must not be longer than at_most";
            return Err(OptionError::new("at_least", self.at_least, rule).into());
        }
        let keep = self.remembered();
        TokenRetention::from(keep).check()?;
        let begun = BegunRuns::new(self.locks, self.name.clone(), target, keep);
        Ok(JobRunner {
            job: self.name,
            times: self.times,
            request: self.request.token_retention(keep),
            begun,
            at_least: self.at_least,
            catch_up: self.catch_up,
            tolerance: self.tolerance,
            remembered: keep,
            settled: None,
            known: false,
            on_missed: self.on_missed,
        })
    }

    fn remembered(&self) -> Duration {
        let longest = TokenRetention::LONGEST - TokenRetention::SHORTEST;
        let usual = || match self.times.period() {
            Some(period) => {
                let runs =
                    REMEMBERED_RUNS + u32::try_from(self.catch_up.look_back()).unwrap_or(u32::MAX);
                period.saturating_mul(runs).clamp(MIN_REMEMBERED, longest)
            }
            None => REMEMBERED_GIVEN_TIMES,
        };
        self.remember_for
            .map_or_else(usual, |time| time.min(longest))
    }
}

async fn go_on<F, Fut>(mut runner: JobRunner, mut work: F) -> Result<(), LockError>
where
    F: FnMut(Tick) -> Fut,
    Fut: Future<Output = ()>,
{
    let mut pauses = Pauses::new();
    loop {
        match runner.round(&mut work).await {
            Ok(Some(next)) => {
                pauses.reset();
                sleep_until(next).await;
            }
            Ok(None) => return Ok(()),
            Err(error) if may_pass(&error) => {
                let error = with_causes(&error);
                tracing::warn!(job = runner.job, %error, "the servers do not say whether a run is due; trying again");
                pauses.wait().await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Sleeps until the wall clock shows that time.
async fn sleep_until(time: SystemTime) {
    while let Ok(left) = time.duration_since(SystemTime::now()) {
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(MAX_SLEEP)).await;
    }
}
