//! The simplest backend that the unit tests of this crate can use: exclusive locks that do not
//! expire, and a queue. The real backends are in other crates, which depend on this one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::Simulated;
use tokio::time::Instant;

use crate::clock::{self, BootInstant};
use crate::engine::holding::lease::Lease;
use crate::lock;
use crate::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo, CounterOutcome,
    CounterRequest, Counters, Executed, ExtendOutcome, ExtendRequest, FencingToken, GroupOutcome,
    Groups, LockBackend, LockKind, LockName, LockState, LockTarget, Mode, NameError, OwnerId,
    ReleaseOutcome, ReleaseRequest, WaiterState,
};

/// Lets this thread see that the machine has just been asleep for this long.
pub(crate) fn sleep_machine(time: Duration) {
    let mut process = Simulated::swap(None).unwrap_or_else(|| Simulated::new(1));
    process.sleep_machine(time);
    Simulated::swap(Some(process));
}

/// A renewed lease of this length, granted now.
pub(crate) fn granted(lease: Duration) -> Lease {
    granted_until(lease, clock::now() + lease)
}

/// The same, valid until then.
pub(crate) fn granted_until(lease: Duration, valid_until: BootInstant) -> Lease {
    let target = LockTarget::new(LockName::new("n").unwrap(), LockKind::Reentrant);
    let (owner, token) = (OwnerId::generate(), FencingToken::new(1));
    let mut lease = Lease::granted(target, owner, token, lease, valid_until);
    lease.renewed = true;
    lease
}

/// The error of a call that did not run because the server is away.
pub(crate) fn away() -> BackendError {
    BackendError::new("test", BackendErrorKind::Unavailable, Executed::No, "away")
}

#[derive(Debug, Clone)]
pub(crate) struct TestBackend {
    info: Arc<BackendInfo>,
    locks: Arc<Mutex<HashMap<LockTarget, Entry>>>,
}

#[derive(Debug, Default)]
struct Entry {
    holder: Option<OwnerId>,
    last_token: u64,
    waiting: Vec<OwnerId>,
}

impl TestBackend {
    pub(crate) fn new() -> Self {
        let info = BackendInfo::new("test", "test", Duration::from_millis(100));
        Self::with(info.with_queues())
    }

    pub(crate) fn with(info: BackendInfo) -> Self {
        Self {
            info: Arc::new(info),
            locks: Arc::default(),
        }
    }

    fn refused<T>(&self) -> Result<T, BackendError> {
        let (kind, message) = (BackendErrorKind::Refused, "not for unit tests");
        Err(BackendError::new("test", kind, Executed::No, message))
    }
}

#[async_trait]
impl LockBackend for TestBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn check(&self, _target: &LockTarget) -> Result<(), NameError> {
        Ok(())
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let mut locks = lock(&self.locks);
        let entry = locks.entry(attempt.target.clone()).or_default();
        let owner = &attempt.owner;
        if entry.holder.is_none() || entry.holder.as_ref() == Some(owner) {
            let token = FencingToken::new(entry.last_token + 1);
            entry.last_token += u64::from(attempt.tokens);
            entry.holder = Some(owner.clone());
            entry.waiting.retain(|waiter| waiter != owner);
            return Ok(AttemptOutcome::Granted { token });
        }
        if attempt.place.is_none() {
            return Ok(AttemptOutcome::Held { remaining: None });
        }
        if !entry.waiting.contains(owner) {
            entry.waiting.push(owner.clone());
        }
        Ok(AttemptOutcome::Queued {
            remaining: None,
            ahead: 0,
            fence: entry.last_token,
        })
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let mut locks = lock(&self.locks);
        let entry = locks.entry(request.target.clone()).or_default();
        entry.waiting.retain(|waiter| *waiter != request.owner);
        if entry.holder.as_ref() != Some(&request.owner) {
            return Ok(ReleaseOutcome::NotHeld);
        }
        entry.holder = None;
        Ok(ReleaseOutcome::Released)
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        _deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        batch.iter().map(|_| Ok(ExtendOutcome::Extended)).collect()
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        _deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let mut locks = lock(&self.locks);
        let entry = locks.entry(target.clone()).or_default();
        let waiting = entry.waiting.iter().cloned();
        let mut state = LockState::default();
        state.waiters = waiting
            .map(|owner| WaiterState::new(owner, Mode::Exclusive, 1, None))
            .collect();
        Ok(state)
    }

    async fn close(&self) {}

    fn counters(&self) -> Option<&dyn Counters> {
        Some(self)
    }

    fn groups(&self) -> Option<&dyn Groups> {
        Some(self)
    }
}

#[async_trait]
impl Counters for TestBackend {
    /// Keeps no numbers, and answers like a backend that may have them later.
    async fn counter(&self, _request: &CounterRequest) -> Result<CounterOutcome, BackendError> {
        Err(away())
    }
}

#[async_trait]
impl Groups for TestBackend {
    fn group(&self, _target: &LockTarget) -> Option<u32> {
        Some(0)
    }

    async fn attempt_all(
        &self,
        _attempts: &[AcquireAttempt],
    ) -> Result<GroupOutcome, BackendError> {
        self.refused()
    }
}
