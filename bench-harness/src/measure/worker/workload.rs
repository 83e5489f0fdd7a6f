//! The workloads that take and give back locks: closed loops, and open loops with a schedule.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::clock::since;
use super::job::Job;
use super::ours::lock_name;
use super::pause::Pause;
use crate::measure::model::op;
use crate::measure::plan::{Kind, Scenario};
use crate::measure::record::{OpId, Recorder};
use crate::shared::locking::Subject;

/// How long after the end of the measured part a worker may take to get its last lock.
const LAST_WAIT: Duration = Duration::from_secs(30);
/// How late the runtime's timer may be.
const TIMER_STEP_NS: u64 = 2_000_000;

pub(super) async fn run(
    job: &Job,
    subject: Arc<dyn Subject>,
    start_ns: u64,
) -> Result<Recorder, String> {
    let mut workers = JoinSet::new();
    for number in 0..job.workers {
        let worker = Worker::new(job, number, Arc::clone(&subject), start_ns)
            .map_err(|error| format!("cannot make a timer: {error}"))?;
        match job.arrivals_per_second {
            Some(rate) => workers.spawn(worker.keep_schedule(number, rate, job.workers)),
            None => workers.spawn(worker.loop_around()),
        };
    }
    let mut all: Option<Recorder> = None;
    while let Some(recorder) = workers.join_next().await {
        let recorder = recorder.map_err(|error| format!("a worker panicked: {error}"))?;
        match &mut all {
            Some(all) => all.merge(recorder).map_err(|error| error.to_string())?,
            None => all = Some(recorder),
        }
    }
    all.ok_or_else(|| "no workers".to_owned())
}

struct Worker {
    subject: Arc<dyn Subject>,
    kind: Kind,
    lock: String,
    lock_number: u32,
    hold: Duration,
    pause: Pause,
    end_ns: u64,
    start_ns: u64,
    recorder: Recorder,
    acquire: OpId,
    release: OpId,
    pair: Option<OpId>,
    held: Option<OpId>,
}

/// Which kind of lock a worker takes: of a read-write lock odd workers take the exclusive half.
fn kind_of(job: &Job, worker: u32) -> Kind {
    match job.kind {
        Kind::RwLock if worker % 2 == 1 => Kind::WriteLock,
        Kind::RwLock => Kind::ReadLock,
        kind => kind,
    }
}

/// Under which name a worker's waits are recorded.
fn wait_of(job: &Job, worker: u32) -> &'static str {
    match (job.scenario, kind_of(job, worker)) {
        (Scenario::ReadersWriters, Kind::ReadLock) => op::READ_WAIT,
        (Scenario::ReadersWriters, _) => op::WRITE_WAIT,
        (Scenario::RemoteWaiter, _) if job.remote => op::REMOTE_WAIT,
        _ => op::ACQUIRE,
    }
}

/// What is recorded over time, the same for all workers of a round.
fn series_of(scenario: Scenario) -> &'static str {
    match scenario {
        Scenario::RemoteWaiter => op::REMOTE_WAIT,
        Scenario::ReadersWriters => op::WRITE_WAIT,
        scenario if scenario.is_contended() => op::ACQUIRE,
        _ => op::PAIR,
    }
}

impl Worker {
    fn new(
        job: &Job,
        number: u32,
        subject: Arc<dyn Subject>,
        start_ns: u64,
    ) -> std::io::Result<Self> {
        let worker = job.first_worker + number;
        let lock_number = if job.scenario == Scenario::ManyLocks {
            worker
        } else {
            0
        };
        let pairs = !job.scenario.is_contended();
        let interval = Duration::from_nanos(job.interval_ns);
        let mut recorder = Recorder::new(worker, series_of(job.scenario), interval);
        Ok(Self {
            subject,
            kind: kind_of(job, worker),
            lock: lock_name(&job.prefix, lock_number),
            lock_number,
            hold: Duration::from_nanos(job.hold_ns),
            pause: Pause::new()?,
            end_ns: job.duration_ns,
            start_ns,
            acquire: recorder.operation(wait_of(job, worker)),
            release: recorder.operation(op::RELEASE),
            pair: pairs.then(|| recorder.operation(op::PAIR)),
            held: (job.scenario == Scenario::RemoteWaiter).then(|| recorder.operation(op::HOLD)),
            recorder,
        })
    }

    async fn loop_around(mut self) -> Recorder {
        while since(self.start_ns) < self.end_ns {
            let due = since(self.start_ns);
            self.once(due).await;
        }
        self.recorder
    }

    /// Takes the lock at its share of the arrivals, each timed from when it was due.
    async fn keep_schedule(mut self, number: u32, rate: u64, workers: u32) -> Recorder {
        let period = 1_000_000_000 * u64::from(workers) / rate.max(1);
        let mut due = period * u64::from(number) / u64::from(workers);
        while due < self.end_ns {
            self.wait_for(due).await;
            self.once(due).await;
            due += period;
        }
        self.recorder
    }

    /// Waits for a moment more exactly than the runtime's timer can, whose steps are a millisecond: its
    /// lateness would be counted as the lock's.
    async fn wait_for(&self, due: u64) {
        let early = due.saturating_sub(since(self.start_ns));
        if early > TIMER_STEP_NS {
            tokio::time::sleep(Duration::from_nanos(early - TIMER_STEP_NS)).await;
        }
        while since(self.start_ns) < due {
            tokio::task::yield_now().await;
        }
    }

    async fn once(&mut self, due: u64) {
        let taken = tokio::time::timeout(
            Duration::from_nanos(self.end_ns.saturating_sub(since(self.start_ns))) + LAST_WAIT,
            self.subject.acquire(self.kind, &self.lock),
        );
        let held = match taken.await {
            Ok(Ok(held)) => held,
            Ok(Err(kind)) => return self.recorder.error(kind),
            Err(_) => return self.recorder.error("never got it"),
        };
        let granted = since(self.start_ns);
        if self.pause.wait(self.hold).await.is_err() {
            self.recorder.error("timer");
        }
        let ended = since(self.start_ns);
        let released = held.release().await;
        let done = since(self.start_ns);
        self.recorder.held(self.lock_number, granted, ended);
        if let Err(kind) = released {
            return self.recorder.error(kind);
        }
        // What ended after the measured part counts as a hold, but not as a latency: the others had
        // stopped asking by then.
        if granted <= self.end_ns {
            self.recorder.record(self.acquire, due, granted);
            self.recorder.record(self.release, ended, done);
            if let Some(held) = self.held {
                self.recorder.record(held, granted, ended);
            }
            if let Some(pair) = self.pair {
                self.recorder.record(pair, due, done - (ended - granted));
            }
        }
    }
}
