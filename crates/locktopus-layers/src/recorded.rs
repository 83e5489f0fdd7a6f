//! A history of a backend's grants.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, BackendError, Directory, DynBackend, Eviction, Executed,
    ExtendOutcome, ExtendRequest, FencingToken, GroupOutcome, Groups, LockBackend, LockPage,
    LockTarget, Mode, OwnerId, ReleaseOutcome, ReleaseRequest, ScanCursor, Wake, WakeStream,
    WakeUps, lock,
};
use locktopus_history::{
    AttemptLog, Clock, FailReason, Grant, RecordError, Recorder, ReleaseOutcome as Ended, WorkerLog,
};
use tokio::time::Instant;

/// Any backend, with its grants recorded for the checker of `locktopus-history`.
///
/// Put it under a program, or under each process of a system that shares one clock. Afterwards,
/// check whether any lock was granted twice at once. The verdict does not depend on what the lock
/// says about itself: a grant is valid from its receipt until its lease ends, counted from before
/// the request. Turns that tasks of one process pass to each other count as one grant.
///
/// Not recorded: the work under the lock (see [`AttemptLog::use_started`]), and evictions by others
/// until the victims notice. A failure to write a record is logged once, and
/// [`first_failure`](Self::first_failure) returns it. Such a history proves nothing.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::time::Duration;
/// use locktopus_core::Locktopus;
/// use locktopus_history::{Checker, Property, Recorder};
/// use locktopus_layers::Recorded;
/// use locktopus_memory::MemoryBackend;
///
/// let recorder = Recorder::in_memory();
/// let backend = Recorded::new(Arc::new(MemoryBackend::new()), &recorder, 1);
/// let locks = Locktopus::builder(backend.clone()).build()?;
/// locks.lock("invoice:42").acquire().await?.release().await?;
/// locks.shutdown(Duration::from_secs(1)).await;
/// recorder.close()?;
/// let verdict = Checker::new().check(&recorder.history().expect("recorded to memory"));
/// assert!(verdict.passed(Property::ValidityOverlap), "{verdict}");
/// assert!(backend.first_failure().is_none()); // the history is complete
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Recorded {
    inner: DynBackend,
    book: Arc<HistoryBook>,
}

/// The unfinished attempts.
#[derive(Debug)]
struct HistoryBook {
    log: WorkerLog,
    clock: Clock,
    safety: String,
    open: Mutex<HashMap<OwnerId, OpenAttempt>>,
    failure: Mutex<Option<RecordError>>,
}

/// The known facts about one owner's attempt.
#[derive(Debug)]
struct OpenAttempt {
    log: AttemptLog,
    target: LockTarget,
    permits: u32,
    lease: Duration,
    /// When the last attempt was sent that was answered with a place in the queue.
    queued: Option<u64>,
    /// Once it was granted: the end of its validity.
    valid_until: Option<u64>,
}

impl Recorded {
    /// Records this backend's actions as one worker. `number` must be unique in the whole history.
    #[must_use]
    pub fn new(inner: DynBackend, recorder: &Recorder, number: u32) -> Self {
        let book = HistoryBook {
            log: recorder.worker(number),
            clock: recorder.clock(),
            safety: inner.info().safety.as_str().to_owned(),
            open: Mutex::default(),
            failure: Mutex::default(),
        };
        Self {
            inner,
            book: Arc::new(book),
        }
    }

    /// The first record that could not be written, if there was one. Returned only once.
    #[must_use]
    pub fn first_failure(&self) -> Option<RecordError> {
        lock(&self.book.failure).take()
    }

    fn watched(&self, stream: WakeStream) -> WakeStream {
        let book = Arc::clone(&self.book);
        stream.filtered(move |owner, wake| {
            if let (Some(owner), Wake::Granted { token }) = (owner, wake) {
                book.pushed(owner, token);
            }
            true
        })
    }
}

impl HistoryBook {
    fn wrote(&self, result: Result<(), RecordError>) {
        if let Err(error) = result {
            let mut failure = lock(&self.failure);
            if failure.is_none() {
                tracing::error!(%error, "the history of locks is incomplete from here on");
                *failure = Some(error);
            }
        }
    }

    /// An attempt is about to be sent: a new one, or a repetition.
    fn sends(&self, attempt: &AcquireAttempt) {
        let mut open = lock(&self.open);
        match open.entry(attempt.owner.clone()) {
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.lease = known.lease.max(attempt.lease);
            }
            Entry::Vacant(new) => match self.log.start(&attempt.target.key()) {
                Ok(log) => {
                    new.insert(OpenAttempt {
                        log,
                        target: attempt.target.clone(),
                        permits: attempt.permits,
                        lease: attempt.lease,
                        queued: None,
                        valid_until: None,
                    });
                }
                Err(error) => self.wrote(Err(error)),
            },
        }
    }

    fn granted(&self, owner: &OwnerId, token: Option<FencingToken>, sent: u64) {
        if let Some(known) = lock(&self.open).get_mut(owner) {
            self.holds(known, token, sent.saturating_add(nanos(known.lease)));
        }
    }

    /// It holds the lock until then, as a first grant or as a confirmation.
    fn holds(&self, known: &mut OpenAttempt, token: Option<FencingToken>, until: u64) {
        let before = known.valid_until;
        let until = before.map_or(until, |before| before.max(until));
        known.valid_until = Some(until);
        self.wrote(if before.is_some() {
            known.log.extended(until)
        } else {
            known.log.granted(Grant {
                token: token.map(FencingToken::get),
                valid_until: until,
                mode: mode(&known.target, known.permits),
                safety: self.safety.clone(),
            })
        });
    }

    /// A grant from the queue. Its lease began after the attempt that confirmed the place was sent.
    fn pushed(&self, owner: &OwnerId, token: FencingToken) {
        let mut open = lock(&self.open);
        if let Some(known) = open.get_mut(owner)
            && known.valid_until.is_none()
            && let Some(queued) = known.queued
        {
            let until = queued.saturating_add(nanos(known.lease));
            // An expired grant is no promise: its receiver asks again.
            if until > self.clock.now_ns() {
                let token = known.target.kind().has_tokens().then_some(token);
                self.holds(known, token, until);
            }
        }
    }

    fn queued(&self, owner: &OwnerId, sent: u64) {
        if let Some(known) = lock(&self.open).get_mut(owner) {
            if known.queued.is_none() {
                self.wrote(known.log.enqueued(None));
            }
            known.queued = Some(sent);
        }
    }

    /// Nothing remains of this attempt.
    fn failed(&self, owner: &OwnerId, reason: FailReason) {
        let known = lock(&self.open).remove(owner);
        if let Some(known) = known {
            self.wrote(if known.valid_until.is_some() {
                known.log.lost("not held any more", self.clock.now_ns())
            } else {
                known.log.failed(reason, None)
            });
        }
    }

    /// An attempt failed. If it may have left something, a later request shows the result.
    fn erred(&self, owner: &OwnerId, error: &BackendError) {
        let leaves_nothing = error.executed() == Executed::No
            && lock(&self.open)
                .get(owner)
                .is_some_and(|known| known.queued.is_none() && known.valid_until.is_none());
        if leaves_nothing {
            self.failed(owner, FailReason::Error);
        }
    }

    /// A release is about to be sent: from now on, the holder no longer trusts the lease.
    fn releases(&self, owner: &OwnerId) -> Option<AttemptLog> {
        let known = lock(&self.open).remove(owner)?;
        if known.valid_until.is_some() {
            self.wrote(known.log.release_started());
            return Some(known.log);
        }
        self.wrote(known.log.failed(FailReason::Maybe, None));
        None
    }

    fn extended(&self, request: &ExtendRequest, outcome: ExtendOutcome, sent: u64) {
        let mut open = lock(&self.open);
        let Some(known) = open.get_mut(&request.owner) else {
            return;
        };
        let Some(before) = known.valid_until else {
            return;
        };
        if outcome == ExtendOutcome::Extended {
            known.lease = known.lease.max(request.lease);
            let until = before.max(sent.saturating_add(nanos(request.lease)));
            known.valid_until = Some(until);
            self.wrote(known.log.extended(until));
            return;
        }
        let cause = match outcome {
            ExtendOutcome::TakenOver => "taken over",
            ExtendOutcome::Extended | ExtendOutcome::Missing => "missing",
        };
        self.wrote(known.log.lost(cause, before.min(self.clock.now_ns())));
        open.remove(&request.owner);
    }

    /// The holders of this lock are about to lose it.
    fn evicts(&self, target: &LockTarget) {
        let mut open = lock(&self.open);
        open.retain(|_, known| {
            let (Some(_), true) = (known.valid_until, known.target.key() == target.key()) else {
                return true;
            };
            self.wrote(known.log.lost("evicted", self.clock.now_ns()));
            false
        });
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn mode(target: &LockTarget, permits: u32) -> locktopus_history::Mode {
    match target.kind().mode() {
        Mode::Exclusive => locktopus_history::Mode::Exclusive,
        Mode::Read => locktopus_history::Mode::Shared,
        Mode::Permits => locktopus_history::Mode::Permits(permits),
    }
}

#[async_trait]
impl locktopus_contract::Layer for Recorded {
    fn inner(&self) -> &dyn LockBackend {
        &*self.inner
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let (book, owner) = (&self.book, &attempt.owner);
        book.sends(attempt);
        let sent = book.clock.now_ns();
        let answer = self.inner.attempt(attempt).await;
        match &answer {
            Ok(AttemptOutcome::Granted { token }) => book.granted(owner, *token, sent),
            Ok(AttemptOutcome::Busy { .. }) => book.failed(owner, FailReason::Held),
            Ok(AttemptOutcome::Queued { .. }) => book.queued(owner, sent),
            Err(error) => book.erred(owner, error),
        }
        answer
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let released = self.book.releases(&request.owner);
        let answer = self.inner.release(request).await;
        if let Some(log) = released {
            self.book.wrote(log.release_ended(match &answer {
                Ok(ReleaseOutcome::Released) => Ended::Ok,
                Ok(ReleaseOutcome::NotHeld) => Ended::Lost,
                Err(_) => Ended::Error,
            }));
        }
        answer
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let sent = self.book.clock.now_ns();
        let answers = self.inner.extend(batch, deadline).await;
        for (request, answer) in batch.iter().zip(&answers) {
            if let Ok(outcome) = answer {
                self.book.extended(request, *outcome, sent);
            }
        }
        answers
    }

    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        self.inner.wake_ups().map(|_| self as _)
    }

    fn groups(&self) -> Option<&dyn Groups> {
        self.inner.groups().map(|_| self as _)
    }

    fn directory(&self) -> Option<&dyn Directory> {
        self.inner.directory().map(|_| self as _)
    }
}

#[async_trait]
impl WakeUps for Recorded {
    fn listen(&self, target: &LockTarget) -> Option<WakeStream> {
        self.inner.listen(target).map(|stream| self.watched(stream))
    }

    async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        let stream = self.inner.subscribe(target, deadline).await?;
        Ok(self.watched(stream))
    }
}

#[async_trait]
impl Groups for Recorded {
    fn group(&self, target: &LockTarget) -> Option<u32> {
        self.inner.group(target)
    }

    async fn attempt_all(&self, attempts: &[AcquireAttempt]) -> Result<GroupOutcome, BackendError> {
        let book = &self.book;
        attempts.iter().for_each(|attempt| book.sends(attempt));
        let sent = book.clock.now_ns();
        let answer = self.inner.attempt_all(attempts).await;
        for (index, AcquireAttempt { owner, .. }) in attempts.iter().enumerate() {
            match &answer {
                Ok(GroupOutcome::Granted { tokens }) => {
                    book.granted(owner, tokens.get(index).copied().flatten(), sent);
                }
                Ok(GroupOutcome::Busy { .. }) => book.failed(owner, FailReason::Held),
                Err(error) => book.erred(owner, error),
            }
        }
        answer
    }
}

#[async_trait]
impl Directory for Recorded {
    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        self.inner.scan(prefix, cursor, deadline).await
    }

    async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        self.book.evicts(target);
        self.inner.evict(target, deadline).await
    }
}
