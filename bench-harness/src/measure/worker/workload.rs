//! The workloads that take and release locks: closed loops, and open loops with a schedule.

use std::sync::Arc;
use std::time::Duration;

use locktopus_servers::Pause;
use tokio::task::JoinSet;

use super::clock::since;
use super::job::Job;
use super::ours::lock_name;
use crate::measure::model::op;
use crate::measure::plan::{Kind, Scenario};
use crate::measure::record::{OpId, Recorder};
use crate::shared::locking::Subject;

/// How long after the measured part a worker may wait for its last lock.
const LAST_WAIT: Duration = Duration::from_secs(30);
/// The largest delay of a kernel timer while the machine runs the worker.
const TIMER_LATE_NS: u64 = 1_000_000;

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
    own_lease: Option<OwnLease>,
    held: Option<OpId>,
}

/// Tells grants from another process apart from those of a lease that this process never gave back.
struct OwnLease {
    operation: OpId,
    last_token: Option<u64>,
}

impl OwnLease {
    /// Whether this process had the lease all along. The turns of a lease have consecutive tokens.
    /// A grant by a server has a token that is larger by the time since the last one.
    fn is_again(&mut self, token: Option<u64>) -> bool {
        let last = std::mem::replace(&mut self.last_token, token);
        token.is_some() && token == last.and_then(|last| last.checked_add(1))
    }
}

/// The kind of lock that a worker takes: odd workers take a read-write lock exclusively.
fn kind_of(job: &Job, worker: u32) -> Kind {
    match job.kind {
        Kind::RwLock if worker % 2 == 1 => Kind::WriteLock,
        Kind::RwLock => Kind::ReadLock,
        kind => kind,
    }
}

/// The operation that a worker's waits are recorded as.
fn wait_of(job: &Job, worker: u32) -> &'static str {
    match (job.scenario, kind_of(job, worker)) {
        (Scenario::ReadersWriters, Kind::ReadLock) => op::READ_WAIT,
        (Scenario::ReadersWriters, _) => op::WRITE_WAIT,
        (Scenario::RemoteWaiter, _) if job.remote => op::REMOTE_WAIT,
        _ => op::ACQUIRE,
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
        let mut recorder = Recorder::new(worker);
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
            own_lease: job.remote.then(|| OwnLease {
                operation: recorder.operation(op::OWN_LEASE),
                last_token: None,
            }),
            held: (job.scenario == Scenario::RemoteWaiter).then(|| recorder.operation(op::HOLD)),
            recorder,
        })
    }

    async fn loop_around(mut self) -> Recorder {
        while since(self.start_ns) < self.end_ns {
            let due = since(self.start_ns);
            self.once(due, Counts::UntilTheEnd).await;
        }
        self.recorder
    }

    /// Takes the lock at its share of the arrivals, each timed from its due time.
    async fn keep_schedule(mut self, number: u32, rate: u64, workers: u32) -> Recorder {
        let period = 1_000_000_000 * u64::from(workers) / rate.max(1);
        let mut due = period * u64::from(number) / u64::from(workers);
        while due < self.end_ns {
            let from = self.wait_for(due).await;
            self.once(from, Counts::Always).await;
            due += period;
        }
        self.recorder
    }

    /// Waits until a request is due, without a busy loop, whose CPU time would be counted as the
    /// lock's.
    ///
    /// Returns the start time of the request. If the previous request makes this one late, that is
    /// its due time. A timer that is some microseconds late is not the lock's fault, so then the
    /// request starts when the worker wakes up. A longer delay is a stall, and counts.
    async fn wait_for(&mut self, due: u64) -> u64 {
        let early = due.saturating_sub(since(self.start_ns));
        if early == 0 {
            return due;
        }
        if self.pause.wait(Duration::from_nanos(early)).await.is_err() {
            self.recorder.error("timer");
        }
        let woken = since(self.start_ns);
        if woken.saturating_sub(due) <= TIMER_LATE_NS {
            woken
        } else {
            due
        }
    }

    async fn once(&mut self, due: u64, counts: Counts) {
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
        let again = self.own_lease.as_mut();
        let again = again.and_then(|own| own.is_again(held.token()).then_some(own.operation));
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
        if counts == Counts::Always || granted <= self.end_ns {
            let acquire = again.unwrap_or(self.acquire);
            self.recorder.record(acquire, due, granted);
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

/// Which grants count as latencies. All of them count as holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// Grants of the measured part: in a closed loop the other workers have stopped by its end.
    UntilTheEnd,
    /// All grants that were due in it: in an open loop the late ones are those that waited longest.
    Always,
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::*;
    use crate::measure::plan::{Client, Strategy};
    use crate::measure::worker::monotonic_ns;
    use crate::shared::locking::Held;

    /// Grants at once: the given tokens, but nothing before a given moment.
    struct Scripted {
        tokens: Mutex<Vec<u64>>,
        not_before_ns: u64,
        start_ns: u64,
    }

    struct Token(u64);

    #[async_trait]
    impl Held for Token {
        fn token(&self) -> Option<u64> {
            Some(self.0)
        }

        async fn release(self: Box<Self>) -> Result<(), &'static str> {
            Ok(())
        }
    }

    #[async_trait]
    impl Subject for Scripted {
        async fn acquire(&self, _: Kind, _: &str) -> Result<Box<dyn Held>, &'static str> {
            let early = self.not_before_ns.saturating_sub(since(self.start_ns));
            tokio::time::sleep(Duration::from_nanos(early)).await;
            let token = self.tokens.lock().unwrap().pop();
            token
                .map(|token| Box::new(Token(token)) as Box<dyn Held>)
                .ok_or("no more")
        }
    }

    fn job(remote: bool) -> Job {
        Job {
            scenario: Scenario::RemoteWaiter,
            strategy: Strategy::Locktopus,
            client: Client::Memory,
            url: "memory:".to_owned(),
            more_urls: Vec::new(),
            kind: Kind::Lock,
            prefix: "p".to_owned(),
            first_worker: 0,
            workers: 1,
            threads: 1,
            turns: None,
            lease_cache_ns: 0,
            reluctant: false,
            remote,
            locks: 1,
            hold_ns: 0,
            duration_ns: 100_000_000,
            arrivals_per_second: None,
            lease_ms: 30_000,
            pings: 0,
            core: None,
            warm_up_ns: 0,
        }
    }

    fn scripted(tokens: &[u64], not_before_ns: u64) -> (Arc<dyn Subject>, u64) {
        let start_ns = monotonic_ns();
        let subject = Scripted {
            tokens: Mutex::new(tokens.iter().rev().copied().collect()),
            not_before_ns,
            start_ns,
        };
        (Arc::new(subject), start_ns)
    }

    fn counts(recorder: &Recorder) -> Vec<(String, u64)> {
        let operations = recorder
            .operations()
            .map(|(name, found)| (name.to_owned(), found.len()));
        operations.filter(|(_, count)| *count > 0).collect()
    }

    #[tokio::test]
    async fn a_lease_that_was_kept_is_no_wait_for_others() {
        let (subject, start_ns) = scripted(&[5, 6, 7, 900, 901, 903], 0);
        let mut worker = Worker::new(&job(true), 0, subject, start_ns).unwrap();
        for _ in 0..6 {
            worker.once(since(start_ns), Counts::Always).await;
        }
        let found = counts(&worker.recorder);
        assert!(
            found.contains(&(op::REMOTE_WAIT.to_owned(), 3)),
            "{found:?}"
        );
        assert!(found.contains(&(op::OWN_LEASE.to_owned(), 3)), "{found:?}");
    }

    #[tokio::test]
    async fn requests_that_wait_beyond_the_end_are_the_tail_of_an_open_loop() {
        let late = 150_000_000;
        let (subject, start_ns) = scripted(&[1, 11, 21, 31, 41], late);
        let worker = Worker::new(&job(true), 0, subject, start_ns).unwrap();
        // Due at 0, 20, ... 80 ms, granted from 150 ms on.
        let recorder = worker.keep_schedule(0, 50, 1).await;
        let found = counts(&recorder);
        assert!(
            found.contains(&(op::REMOTE_WAIT.to_owned(), 5)),
            "{found:?}"
        );
        let (subject, start_ns) = scripted(&[1], late);
        let mut worker = Worker::new(&job(true), 0, subject, start_ns).unwrap();
        worker.once(0, Counts::UntilTheEnd).await;
        assert_eq!(counts(&worker.recorder), []);
    }
}
