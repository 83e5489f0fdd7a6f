//! Timeout and retry, observed through the calls that reach the backend.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, Executed, ExtendOutcome,
    ExtendRequest, LockBackend, LockKind, LockName, LockState, LockTarget, OwnerId, ReleaseRequest,
};
use locktopus_core::Locktopus;
use locktopus_layers::{Call, Chaos, Fault, Prefix, Retry, Timeout};
use locktopus_memory::MemoryBackend;
use tokio::time::Instant;

const LEASE: Duration = Duration::from_secs(30);

fn target(name: &str) -> LockTarget {
    LockTarget::new(LockName::new(name).unwrap(), LockKind::Reentrant)
}

fn attempt(within: Duration) -> AcquireAttempt {
    let owner = OwnerId::generate();
    AcquireAttempt::new(target("a"), owner, LEASE, Instant::now() + within)
}

/// Counts attempts, and decides by their number how to answer extensions.
#[derive(Debug)]
struct Counting {
    inner: Chaos,
    attempts: AtomicUsize,
    extensions: std::sync::Mutex<Vec<usize>>,
    failed: fn(&OwnerId, usize) -> Option<Executed>,
}

impl Counting {
    fn new(failed: fn(&OwnerId, usize) -> Option<Executed>) -> (Chaos, Arc<Self>) {
        let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
        let counting = Self {
            inner: chaos.clone(),
            attempts: AtomicUsize::new(0),
            extensions: std::sync::Mutex::default(),
            failed,
        };
        (chaos, Arc::new(counting))
    }

    fn attempts(&self) -> usize {
        self.attempts.swap(0, Ordering::Relaxed)
    }
}

#[async_trait]
impl locktopus_contract::Layer for Counting {
    fn inner(&self) -> &dyn LockBackend {
        &self.inner
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        self.inner().attempt(attempt).await
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let number = {
            let mut calls = self.extensions.lock().unwrap();
            calls.push(batch.len());
            calls.len() - 1
        };
        let mut answers = self.inner().extend(batch, deadline).await;
        for (request, answer) in batch.iter().zip(&mut answers) {
            if let Some(executed) = (self.failed)(&request.owner, number) {
                let kind = BackendErrorKind::Unavailable;
                *answer = Err(BackendError::new("counting", kind, executed, "on purpose"));
            }
        }
        answers
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_was_not_executed_is_asked_again() {
    let (chaos, counting) = Counting::new(|_, _| None);
    let retry = Retry::new(counting.clone()).repetitions(2);
    let second = Duration::from_secs(1);

    chaos.fail_times(Call::Attempt, Fault::Refuse, 2);
    let outcome = retry.attempt(&attempt(second)).await.unwrap();
    assert!(matches!(outcome, AttemptOutcome::Granted { .. }));
    assert_eq!(counting.attempts(), 3);

    chaos.fail_times(Call::Attempt, Fault::Refuse, 3);
    let error = retry.attempt(&attempt(second)).await.unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::Unavailable);
    assert_eq!(counting.attempts(), 3, "two repetitions, as it was told");

    chaos.fail_times(Call::Attempt, Fault::LoseAnswer, 1);
    let error = retry.attempt(&attempt(second)).await.unwrap_err();
    assert_eq!(error.executed(), Executed::Maybe);
    assert_eq!(counting.attempts(), 1, "it may have run");
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_not_asked_again() {
    let (_chaos, counting) = Counting::new(|_, _| None);
    let retry = Retry::new(counting.clone());
    retry.close().await;
    let error = retry.attempt(&attempt(LEASE)).await.unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::Closed);
    assert_eq!(counting.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_after_the_deadline() {
    let (chaos, counting) = Counting::new(|_, _| None);
    let retry = Retry::new(counting.clone()).pauses(LEASE, LEASE);
    chaos.fail(Call::Attempt, Fault::Refuse);
    let started = Instant::now();
    let error = retry.attempt(&attempt(LEASE / 3)).await.unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::Unavailable);
    assert_eq!(
        (counting.attempts(), started.elapsed()),
        (1, Duration::ZERO)
    );
}

#[tokio::test(start_paused = true)]
async fn of_a_batch_only_what_failed_is_extended_again() {
    // The owner's first byte decides: one does not run at first, one may have run.
    let (_chaos, counting) = Counting::new(|owner, number| match (owner.expose()[0], number) {
        (b'n', 0) => Some(Executed::No),
        (b'm', _) => Some(Executed::Maybe),
        _ => None,
    });
    let retry = Retry::new(counting.clone());
    let owners = ["fine", "not", "maybe"].map(|owner| OwnerId::from_bytes(owner.as_bytes()));
    let mut batch = Vec::new();
    for owner in owners {
        let target = target(std::str::from_utf8(owner.expose()).unwrap());
        let deadline = Instant::now() + LEASE;
        let attempt = AcquireAttempt::new(target.clone(), owner.clone(), LEASE, deadline);
        let _ = retry.attempt(&attempt).await.unwrap();
        batch.push(ExtendRequest::new(target, owner, LEASE));
    }
    let answers = retry.extend(&batch, Instant::now() + LEASE).await;
    let executed: Vec<_> = answers
        .iter()
        .map(|answer| answer.as_ref().map_err(BackendError::executed).copied())
        .collect();
    let extended = Ok(ExtendOutcome::Extended);
    assert_eq!(executed, [extended, extended, Err(Executed::Maybe)]);
    assert_eq!(*counting.extensions.lock().unwrap(), [3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_call_takes_no_longer_than_its_limit() {
    let limit = Duration::from_millis(40);
    let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
    let quick = Timeout::new(Arc::new(chaos.clone()), limit);
    assert_eq!(quick.info().call_timeout, limit);
    for call in [Call::Attempt, Call::Release, Call::Extend] {
        chaos.fail(call, Fault::Hang);
    }
    let is_over = |started: Instant, error: &BackendError| {
        assert!(started.elapsed() < limit * 2, "{:?}", started.elapsed());
        assert_eq!(error.kind(), BackendErrorKind::Timeout);
        assert_eq!(error.executed(), Executed::Maybe);
    };
    let started = Instant::now();
    is_over(started, &quick.attempt(&attempt(LEASE)).await.unwrap_err());
    let started = Instant::now();
    let owner = OwnerId::generate();
    let release = ReleaseRequest::new(target("a"), owner.clone(), started + LEASE);
    is_over(started, &quick.release(&release).await.unwrap_err());
    let started = Instant::now();
    let batch = [(); 3].map(|()| ExtendRequest::new(target("a"), owner.clone(), LEASE));
    let answers = quick.extend(&batch, started + LEASE).await;
    assert_eq!(answers.len(), 3);
    for answer in answers {
        is_over(started, &answer.unwrap_err());
    }
}

/// A backend that runs every request and never answers, not even at the deadline.
#[derive(Debug)]
struct Stuck {
    inner: MemoryBackend,
    attempts: AtomicUsize,
}

#[async_trait]
impl locktopus_contract::Layer for Stuck {
    fn inner(&self) -> &dyn LockBackend {
        &self.inner
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        let _unsaid = self.inner.attempt(attempt).await?;
        std::future::pending().await
    }

    async fn extend(
        &self,
        _: &[ExtendRequest],
        _: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        std::future::pending().await
    }

    async fn inspect(&self, _: &LockTarget, _: Instant) -> Result<LockState, BackendError> {
        std::future::pending().await
    }
}

/// A call that may have run must not count as undone: it would be repeated, and never given back.
#[tokio::test(start_paused = true)]
async fn a_backend_that_ignores_its_deadline_is_cut_off_and_may_have_run() {
    let limit = Duration::from_millis(40);
    let store = MemoryBackend::new();
    let stuck = Arc::new(Stuck {
        inner: store.another_client(),
        attempts: AtomicUsize::new(0),
    });
    let quick = Timeout::new(stuck.clone(), limit);
    let is_cut_off = |started: Instant, error: &BackendError| {
        assert!(started.elapsed() < limit * 2);
        assert!(error.message().contains("timeout layer"), "{error}");
        assert_eq!(error.kind(), BackendErrorKind::Timeout);
        assert_eq!(error.executed(), Executed::Maybe);
    };
    let started = Instant::now();
    let inspected = quick.inspect(&target("a"), started + LEASE).await;
    is_cut_off(started, &inspected.unwrap_err());
    let started = Instant::now();
    let batch = [(); 2].map(|()| ExtendRequest::new(target("a"), OwnerId::generate(), LEASE));
    for answer in quick.extend(&batch, started + LEASE).await {
        is_cut_off(started, &answer.unwrap_err());
    }
    let started = Instant::now();
    let attempted = quick.attempt(&attempt(LEASE)).await;
    is_cut_off(started, &attempted.unwrap_err());

    stuck.attempts.store(0, Ordering::Relaxed);
    let locks = Locktopus::builder(Retry::new(Arc::new(quick)))
        .build()
        .unwrap();
    locks.lock("b").try_acquire().await.unwrap_err();
    assert_eq!(stuck.attempts.load(Ordering::Relaxed), 1);
    // The attempt's hold is given back long before the lease is over.
    let others = Locktopus::builder(store).build().unwrap();
    let begun = Instant::now();
    let guard = others.lock("b").wait_at_most(LEASE).acquire().await;
    assert!(guard.is_ok() && begun.elapsed() < LEASE / 10, "{guard:?}");
}

#[tokio::test(start_paused = true)]
async fn names_that_a_prefix_makes_too_long_are_refused() {
    let backend = Prefix::new(Arc::new(MemoryBackend::new()), "p".repeat(1000));
    let long = target(&"n".repeat(25));
    assert!(backend.check(&target("n")).is_ok());
    assert!(backend.check(&long).is_err());
    let deadline = Instant::now() + LEASE;
    let error = backend.inspect(&long, deadline).await.unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::Refused);
    assert_eq!(error.executed(), Executed::No);
    let requests = [target("n"), long].map(|t| ExtendRequest::new(t, OwnerId::generate(), LEASE));
    let answers = backend.extend(&requests, deadline).await;
    assert!(
        matches!(answers[..], [Ok(ExtendOutcome::Missing), Err(_)]),
        "{answers:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn pauses_and_limits_of_any_length_overflow_nothing() {
    for long in [
        Duration::MAX,
        Duration::MAX / 2,
        Duration::from_secs(i64::MAX as u64),
    ] {
        let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
        chaos.fail_times(Call::Attempt, Fault::Refuse, 1);
        let timeout = Arc::new(Timeout::new(Arc::new(chaos), long));
        let retry = Retry::new(timeout).pauses(long, long);
        let locks = Locktopus::builder(retry).build().unwrap();
        let refused = locks.lock("a").try_acquire().await;
        assert!(
            refused.is_err(),
            "no pause that long fits before the deadline"
        );
        assert!(locks.lock("a").try_acquire().await.unwrap().is_some());
    }
}
