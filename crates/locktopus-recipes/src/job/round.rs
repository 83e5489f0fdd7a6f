//! The work of an instance when something is due.

use std::future::Future;
use std::time::{Duration, SystemTime};

use locktopus_core::{
    BackendError, LockError, LockGuard, LockRequest, Owner, Phase, UnlessBusy as _,
};

use super::begun::{Begun, was_used};
use super::catch_up::CatchUp;
use super::tick::Tick;
use super::times::{Due, Times};
use crate::pauses::jitter;

/// The longest default tolerance.
const TOLERANCE: Duration = Duration::from_secs(60);

/// By then, an instance that has just taken the job's mutex has noted which run it begins.
const NOTED_BY_THEN: Duration = Duration::from_millis(50);

/// One instance of a job.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) job: String,
    pub(super) times: Times,
    /// For the job's mutex.
    pub(super) request: LockRequest,
    pub(super) begun: Begun,
    pub(super) at_least: Duration,
    pub(super) catch_up: CatchUp,
    pub(super) tolerance: Option<Duration>,
    /// How long after a run's time the backend still knows whether it has begun.
    pub(super) remembered: Duration,
    /// Nothing is left to do about the run of this time, or any before.
    pub(super) settled: Option<SystemTime>,
    /// The job has run before, so a run that has not begun was missed.
    pub(super) known: bool,
}

/// The answer to whether a run is due.
enum Sight {
    /// A run is due.
    Due(Look),
    /// Nothing is due until this time, if there are more.
    Nothing(Option<SystemTime>),
}

/// The due runs, and what they mean.
struct Look {
    due: Due,
    newest: SystemTime,
    /// The newest run is late: no longer due but missed.
    missed: bool,
}

impl Runner {
    /// Does everything that is due now. Returns when to check again, or `None` for never.
    pub(super) async fn round<F, Fut>(
        &mut self,
        work: &mut F,
    ) -> Result<Option<SystemTime>, LockError>
    where
        F: FnMut(Tick) -> Fut,
        Fut: Future<Output = ()>,
    {
        loop {
            let look = match self.look().await? {
                Sight::Due(look) => look,
                Sight::Nothing(next) => return Ok(next),
            };
            if !self.concerns(&look).await? {
                self.settled = Some(look.newest);
                continue;
            }
            if !self.known {
                // Before taking the mutex, because taking it makes the job known.
                self.known = was_used(&self.request.clone().inspect().await?);
            }
            let Some(guard) = self.turn(&look).await? else {
                // Another instance runs it. The next due run checks what is still missing.
                if self.begun.has(look.newest).await? {
                    self.settled = Some(look.newest);
                }
                return Ok(look.due.next);
            };
            match self.choose().await? {
                Some(run) => self.begin(guard, run, work).await?,
                None => release(guard, &self.job).await,
            }
        }
    }

    /// The runs that are due and not settled, or else when to check again.
    async fn look(&mut self) -> Result<Sight, LockError> {
        let now = SystemTime::now();
        let mut due = self.times.due(now, self.catch_up.look_back()).await?;
        // It is forgotten whether an older run was missed or has begun.
        due.past
            .retain(|run| now.duration_since(*run).unwrap_or_default() < self.remembered);
        Ok(match due.past.first() {
            Some(&newest) if self.settled.is_none_or(|settled| settled < newest) => {
                let limit = self.in_time_until(newest, due.next);
                Sight::Due(Look {
                    newest,
                    missed: limit.is_some_and(|limit| now > limit),
                    due,
                })
            }
            _ => Sight::Nothing(due.next),
        })
    }

    /// The last moment for a run to begin in time. `None`: later than any clock can show.
    fn in_time_until(&self, newest: SystemTime, next: Option<SystemTime>) -> Option<SystemTime> {
        newest.checked_add(self.tolerance.unwrap_or_else(|| {
            let gap = next.and_then(|next| next.duration_since(newest).ok());
            gap.map_or(TOLERANCE, |gap| (gap / 2).min(TOLERANCE))
        }))
    }

    /// Whether there is anything to do.
    async fn concerns(&self, look: &Look) -> Result<bool, LockError> {
        if look.missed && self.catch_up == CatchUp::Skip {
            return Ok(false);
        }
        Ok(!self.begun.has(look.newest).await?)
    }

    /// The job's mutex, unless another instance runs what is due. An instance that merely arrives
    /// at the same moment does not wait in its queue.
    async fn turn(&self, look: &Look) -> Result<Option<LockGuard>, LockError> {
        let request = self.request.clone().owner(&Owner::new());
        if let Some(guard) = request.clone().try_acquire().await? {
            return Ok(Some(guard));
        }
        tokio::time::sleep(jitter(NOTED_BY_THEN, NOTED_BY_THEN * 2)).await;
        if self.begun.has(look.newest).await? {
            return Ok(None);
        }
        // Another instance is still busy with an earlier run.
        let patience = match self.catch_up {
            CatchUp::Skip => self.in_time_until(look.newest, look.due.next),
            CatchUp::Once | CatchUp::All { .. } => look.due.next,
        };
        let request = match patience {
            Some(until) => {
                let left = until.duration_since(SystemTime::now());
                request.wait_at_most(left.unwrap_or_default())
            }
            None => request,
        };
        request.acquire().await.unless_busy()
    }

    /// Which run to begin, now that no other instance can.
    async fn choose(&mut self) -> Result<Option<SystemTime>, LockError> {
        let Sight::Due(look) = self.look().await? else {
            return Ok(None);
        };
        if !self.concerns(&look).await? {
            self.settled = Some(look.newest);
            return Ok(None);
        }
        if look.missed && !self.known {
            // A new job cannot have missed it. From here on, it can.
            self.begun.note(look.newest).await?;
            (self.settled, self.known) = (Some(look.newest), true);
            return Ok(None);
        }
        let mut run = look.newest;
        if self.known {
            for earlier in look.due.past.into_iter().skip(1) {
                if self.begun.has(earlier).await? {
                    break;
                }
                run = earlier;
            }
        }
        Ok(Some(run))
    }

    async fn begin<F, Fut>(
        &mut self,
        guard: LockGuard,
        run: SystemTime,
        work: &mut F,
    ) -> Result<(), LockError>
    where
        F: FnMut(Tick) -> Fut,
        Fut: Future<Output = ()>,
    {
        if guard.token().is_none() {
            return Err(self.no_tokens()?);
        }
        // As late as possible: earlier readings are true only while the mutex is held.
        guard.ensure_valid()?;
        let begun = self.begun.note(run).await?;
        self.known = true;
        if !begun {
            release(guard, &self.job).await;
            return Ok(());
        }
        let lease = guard.lease();
        // The run has begun, so an error of later times waits for the next round.
        let missed = matches!(
            self.look().await,
            Ok(Sight::Due(look)) if look.missed || run < look.newest
        );
        let tick = Tick {
            scheduled_at: run,
            missed,
            lease: lease.clone(),
        };
        match lease.while_held(work(tick)).await {
            Ok(()) => {
                // This instance waits, not the backend, because a mutex that was taken only to
                // check must not be kept.
                let rest = self.at_least.saturating_sub(lease.held_for());
                let _ = lease.while_held(tokio::time::sleep(rest)).await;
                release(guard, &self.job).await;
            }
            Err(error) => {
                tracing::warn!(job = self.job, %error, "a run was ended before it was done");
            }
        }
        Ok(())
    }

    fn no_tokens(&self) -> Result<LockError, LockError> {
        let message =
            "jobs need a backend that keeps fencing tokens: they say which runs were begun";
        Ok(LockError::Backend {
            target: self.request.target()?,
            phase: Phase::Acquire,
            source: BackendError::unsupported(self.begun.backend(), message),
        })
    }
}

async fn release(guard: LockGuard, job: &str) {
    if let Err(error) = guard.release().await {
        tracing::warn!(job, %error, "the run has ended, but releasing the job's mutex failed");
    }
}
