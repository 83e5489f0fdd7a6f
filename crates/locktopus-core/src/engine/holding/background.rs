//! Background work that survives the runtime it started on.
//!
//! Each runtime that uses a `Locktopus` is a [`Home`] and runs the watchdog. Leases are renewed and
//! losses reported while one home runs. A [job](Services::in_background) runs on one home. If that
//! home ends or stops being driven, the job restarts on another home, or on the next runtime that
//! arrives.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::internal::drives_itself;
use locktopus_contract::{BackendError, LockTarget, NoRuntime, lock};
use slab::Slab;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::engine::error::{LockError, Phase};
use crate::engine::holding::services::Services;
use crate::engine::holding::watchdog::ScheduledCheck;

/// A job moves after this time if its runtime may not be driven while another one is.
const MOVE_AFTER: Duration = Duration::from_secs(1);

/// A runtime that runs the watchdog.
#[derive(Debug)]
pub(crate) struct Home {
    runtime: Handle,
    drives_itself: bool,
}

impl Home {
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    fn is(&self, other: &Self) -> bool {
        self.runtime.id() == other.runtime.id()
    }
}

/// The unfinished jobs.
#[derive(Default)]
pub(super) struct BackgroundJobs(Mutex<Slab<Arc<BackgroundJob>>>);

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Work in the background. It may be started more than once.
struct BackgroundJob {
    key: usize,
    begin: Box<dyn Fn(Arc<Services>) -> Work + Send + Sync>,
    state: Mutex<JobState>,
}

#[derive(Default)]
struct JobState {
    /// How often it was started.
    begun: u32,
    /// It is being spawned on a runtime.
    starting: bool,
    /// Where it runs.
    task: Option<(Arc<Home>, AbortHandle)>,
    /// Held until it is done.
    tracked: Option<TaskTrackerToken>,
    done: bool,
}

impl Services {
    /// Makes the current runtime a home unless it is one already. Jobs without a home then
    /// move here.
    ///
    /// # Errors
    ///
    /// [`NoRuntime`] outside a tokio runtime.
    pub(crate) fn here(self: &Arc<Self>) -> Result<Arc<Home>, NoRuntime> {
        let mut arrived = false;
        let home = self.homes.here(|runtime| {
            arrived = true;
            let watchdog = Arc::clone(&self.watchdog);
            runtime.spawn(watchdog.run(Arc::downgrade(self), self.closed.clone()));
            Home {
                runtime: runtime.clone(),
                drives_itself: drives_itself(runtime),
            }
        })?;
        if arrived {
            self.come_to(&home);
        }
        Ok(home)
    }

    /// Like [`here`](Self::here), before a request sends anything.
    ///
    /// # Errors
    ///
    /// [`LockError::Backend`] outside a tokio runtime.
    pub(crate) fn ready_for(
        self: &Arc<Self>,
        target: &LockTarget,
        phase: Phase,
    ) -> Result<(), LockError> {
        if self.here().is_ok() {
            return Ok(());
        }
        Err(LockError::Backend {
            target: target.clone(),
            phase,
            source: BackendError::no_runtime(self.backend.info().name),
        })
    }

    /// Prefers a runtime with threads of its own, then this one, then any.
    pub(crate) fn home(self: &Arc<Self>) -> Option<Arc<Home>> {
        let here = self.here().ok();
        let homes = self.homes.all();
        let lasting = homes.iter().find(|home| home.drives_itself).cloned();
        lasting.or(here).or_else(|| homes.first().cloned())
    }

    /// Runs work in the background; `tracker` counts it until it is done. The work may be
    /// interrupted and restarted.
    pub(crate) fn in_background<F>(
        self: &Arc<Self>,
        tracker: Option<&TaskTracker>,
        work: impl Fn(Arc<Self>) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let job = {
            let mut jobs = lock(&self.jobs.0);
            let place = jobs.vacant_entry();
            let job = Arc::new(BackgroundJob {
                key: place.key(),
                begin: Box::new(move |services| Box::pin(work(services))),
                state: Mutex::new(JobState {
                    tracked: tracker.map(TaskTracker::token),
                    ..JobState::default()
                }),
            });
            place.insert(Arc::clone(&job));
            job
        };
        if let Some(home) = self.home() {
            self.begin(&job, &home);
        }
    }

    /// Moves jobs here that have no home, or whose home may not be driven.
    pub(crate) fn come_to(self: &Arc<Self>, home: &Arc<Home>) {
        let jobs: Vec<_> = {
            let jobs = lock(&self.jobs.0);
            jobs.iter().map(|(_, job)| Arc::clone(job)).collect()
        };
        for job in jobs {
            if !job.goes_on(home) {
                self.begin(&job, home);
            }
        }
    }

    /// Starts it on this home, or on another one if this runtime is shutting down. If all are, it
    /// waits for the next runtime.
    fn begin(self: &Arc<Self>, job: &Arc<BackgroundJob>, home: &Arc<Home>) {
        if !self.begins_on(job, home) {
            let others = self.homes.all();
            let mut others = others.iter().filter(|other| !other.is(home));
            others.any(|other| self.begins_on(job, other));
        }
    }

    /// False if the runtime is shutting down and dropped it at once.
    fn begins_on(self: &Arc<Self>, job: &Arc<BackgroundJob>, home: &Arc<Home>) -> bool {
        let (number, before) = {
            let mut state = lock(&job.state);
            if state.done {
                return true;
            }
            state.begun += 1;
            state.starting = true;
            (state.begun, state.task.take())
        };
        if let Some((_, task)) = before {
            task.abort();
        }
        let running = JobRun {
            services: Arc::downgrade(self),
            job: Arc::clone(job),
            number,
        };
        let work = (job.begin)(Arc::clone(self));
        let task = home.runtime.spawn(async move {
            work.await;
            running.done();
        });
        let mut state = lock(&job.state);
        if state.begun != number || state.done {
            return true;
        }
        if !std::mem::take(&mut state.starting) {
            return false;
        }
        state.task = Some((Arc::clone(home), task.abort_handle()));
        drop(state);
        if !home.drives_itself && self.homes.all().len() > 1 {
            self.look_after(job, clock::now() + MOVE_AFTER);
        }
        true
    }

    fn look_after(&self, job: &Arc<BackgroundJob>, at: BootInstant) {
        let job: Weak<BackgroundJob> = Arc::downgrade(job);
        self.watchdog.schedule_check(job, at);
    }
}

impl BackgroundJob {
    /// Whether it is done, or certain to continue as long as `here` runs.
    fn goes_on(&self, here: &Home) -> bool {
        let state = lock(&self.state);
        let on = state.task.as_ref().map(|(home, _)| home);
        state.done || on.is_some_and(|home| home.drives_itself || home.is(here))
    }
}

impl ScheduledCheck for BackgroundJob {
    /// Called on a home that runs.
    fn check(self: Arc<Self>, services: &Arc<Services>, now: BootInstant) {
        let Some(home) = services.home() else { return };
        if !self.goes_on(&home) {
            services.begin(&self, &home);
        } else if !lock(&self.state).done && !home.drives_itself {
            services.look_after(&self, now + MOVE_AFTER);
        }
    }
}

/// One run of a job. If it is dropped half-way, its runtime has ended.
struct JobRun {
    services: Weak<Services>,
    job: Arc<BackgroundJob>,
    number: u32,
}

impl JobRun {
    fn done(&self) {
        let (task, tracked) = {
            let mut state = lock(&self.job.state);
            state.done = true;
            (state.task.take(), state.tracked.take())
        };
        if let Some(services) = self.services.upgrade() {
            lock(&services.jobs.0).try_remove(self.job.key);
        }
        drop((task, tracked));
    }
}

impl Drop for JobRun {
    fn drop(&mut self) {
        {
            let mut state = lock(&self.job.state);
            if state.done || state.begun != self.number {
                return;
            }
            if std::mem::take(&mut state.starting) {
                // The caller of `begins_on` handles that.
                return;
            }
            state.begun += 1;
            state.task = None;
        }
        if let Some(services) = self.services.upgrade() {
            services.look_after(&self.job, clock::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::Locktopus;
    use locktopus_memory::MemoryBackend;

    #[tokio::test]
    async fn what_an_ending_runtime_drops_is_begun_elsewhere_at_once() {
        let locks = Locktopus::builder(MemoryBackend::new()).build().unwrap();
        let services = locks.services();
        services.here().unwrap();
        let single = || tokio::runtime::Builder::new_current_thread().build();
        let ended = std::thread::spawn(move || single().unwrap().handle().clone());
        let dead = Arc::new(Home {
            runtime: ended.join().unwrap(),
            drives_itself: false,
        });
        let begun = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&begun);
        let job = Arc::new(BackgroundJob {
            key: 0,
            begin: Box::new(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                Box::pin(async {})
            }),
            state: Mutex::default(),
        });
        services.begin(&job, &dead);
        assert_eq!(begun.load(Ordering::Relaxed), 2, "there, and then here");
        while !lock(&job.state).done {
            tokio::task::yield_now().await;
        }
        assert_eq!(begun.load(Ordering::Relaxed), 2);
    }
}
