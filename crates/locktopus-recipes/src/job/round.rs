//! The work of an instance when something is due.

use std::future::Future;
use std::time::{Duration, SystemTime};

use locktopus_core::{
    BackendError, LockError, LockGuard, LockRequest, Owner, Phase, UnlessBusy as _,
};

use super::begun::{BegunRuns, was_used};
use super::catch_up::{CatchUp, MissedRuns, OnMissed};
use super::tick::Tick;
use super::times::{DueTimes, Times};
use crate::pauses::jitter;

/// The longest default tolerance.
const MAX_TOLERANCE: Duration = Duration::from_secs(60);

/// By then, an instance that has just taken the job's mutex has noted which run it begins.
const NOTE_DELAY: Duration = Duration::from_millis(50);

/// One instance of a job.
#[derive(Debug)]
pub(super) struct JobRunner {
    pub(super) job: String,
    pub(super) times: Times,
    /// For the job's mutex.
    pub(super) request: LockRequest,
    pub(super) begun: BegunRuns,
    pub(super) at_least: Duration,
    pub(super) catch_up: CatchUp,
    pub(super) tolerance: Option<Duration>,
    /// How long after a run's time the backend still knows whether it has begun.
    pub(super) remembered: Duration,
    /// Nothing is left to do about the run of this time, or any before.
    pub(super) settled: Option<SystemTime>,
    /// The job has run before, so a run that has not begun was missed.
    pub(super) known: bool,
    pub(super) on_missed: Option<OnMissed>,
}

/// The answer to whether a run is due.
enum Situation {
    /// A run is due.
    Due(DueRuns),
    /// Nothing is due until this time, if there are more.
    Nothing(Option<SystemTime>),
}

/// The due runs, and what they mean.
struct DueRuns {
    due: DueTimes,
    newest: SystemTime,
    /// The newest run is late: no longer due but missed.
    missed: bool,
}

impl JobRunner {
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
            let runs = match self.due_runs().await? {
                Situation::Due(runs) => runs,
                Situation::Nothing(next) => return Ok(next),
            };
            if !self.known {
                // Before taking the mutex, because taking it makes the job known.
                self.known = was_used(&self.request.clone().inspect().await?);
            }
            if !self.concerns(&runs).await? {
                self.settled = Some(runs.newest);
                continue;
            }
            let Some(guard) = self.turn(&runs).await? else {
                // Another instance runs it. The next due run checks what is still missing.
                if self.begun.has(runs.newest).await? {
                    self.settled = Some(runs.newest);
                }
                return Ok(runs.due.next);
            };
            match self.choose().await? {
                Some(run) => self.begin(guard, run, work).await?,
                None => release(guard, &self.job).await,
            }
        }
    }

    /// The runs that are due and not settled, or else when to check again.
    async fn due_runs(&mut self) -> Result<Situation, LockError> {
        let now = SystemTime::now();
        let mut due = self.times.due(now, CatchUp::MOST).await?;
        // It is forgotten whether an older run was missed or has begun.
        due.past
            .retain(|run| now.duration_since(*run).unwrap_or_default() < self.remembered);
        Ok(match due.past.first() {
            Some(&newest) if self.settled.is_none_or(|settled| settled < newest) => {
                let limit = self.in_time_until(newest, due.next);
                Situation::Due(DueRuns {
                    newest,
                    missed: limit.is_some_and(|limit| now > limit),
                    due,
                })
            }
            _ => Situation::Nothing(due.next),
        })
    }

    /// Reports the runs that no instance began. Checks these times, newest first, back to one that
    /// has begun or is settled.
    async fn tell_missed(&self, times: &[SystemTime]) {
        let (mut missed, mut or_more) = (Vec::new(), true);
        for &time in times {
            let is_settled = self.settled.is_some_and(|settled| time <= settled);
            let ended = match is_settled {
                true => Ok(true),
                false => self.begun.has(time).await,
            };
            match ended {
                Ok(false) => missed.push(time),
                // Without an answer there may be more.
                ended => {
                    or_more = ended.is_err();
                    break;
                }
            }
        }
        if let Some(since) = missed.last() {
            let missed = MissedRuns {
                count: missed.len(),
                or_more,
                since: *since,
            };
            match &self.on_missed {
                Some(tell) => (tell.0)(missed),
                None => tracing::warn!(job = self.job, %missed, "runs were missed"),
            }
        }
    }

    /// The last moment for a run to begin in time. `None`: later than any clock can show.
    fn in_time_until(&self, newest: SystemTime, next: Option<SystemTime>) -> Option<SystemTime> {
        newest.checked_add(self.tolerance.unwrap_or_else(|| {
            let gap = next.and_then(|next| next.duration_since(newest).ok());
            gap.map_or(MAX_TOLERANCE, |gap| (gap / 2).min(MAX_TOLERANCE))
        }))
    }

    /// Whether there is anything to do.
    async fn concerns(&self, runs: &DueRuns) -> Result<bool, LockError> {
        if self.begun.has(runs.newest).await? {
            return Ok(false);
        }
        let skipped = runs.missed && self.catch_up == CatchUp::Skip;
        if skipped && self.known {
            self.tell_missed(&runs.due.past).await;
        }
        Ok(!skipped)
    }

    /// The job's mutex, unless another instance runs what is due. An instance that merely arrives
    /// at the same moment does not wait in its queue.
    async fn turn(&self, runs: &DueRuns) -> Result<Option<LockGuard>, LockError> {
        let request = self.request.clone().owner(&Owner::new());
        if let Some(guard) = request.clone().try_acquire().await? {
            return Ok(Some(guard));
        }
        tokio::time::sleep(jitter(NOTE_DELAY, NOTE_DELAY * 2)).await;
        if self.begun.has(runs.newest).await? {
            return Ok(None);
        }
        // Another instance is still busy with an earlier run.
        let patience = match self.catch_up {
            CatchUp::Skip => self.in_time_until(runs.newest, runs.due.next),
            CatchUp::Once | CatchUp::All { .. } => runs.due.next,
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
        let Situation::Due(runs) = self.due_runs().await? else {
            return Ok(None);
        };
        if !self.concerns(&runs).await? {
            self.settled = Some(runs.newest);
            return Ok(None);
        }
        if runs.missed && !self.known {
            // A new job cannot have missed it. From here on, it can.
            self.begun.note(runs.newest).await?;
            (self.settled, self.known) = (Some(runs.newest), true);
            return Ok(None);
        }
        let mut run = runs.newest;
        if self.known {
            for earlier in runs
                .due
                .past
                .into_iter()
                .take(self.catch_up.look_back())
                .skip(1)
            {
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
        let known = std::mem::replace(&mut self.known, true);
        if !begun {
            release(guard, &self.job).await;
            return Ok(());
        }
        let lease = guard.lease();
        // The run has begun, so an error of later times waits for the next round.
        let (mut missed, mut earlier) = (false, Vec::new());
        if let Ok(Situation::Due(mut runs)) = self.due_runs().await {
            missed = runs.missed || run < runs.newest;
            runs.due.past.retain(|time| known && *time < run);
            earlier = runs.due.past;
        }
        let tick = Tick {
            scheduled_at: run,
            missed,
            lease: lease.clone(),
        };
        let working = lease.while_held(work(tick));
        let (worked, ()) = tokio::join!(working, self.tell_missed(&earlier));
        match worked {
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
