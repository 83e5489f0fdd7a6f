//! One instance of a job: its options and its loop.

use std::time::{Duration, SystemTime};

use locktopus_core::{
    BackendError, CancellationToken, LockError, LockRequest, Locktopus, OptionError, Phase,
    TokenRetention,
};
use tokio::runtime::Handle;

use super::begun::Begun;
use super::catch_up::CatchUp;
use super::round::Runner;
use super::tick::Tick;
use super::times::Times;
use crate::pauses::{Pauses, may_pass, unless_cancelled};

/// Clocks of instances may differ by this much, for any period.
const CLOCKS_DIFFER: Duration = Duration::from_secs(10 * 60);

/// So many periods are remembered beyond those that may be caught up.
const PERIODS: u32 = 30;

/// How long runs at given times are remembered.
const GIVEN_TIMES: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// How often to check the wall clock: it may be set, or the machine may have slept.
const LOOK: Duration = Duration::from_secs(10);

/// A job with a schedule, from [`Job::every`](crate::Job::every) and its siblings.
///
/// One of all instances that have a job of this name does each run. Chance decides which one; any
/// other replaces an instance that goes away.
///
/// **Each run is begun at most once** by all instances together, as long as the backend keeps its
/// data. A run whose instance crashes, is cut off, or takes longer than [`at_most`](Self::at_most)
/// was begun, and is not repeated; so let the work be such that the next run makes up for it, or do
/// in it what can be done again.
///
/// **Clocks need not agree**: the backend knows which runs were begun, by the time they were due.
/// An instance whose clock is ahead runs early. An instance whose clock is behind finds its runs
/// begun. This holds for differences of up to [`remember_for`](Self::remember_for).
///
/// **What is not promised**: a backend that loses its data has forgotten what was begun. A quorum
/// forgets a run once a majority may be without a node that noted it. If only a bare majority noted
/// it, one node that loses its data is enough. Its locks stay exclusive then, but its jobs are
/// begun again, so let its nodes keep their data. An instance that is stopped in the middle of a
/// step may finish that step later, so send the [token](Tick::token) of the run along with each
/// write.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # let locks = locktopus::connect("memory:").await?;
/// use std::time::SystemTime;
/// use locktopus::{CatchUp, Job, ScheduledJob};
/// # let soon = SystemTime::now() + Duration::from_millis(20);
/// let job: ScheduledJob = Job::new(&locks, "report")
///     .at_times([soon])
///     .renewed_lease(Duration::from_secs(20)) // for so long nothing runs after a crash
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
}

impl ScheduledJob {
    pub(super) fn new(locks: &Locktopus, name: String, times: Times) -> Self {
        Self {
            // A lease that is kept for later would keep others from the next run.
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
        }
    }

    /// Holds the job's mutex by a lease of this length while it runs, renewed after a third of it.
    /// How long nothing is run after an instance crashed in a run. Default:
    /// [`LocktopusBuilder::renewed_lease`](locktopus_core::LocktopusBuilder::renewed_lease), 30 s.
    pub fn renewed_lease(mut self, lease: Duration) -> Self {
        self.request = self.request.renewed_lease(lease);
        self
    }

    /// Keeps the job's mutex for at least this long, even if the run is done earlier. No instance
    /// begins another run before that, not even to catch up. It ends with this instance, and after
    /// [`at_most`](Self::at_most) at the latest.
    ///
    /// Not needed to keep a run from being begun twice where clocks differ: see
    /// [`remember_for`](Self::remember_for).
    pub fn at_least(mut self, time: Duration) -> Self {
        self.at_least = time;
        self
    }

    /// Ends a run after this long, counted from when it asked for the job's mutex: the work is
    /// dropped at its current await point. Without it a run that hangs keeps all later ones from
    /// being run.
    pub fn at_most(mut self, time: Duration) -> Self {
        self.at_most = Some(time);
        self.request = self.request.max_hold(time);
        self
    }

    /// What to do about runs that were missed. Default: [`CatchUp::Skip`].
    pub fn catch_up(mut self, policy: CatchUp) -> Self {
        self.catch_up = policy;
        self
    }

    /// How long after its time a run may begin and not count as missed. Default: half of the time
    /// until the next one, but at most a minute.
    pub fn tolerance(mut self, time: Duration) -> Self {
        self.tolerance = Some(time);
        self
    }

    /// For how long it matters which runs were begun, from a minute to ten years. A run that was
    /// due longer ago is neither caught up nor begun, however long the
    /// [tolerance](Self::tolerance). No two clocks may differ by more than this, and no two [given
    /// times](crate::Job::at_times) may be further apart. The backend keeps a small key for each
    /// run for twice this time and a minute. Default: 30 periods more than may be caught up, and at
    /// least ten minutes; eight days for given times.
    pub fn remember_for(mut self, time: Duration) -> Self {
        self.remember_for = Some(time);
        self
    }

    /// Ends [`run`](Self::run) when this token is cancelled. A run that is under way is dropped.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
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

    /// Waits for each time that the job is due, and does `work` then, unless another instance does.
    /// Every instance calls this, with the same schedule.
    ///
    /// The work is dropped at its current await point, before it takes another step, when its lease
    /// is lost; that is logged as a warning. Errors of the work are its own: handle them in it.
    /// Errors of the backend that may pass are logged as warnings and waited out; what was due
    /// meanwhile was missed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
    /// [`LockError::Cancelled`] and [`LockError::ShutDown`] when you end it. Errors that stay until
    /// something is changed: [`LockError::Name`]; [`LockError::Option`], also for [given
    /// times](crate::Job::at_times) that do not grow; [`LockError::Backend`] for a missing right, a
    /// name in use as another kind, or a backend without fencing tokens. `Ok` when there are no
    /// more [given times](crate::Job::at_times).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work where it stands, and gives the mutex back in the
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
        let runner = self.runner()?;
        let ended = unless_cancelled(cancel.as_ref(), go_on(runner, work));
        tokio::select! {
            biased;
            () = closing.cancelled() => Err(LockError::ShutDown),
            ended = ended => ended.unwrap_or(Err(LockError::Cancelled { target })),
        }
    }

    fn runner(self) -> Result<Runner, LockError> {
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
        let begun = Begun::new(self.locks, self.name.clone(), keep);
        Ok(Runner {
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
        })
    }

    fn remembered(&self) -> Duration {
        let longest = TokenRetention::LONGEST - TokenRetention::SHORTEST;
        let usual = || match self.times.period() {
            Some(period) => {
                let runs = PERIODS + u32::try_from(self.catch_up.look_back()).unwrap_or(u32::MAX);
                period.saturating_mul(runs).clamp(CLOCKS_DIFFER, longest)
            }
            None => GIVEN_TIMES,
        };
        self.remember_for
            .map_or_else(usual, |time| time.min(longest))
    }
}

async fn go_on<F, Fut>(mut runner: Runner, mut work: F) -> Result<(), LockError>
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
                tracing::warn!(job = runner.job, %error, "not known whether a run is due, and will look again");
                pauses.wait().await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Until the wall clock shows that time.
async fn sleep_until(time: SystemTime) {
    while let Ok(left) = time.duration_since(SystemTime::now()) {
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK)).await;
    }
}
