//! One worker: takes its lock, uses it, releases it, and starts again.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{CancellationToken, LockKind};
use locktopus_history::{
    AttemptLog, Clock, FailReason, Grant, Mode, RecordError, Recorder, Rules, WorkerLog,
    WriteOutcome,
};

use super::job::{Answer, Assignment, Job};
use super::resource_client::ResourceClient;
use super::subject::{Held, Subject, Wish};
use crate::failover::plan::LockGroup;
use crate::failover::resource::{Ask, Heads, Reply};
use crate::shared::random::Random;

/// Between a failed attempt and the next one.
const PAUSE: Duration = Duration::from_millis(50);
/// The largest difference between two readings of one instant: on a busy machine each may be this
/// much too early.
const READINGS_NS: u64 = 1_000_000;
/// How often a holder checks a validity that a watchdog extends.
const LOOK: Duration = Duration::from_millis(10);
/// How long the resource may take to answer. It is in the runner, which may wait for a CPU.
const ANSWERS_WITHIN_NS: u64 = 5_000_000;
/// The name of the data behind the fence, in the history.
const FENCED: &str = "fenced";

pub(super) struct Worker {
    number: u32,
    lock: String,
    group: LockGroup,
    safety: String,
    log: WorkerLog,
    clock: Clock,
    resource: ResourceClient,
    random: Random,
    subject: Arc<dyn Subject>,
    stop: CancellationToken,
}

impl Worker {
    pub(super) async fn new(
        job: &Job,
        assignment: &Assignment,
        recorder: &Recorder,
        subject: Arc<dyn Subject>,
        stop: CancellationToken,
    ) -> Result<Self, String> {
        let group = job.groups.get(assignment.group).cloned();
        let group = group.ok_or("a worker without a lock group")?;
        let log = recorder.worker(assignment.number);
        let rules = Rules {
            permits: (group.kind == LockKind::Semaphore).then_some(group.permits),
            fair: group.kind.has_strict_queue(),
        };
        log.declare(&assignment.lock, rules)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            number: assignment.number,
            lock: assignment.lock.clone(),
            group,
            safety: job.mode_name.clone(),
            log,
            clock: recorder.clock(),
            resource: ResourceClient::open(job.resource).await?,
            random: Random::new(job.seed ^ u64::from(assignment.number).wrapping_mul(0x9e37_79b9)),
            subject,
            stop,
        })
    }

    /// Works until told to stop; returns the first error.
    pub(super) async fn run(mut self) -> Result<(), String> {
        while !self.stop.is_cancelled() {
            self.once().await?;
        }
        Ok(())
    }

    async fn once(&mut self) -> Result<(), String> {
        let attempt = self.log.start(&self.lock).map_err(told)?;
        let reads = self.group.kind == LockKind::Write && self.random.unit() < self.group.readers;
        let wish = Wish {
            lock: &self.lock,
            group: &self.group,
            reads,
            log: &attempt,
        };
        let taken = tokio::select! {
            biased;
            taken = self.subject.acquire(wish) => Some(taken),
            () = self.stop.cancelled() => None,
        };
        match taken {
            None => {
                let before = Some(self.clock.now_ns());
                attempt.failed(FailReason::Cancelled, before).map_err(told)
            }
            Some(Err(failure)) => {
                attempt.failed(failure.reason, None).map_err(told)?;
                Answer::Erred { kind: failure.kind }.say();
                let pause = tokio::time::sleep(PAUSE);
                tokio::select! {
                    () = pause => {}
                    () = self.stop.cancelled() => {}
                }
                Ok(())
            }
            Some(Ok(held)) => self.hold(&attempt, held).await,
        }
    }

    async fn hold(&mut self, attempt: &AttemptLog, held: Box<dyn Held>) -> Result<(), String> {
        let fence = held.fence();
        let grant = Grant {
            token: fence.as_ref().map(|fence| fence.token().get()),
            valid_until: held.valid_until(),
            mode: held.mode(),
            safety: self.safety.clone(),
        };
        let promised = grant.valid_until;
        attempt.granted(grant).map_err(told)?;
        attempt.use_started().map_err(told)?;
        let (token, word) = fence
            .map(|fence| (fence.token().get(), fence.to_string()))
            .unzip();
        let enter = Ask::Enter {
            lock: self.lock.clone(),
            worker: self.number,
            fence: word.clone(),
        };
        let issued = self.clock.now_ns();
        let (read, order) = match self.ask(&enter).await? {
            Reply::Heads { heads, order } => (Some(heads), order),
            Reply::Refused { order } => (None, order),
            other @ (Reply::Done { .. } | Reply::Bad { .. }) => return Err(unexpected(&other)),
        };
        // Entering shows the token to the resource, so it counts as a write.
        if let Some(token) = token {
            let outcome = if read.is_some() {
                WriteOutcome::Accepted
            } else {
                WriteOutcome::Rejected
            };
            attempt
                .wrote(FENCED, token, issued, outcome, Some(order))
                .map_err(told)?;
        }
        // A holder that the resource rejected leaves at once.
        let span = read.map_or(Duration::ZERO, |_| self.span());
        let mut lost = tokio::select! {
            biased;
            cause = held.lost() => Some(cause),
            () = tokio::time::sleep(span) => None,
            () = self.stop.cancelled() => None,
            error = self.note_extensions(attempt, &*held, promised) => return Err(told(error)),
        };
        // Right before the write check the clock too, not only the signal, as the documentation
        // tells users.
        lost = lost.or_else(|| held.ended());
        // A shared holder does not change the data.
        let writes = held.mode() == Mode::Exclusive;
        match (lost, read) {
            (Some(cause), read) => {
                let stated = held.valid_until();
                attempt.lost(&cause, stated).map_err(told)?;
                attempt.use_ended().map_err(told)?;
                // A lost lock stays lost: a guard that now states a later end came back to life.
                let stated = held.valid_until().max(stated + READINGS_NS) - READINGS_NS;
                attempt.observed(stated).map_err(told)?;
                if let (true, Some(read), Some(token)) = (writes, read, token)
                    && self.random.unit() < self.group.careless
                {
                    self.write(attempt, read, token, word, true).await?;
                }
            }
            (None, Some(read)) if writes => {
                self.write(attempt, read, token.unwrap_or(0), word, false)
                    .await?;
                self.look(attempt, &*held)?;
            }
            (None, _) => self.look(attempt, &*held)?,
        }
        attempt.release_started().map_err(told)?;
        let outcome = held.release().await;
        attempt.release_ended(outcome).map_err(told)
    }

    /// Records the watchdog's extensions while the lock is in use, because a killed process says
    /// nothing at its end. Returns only on an error.
    async fn note_extensions(
        &self,
        attempt: &AttemptLog,
        held: &dyn Held,
        mut promised: u64,
    ) -> RecordError {
        if !self.group.renewed {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(LOOK).await;
            let stated = held.valid_until();
            if stated > promised + READINGS_NS {
                if let Err(error) = attempt.observed(stated) {
                    return error;
                }
                promised = stated;
            }
        }
    }

    /// Asks the resource. While a worker waits for it, it is late through no fault of the lock, so
    /// the wait is recorded as a stall.
    async fn ask(&mut self, ask: &Ask) -> Result<Reply, String> {
        let since = self.clock.now_ns();
        let reply = self.resource.ask(ask).await;
        if self.clock.now_ns().saturating_sub(since) >= ANSWERS_WITHIN_NS {
            self.log.stalled(since, false).map_err(told)?;
        }
        reply
    }

    /// Records the end of the use, and the validity that the guard states by then.
    fn look(&self, attempt: &AttemptLog, held: &dyn Held) -> Result<(), String> {
        attempt.observed(held.valid_until()).map_err(told)?;
        attempt.use_ended().map_err(told)
    }

    async fn write(
        &mut self,
        attempt: &AttemptLog,
        read: Heads,
        token: u64,
        fence: Option<String>,
        only_fenced: bool,
    ) -> Result<(), String> {
        let fenced = fence.is_some();
        let issued = self.clock.now_ns();
        let append = Ask::Append {
            lock: self.lock.clone(),
            read,
            fence,
            only_fenced,
        };
        let (outcome, order) = match self.ask(&append).await? {
            Reply::Done { order } => (WriteOutcome::Accepted, order),
            Reply::Refused { order } => (WriteOutcome::Rejected, order),
            other @ (Reply::Heads { .. } | Reply::Bad { .. }) => return Err(unexpected(&other)),
        };
        if !fenced {
            return Ok(());
        }
        attempt
            .wrote(FENCED, token, issued, outcome, Some(order))
            .map_err(told)
    }

    /// How long to keep the lock this time.
    fn span(&mut self) -> Duration {
        let (shortest, longest) = self.group.hold;
        shortest + (longest - shortest).mul_f64(self.random.unit())
    }
}

fn unexpected(reply: &Reply) -> String {
    format!("the resource gave an answer to another question: {reply:?}")
}

fn told(error: RecordError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use async_trait::async_trait;
    use locktopus_history::{Event, ReleaseOutcome};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::TcpListener;

    use super::super::subject::Failure;
    use super::*;
    use crate::failover::plan::{Mode as SafetyMode, Subject as Whose};

    /// A lock that is granted to every worker, and until when.
    struct Anybody(Arc<AtomicU64>);

    struct HeldByAnybody(Arc<AtomicU64>);

    fn anybody() -> Arc<Anybody> {
        let valid_until = Clock::new().after(Duration::from_secs(60));
        Arc::new(Anybody(Arc::new(valid_until.into())))
    }

    #[async_trait]
    impl Subject for Anybody {
        async fn acquire(&self, _: Wish<'_>) -> Result<Box<dyn Held>, Failure> {
            Ok(Box::new(HeldByAnybody(Arc::clone(&self.0))))
        }

        async fn close(&self) -> u64 {
            0
        }
    }

    #[async_trait]
    impl Held for HeldByAnybody {
        fn valid_until(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn ended(&self) -> Option<String> {
            None
        }

        async fn lost(&self) -> String {
            std::future::pending().await
        }

        async fn release(self: Box<Self>) -> ReleaseOutcome {
            ReleaseOutcome::Ok
        }
    }

    /// A resource that takes this long to answer the first question, and no time for the second.
    async fn protected(takes: Duration) -> std::net::SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (from, mut to) = stream.split();
            let mut lines = BufReader::new(from).lines();
            let heads = Reply::Heads {
                heads: Heads::default(),
                order: 1,
            };
            for (reply, takes) in [(heads, takes), (Reply::Done { order: 2 }, Duration::ZERO)] {
                lines.next_line().await.unwrap().unwrap();
                tokio::time::sleep(takes).await;
                let mut line = serde_json::to_vec(&reply).unwrap();
                line.push(b'\n');
                to.write_all(&line).await.unwrap();
            }
        });
        addr
    }

    const ASSIGNMENT: Assignment = Assignment {
        number: 7,
        group: 0,
        lock: String::new(),
    };

    fn job(resource: std::net::SocketAddr) -> Job {
        let group = r#"{"name": "a", "hold": ["0s", "0s"], "lease": "60s"}"#;
        Job {
            subject: Whose::Locktopus,
            urls: Vec::new(),
            mode_name: "plain".to_owned(),
            mode: SafetyMode::default(),
            prefix: "p".to_owned(),
            groups: vec![serde_json::from_str(group).unwrap()],
            workers: Vec::new(),
            resource,
            history: "unused".into(),
            seed: 1,
            patience: Duration::from_secs(60),
        }
    }

    /// How long the worker did not run, according to the history.
    async fn stalled(takes: Duration) -> Duration {
        let recorder = Recorder::in_memory();
        let job = job(protected(takes).await);
        let stop = CancellationToken::new();
        let worker = Worker::new(&job, &ASSIGNMENT, &recorder, anybody(), stop).await;
        worker.unwrap().once().await.unwrap();
        let history = recorder.history().unwrap();
        let stalls = history.records().iter().filter_map(|record| {
            let Event::Stalled { since, everybody } = record.event else {
                return None;
            };
            assert_eq!((record.worker, everybody), (7, false));
            Some(record.at - since)
        });
        Duration::from_nanos(stalls.sum())
    }

    #[tokio::test]
    async fn who_waits_for_what_is_protected_says_so_and_nobody_else() {
        let waited = Duration::from_millis(200);
        assert!(stalled(waited).await >= waited);
        // A busy machine may need some time, but less than that.
        assert!(stalled(Duration::ZERO).await < waited);
    }

    /// A killed process says nothing at its end.
    #[tokio::test]
    async fn extensions_by_a_watchdog_are_in_the_history_before_the_use_ends() {
        let recorder = Recorder::in_memory();
        let mut job = job(protected(Duration::ZERO).await);
        job.groups[0].renewed = true;
        job.groups[0].hold = (Duration::from_secs(3_600), Duration::from_secs(3_600));
        let subject = anybody();
        let valid_until = Arc::clone(&subject.0);
        let (granted, second) = (valid_until.load(Ordering::Relaxed), 1_000_000_000);
        let stop = CancellationToken::new();
        let worker = Worker::new(&job, &ASSIGNMENT, &recorder, subject, stop).await;
        let mut worker = worker.unwrap();
        // The guard's statements, beginning with the grant.
        let seen = || {
            let history = recorder.history().unwrap();
            let records = history.records().iter();
            let stated = records.filter_map(|record| match &record.event {
                Event::Granted { grant, .. } => Some(grant.valid_until),
                Event::Observed { valid_until, .. } => Some(*valid_until),
                Event::UseEnded { .. } => panic!("{record:?}"),
                _ => None,
            });
            stated.collect::<Vec<_>>()
        };
        let extended = [granted, granted + second, granted + 2 * second];
        let killed = async {
            for stated in extended {
                valid_until.store(stated, Ordering::Relaxed);
                while seen().last() != Some(&stated) {
                    tokio::time::sleep(LOOK).await;
                }
            }
        };
        tokio::select! {
            ended = worker.once() => panic!("{ended:?}"),
            () = killed => {}
            () = tokio::time::sleep(Duration::from_secs(30)) => panic!("{:?}", seen()),
        }
        // Each once, so the history of a long use stays short.
        assert_eq!(seen(), extended);
    }
}
