//! A backend that answers at once as a test wants, and the services of leases.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::time::Duration;

use locktopus_core::{
    BackendError, BackendInfo, ExtendOutcome, ExtendRequest, LockTarget, LostCause, OwnerId,
    ReleaseOutcome,
};
use tokio::time::Instant;

use super::lease::BackendLease;
use super::watchdog::Watchdog;
use crate::contract::clock::{self, BootInstant};
use crate::engine::observe::ExtensionMeter;
use crate::sync::{Arc, CancellationToken, TaskTracker, TaskTrackerToken};

type Task = Pin<Box<dyn Future<Output = ()>>>;

pub(crate) struct Services {
    pub(crate) backend: Backend,
    pub(crate) settings: Settings,
    pub(crate) observer: Observer,
    pub(crate) ids: (),
    pub(crate) watchdog: Arc<Watchdog>,
    pub(crate) tasks: Tasks,
    pub(crate) attempts: TaskTracker,
    pub(crate) announcing: TaskTracker,
    pub(crate) closing: CancellationToken,
    pub(crate) closed: CancellationToken,
    pub(crate) cohorts: Cohorts,
    /// The backend's answer to a renewal.
    pub(crate) renewed: Cell<ExtendOutcome>,
    pub(crate) released: Released,
}

/// The outcome of releases.
#[derive(Debug, Default)]
pub(crate) struct Released {
    pub(crate) in_time: Cell<u32>,
    /// The backend was already gone.
    pub(crate) too_late: Cell<u32>,
}

impl Services {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            backend: Backend,
            settings: Settings { margin: Margin },
            observer: Observer,
            ids: (),
            watchdog: Arc::default(),
            tasks: Tasks {
                tracker: TaskTracker::new(),
                waiting: RefCell::default(),
            },
            attempts: TaskTracker::new(),
            announcing: TaskTracker::new(),
            closing: CancellationToken::new(),
            closed: CancellationToken::new(),
            cohorts: Cohorts,
            renewed: Cell::new(ExtendOutcome::Extended),
            released: Released::default(),
        })
    }

    pub(crate) fn call_timeout(&self) -> Duration {
        Duration::from_secs(1)
    }

    pub(crate) async fn extend(
        &self,
        batch: &[ExtendRequest],
        _: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        batch.iter().map(|_| Ok(self.renewed.get())).collect()
    }

    pub(crate) async fn release(&self, _: &Request) -> Result<ReleaseOutcome, BackendError> {
        self.give_back();
        Ok(ReleaseOutcome::Released)
    }

    /// No lock is released by force.
    pub(crate) async fn explain(&self, _: &LockTarget, _: &OwnerId, cause: LostCause) -> LostCause {
        cause
    }

    pub(crate) async fn explain_losses(&self, _: &mut [(Arc<BackendLease>, LostCause)]) {}

    /// There is one runtime, which is always here.
    pub(crate) fn here(&self) -> Result<Home, ()> {
        Ok(Home)
    }

    pub(crate) fn home(&self) -> Option<Home> {
        Some(Home)
    }

    pub(crate) fn come_to(&self, _: &Home) {}

    pub(crate) fn pending_release_of(&self, _: &BackendLease) -> PendingRelease {
        PendingRelease {
            release: Request { last: true },
        }
    }

    pub(crate) fn last_release_of_reader(&self, lease: &BackendLease) -> PendingRelease {
        self.pending_release_of(lease)
    }

    pub(crate) fn reap(&self, pending: PendingRelease) {
        self.reap_then(pending, || ());
    }

    /// The reaper is fast: it gives a lock back at once, unless everything has ended.
    pub(crate) fn reap_then(&self, _: PendingRelease, settled: impl FnOnce() + 'static) {
        let _under_way = self.tasks.tracker.token();
        self.give_back();
        settled();
    }

    fn give_back(&self) {
        let count = match self.closed.is_cancelled() {
            true => &self.released.too_late,
            false => &self.released.in_time,
        };
        count.set(count.get() + 1);
    }
}

/// The place of background work.
pub(crate) struct Home;

impl Home {
    pub(crate) fn runtime(&self) -> &Self {
        self
    }

    pub(crate) fn spawn<T>(
        &self,
        task: impl Future<Output = T>,
    ) -> Pin<Box<impl Future<Output = Result<T, ()>>>> {
        Box::pin(async { Ok(task.await) })
    }
}

/// Background tasks, which run when a test says so.
pub(crate) struct Tasks {
    tracker: TaskTracker,
    waiting: RefCell<Vec<(Task, TaskTrackerToken)>>,
}

impl Tasks {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let task: Task = Box::pin(task);
        let token = self.tracker.token();
        self.waiting.borrow_mut().push((task, token));
    }

    /// Runs the spawned tasks, and returns how many there were.
    pub(crate) fn run(&self) -> usize {
        let tasks = self.waiting.take();
        let count = tasks.len();
        for (task, token) in tasks {
            loom::future::block_on(task);
            drop(token);
        }
        count
    }

    pub(crate) fn close(&self) {
        self.tracker.close();
    }

    pub(crate) fn len(&self) -> usize {
        self.tracker.len()
    }

    pub(crate) async fn wait(&self) {
        self.tracker.wait().await;
    }
}

#[derive(Debug)]
pub(crate) struct PendingRelease {
    pub(crate) release: Request,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) last: bool,
}

impl PendingRelease {
    pub(crate) fn request(&self, _: Instant, (): &()) -> Request {
        self.release
    }
}

pub(crate) struct Settings {
    pub(crate) margin: Margin,
}

pub(crate) struct Margin;

impl Margin {
    pub(crate) fn of(&self, _: Duration) -> Duration {
        Duration::ZERO
    }

    pub(crate) fn valid_until(&self, sent: BootInstant, lease: Duration) -> BootInstant {
        sent + lease
    }
}

pub(crate) struct Backend;

impl Backend {
    pub(crate) fn shard(&self, _: &LockTarget) -> u32 {
        0
    }

    pub(crate) fn info(&self) -> BackendInfo {
        BackendInfo::new("loom", "loom", Duration::from_secs(1))
    }

    pub(crate) async fn close(&self) {}
}

pub(crate) struct Observer;

impl Observer {
    pub(crate) fn extended(&self, _: &ExtensionMeter) {}
}

/// No task of this process waits.
pub(crate) struct Cohorts;

impl Cohorts {
    pub(crate) fn close(&self, _: &Arc<Services>) {}
}

/// The time at which `passed` has passed since the start of the schedule.
pub(crate) fn at(passed: Duration) -> BootInstant {
    clock::begun() + passed
}
