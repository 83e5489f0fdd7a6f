//! The workers: each repeatedly takes its lock, writes under it and releases it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use locktopus::{
    BackendErrorKind, CancellationToken, Executed, Fence, FenceGate, LockError, LockGuard,
    Locktopus, SafetyMode,
};
use locktopus_history::{
    AttemptLog, Clock, FailReason, Grant, Mode, RecordError, ReleaseOutcome, WriteOutcome,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::histories::Book;
use crate::exit::Exit;
use crate::failure::Failure;

/// Pause between a failed attempt and the next one.
const PAUSE: Duration = Duration::from_millis(50);
/// How long one attempt waits.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// One in this many names is held longer than its lease, and renewed.
const LONG: usize = 4;
/// Name of the fenced data in the history.
const FENCED: &str = "fenced";

/// State shared by the workers.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) names: Vec<String>,
    pub(super) lease: Duration,
    pub(super) hold: Duration,
    pub(super) book: Arc<Book>,
    pub(super) stop: CancellationToken,
    clock: Clock,
    /// For each name: the number of grants, and the time of the last one.
    grants: Vec<(AtomicU64, AtomicU64)>,
    /// The longest gap between two grants of a briefly held name, since it was last read.
    longest_gap_ns: AtomicU64,
    errors: AtomicU64,
    lost: AtomicU64,
    gate: FenceGate,
    /// How many writes were decided.
    writes: Mutex<u64>,
    /// Errors since they were last read: when the cause may have begun, and the text.
    troubles: Mutex<Vec<(u64, String)>>,
}

/// The result of a step.
type Step = Result<(), Failure>;

impl Load {
    pub(super) fn new(
        names: Vec<String>,
        lease: Duration,
        hold: Duration,
        book: Arc<Book>,
    ) -> Self {
        let clock = Clock::new();
        let now = clock.now_ns();
        let grants = names
            .iter()
            .map(|_| (AtomicU64::new(0), AtomicU64::new(now)));
        Self {
            grants: grants.collect(),
            names,
            lease,
            hold,
            book,
            stop: CancellationToken::new(),
            clock,
            longest_gap_ns: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            gate: FenceGate::new(),
            writes: Mutex::default(),
            troubles: Mutex::default(),
        }
    }

    /// Starts one worker for each name on each connection.
    pub(super) fn start(self: &Arc<Self>, instances: &[Locktopus]) -> JoinSet<Step> {
        let mut workers = JoinSet::new();
        for (connection, locks) in instances.iter().enumerate() {
            for name in 0..self.names.len() {
                let (load, locks) = (Arc::clone(self), locks.clone());
                let number = connection * self.names.len() + name;
                workers.spawn(async move { load.work(&locks, number, name).await });
            }
        }
        workers
    }

    /// Whether this worker's name is held briefly.
    pub(super) fn is_brief(&self, worker: usize) -> bool {
        brief(worker % self.names.len())
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    pub(super) fn granted(&self) -> u64 {
        self.grants
            .iter()
            .map(|(count, _)| count.load(Ordering::Relaxed))
            .sum()
    }

    pub(super) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Since this time, every briefly held name was granted at least once.
    pub(super) fn all_granted_ns(&self) -> u64 {
        let grants = self.grants.iter().enumerate();
        let of_brief = grants.filter(|(name, _)| brief(*name));
        let last = of_brief.map(|(_, (_, at))| at.load(Ordering::Relaxed));
        last.min().unwrap_or(0)
    }

    /// The longest time a briefly held name went without a grant, since the last call.
    pub(super) fn longest_gap(&self) -> Duration {
        let under_way = self.now_ns().saturating_sub(self.all_granted_ns());
        let longest = self.longest_gap_ns.swap(0, Ordering::Relaxed);
        Duration::from_nanos(longest.max(under_way))
    }

    fn note_grant(&self, name: usize) {
        let (count, last) = &self.grants[name];
        count.fetch_add(1, Ordering::Relaxed);
        let now = self.clock.now_ns();
        let before = last.swap(now, Ordering::Relaxed);
        if brief(name) {
            let gap = now.saturating_sub(before);
            self.longest_gap_ns.fetch_max(gap, Ordering::Relaxed);
        }
    }

    pub(super) fn troubles(&self) -> Vec<(u64, String)> {
        std::mem::take(&mut self.troubles.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn trouble(&self, since: u64, text: String) {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        troubles.push((since, text));
    }

    async fn work(&self, locks: &Locktopus, worker: usize, name: usize) -> Step {
        let mut round = worker;
        while !self.stop.is_cancelled() {
            round += 7;
            self.once(locks, worker, name, round).await?;
        }
        Ok(())
    }

    async fn once(&self, locks: &Locktopus, worker: usize, name: usize, round: usize) -> Step {
        let piece = self.book.current();
        let text = &self.names[name];
        let attempt = piece.worker(worker).start(text).map_err(incomplete)?;
        let request = if locks.backend().safety == SafetyMode::Quorum {
            locks.mutex(text.as_str())
        } else {
            locks.lock(text.as_str())
        };
        let request = if brief(name) {
            request.fixed_lease(self.lease)
        } else {
            request.renewed_lease(self.lease)
        };
        let began = self.clock.now_ns();
        let taken = tokio::select! {
            biased;
            taken = request.wait_at_most(LONGEST_WAIT).acquire() => taken,
            () = self.stop.cancelled() => {
                let failed = attempt.failed(FailReason::Cancelled, None);
                return failed.map_err(incomplete);
            }
        };
        let error = match taken {
            Ok(guard) => {
                piece.granted(name);
                self.note_grant(name);
                // Vary the time, so that workers and servers do not fall into step.
                let part = u32::try_from(round % 11).unwrap_or(0);
                let hold = if brief(name) {
                    self.hold / 2
                } else {
                    self.lease
                };
                return self.hold(&attempt, guard, hold + hold * part / 10).await;
            }
            Err(error) => error,
        };
        attempt.failed(reason(&error), None).map_err(incomplete)?;
        if let Some(kind) = backend_kind(&error) {
            if kind == BackendErrorKind::Denied {
                return Err(error.into());
            }
            self.errors.fetch_add(1, Ordering::Relaxed);
            self.trouble(began, error.to_string());
        } else if !matches!(error, LockError::WaitTimeout { .. }) {
            return Err(error.into());
        }
        tokio::select! {
            () = sleep(PAUSE) => {}
            () = self.stop.cancelled() => {}
        }
        Ok(())
    }

    async fn hold(&self, attempt: &AttemptLog, guard: LockGuard, hold: Duration) -> Step {
        let valid_until = || self.clock.at(guard.valid_until().into_std());
        let grant = Grant {
            token: guard.token().map(locktopus::FencingToken::get),
            valid_until: valid_until(),
            mode: Mode::Exclusive,
            safety: guard.safety().as_str().to_owned(),
        };
        attempt.granted(grant).map_err(incomplete)?;
        attempt.use_started().map_err(incomplete)?;
        let fence = guard.fence();
        self.write(attempt, fence.as_ref()).map_err(incomplete)?;
        let until = Instant::now() + hold;
        let lost = tokio::select! {
            biased;
            cause = guard.lost() => Some(cause.to_string()),
            () = tokio::time::sleep_until(until) => None,
            () = self.stop.cancelled() => None,
        };
        let lost = lost.or_else(|| guard.ensure_valid().err().map(|error| error.to_string()));
        if let Some(cause) = &lost {
            attempt.lost(cause, valid_until()).map_err(incomplete)?;
            self.lost.fetch_add(1, Ordering::Relaxed);
            self.trouble(self.clock.now_ns(), format!("a lease was lost: {cause}"));
        } else {
            attempt.observed(valid_until()).map_err(incomplete)?;
        }
        attempt.use_ended().map_err(incomplete)?;
        // Write even after a loss: the fence is there to reject that.
        self.write(attempt, fence.as_ref()).map_err(incomplete)?;
        attempt.release_started().map_err(incomplete)?;
        let released = guard.release().await;
        let outcome = match &released {
            Ok(()) => ReleaseOutcome::Ok,
            Err(LockError::Lost { .. }) => ReleaseOutcome::Lost,
            Err(_) => ReleaseOutcome::Error,
        };
        if outcome == ReleaseOutcome::Error {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
        attempt.release_ended(outcome).map_err(incomplete)
    }

    /// Writes to a resource that rejects smaller tokens.
    fn write(&self, attempt: &AttemptLog, fence: Option<&Fence>) -> Result<(), RecordError> {
        let Some(fence) = fence else {
            return Ok(());
        };
        let issued = self.clock.now_ns();
        let (outcome, order) = {
            let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
            *writes += 1;
            let outcome = match self.gate.admit(fence) {
                Ok(()) => WriteOutcome::Accepted,
                Err(_) => WriteOutcome::Rejected,
            };
            (outcome, *writes)
        };
        attempt.wrote(FENCED, fence.token().get(), issued, outcome, Some(order))
    }
}

fn brief(name: usize) -> bool {
    name % LONG != LONG - 1
}

fn backend_kind(error: &LockError) -> Option<BackendErrorKind> {
    match error {
        LockError::Backend { source, .. }
        | LockError::WaitTimeout {
            source: Some(source),
            ..
        } => Some(source.kind()),
        _ => None,
    }
}

fn reason(error: &LockError) -> FailReason {
    match error {
        LockError::WaitTimeout { .. } => FailReason::Timeout,
        LockError::Backend { source, .. } if source.executed() == Executed::No => FailReason::Error,
        _ => FailReason::Maybe,
    }
}

fn incomplete(error: RecordError) -> Failure {
    Failure::new(Exit::Failed, error.to_string())
}
