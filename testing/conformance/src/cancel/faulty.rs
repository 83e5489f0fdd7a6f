//! The layer that makes a backend misbehave.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use locktopus_core::{
    AcquireAttempt, Announcement, AttemptOutcome, BackendError, BackendErrorKind, CounterOutcome,
    CounterRequest, Counters, Diagnosis, Diagnostics, Directory, DynBackend, Eviction, Executed,
    ExtendOutcome, ExtendRequest, GroupOutcome, Groups, InstanceQuery, InstanceRecord, Instances,
    LockBackend, LockPage, LockState, LockTarget, ReleaseOutcome, ReleaseRequest, ScanCursor,
    WakeStream, WakeUps,
};
use tokio::time::Instant;

use super::faults::{Dice, Fate, Faults};

/// Any backend, with faults on top. The faults can be changed at any time.
#[derive(Debug)]
pub struct FaultyBackend {
    inner: DynBackend,
    faults: Mutex<(Faults, Dice)>,
    calls: AtomicUsize,
    in_flight: Arc<AtomicUsize>,
}

impl FaultyBackend {
    /// Puts faults on top of a backend.
    #[must_use]
    pub fn new(inner: DynBackend, faults: Faults) -> Arc<Self> {
        Arc::new(Self {
            inner,
            faults: Mutex::new((faults, Dice::new(faults.seed))),
            calls: AtomicUsize::new(0),
            in_flight: Arc::default(),
        })
    }

    /// Changes the faults of later calls, and starts the generator anew.
    pub fn set(&self, faults: Faults) {
        let mut current = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        *current = (faults, Dice::new(faults.seed));
    }

    /// How many calls were made.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// How many executions are in flight, including those of dropped calls.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    fn fate(&self) -> Fate {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut current = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let (faults, dice) = &mut *current;
        let faults = *faults;
        dice.fate(&faults)
    }

    /// Runs one call with its fate. Calls `run` once, or twice if the call is duplicated.
    async fn call<T, F, Fut>(&self, run: F) -> Result<T, BackendError>
    where
        T: Send + 'static,
        F: Fn(DynBackend) -> Fut + Send + 'static,
        Fut: Future<Output = T> + Send,
    {
        let fate = self.fate();
        let inner = Arc::clone(&self.inner);
        let travelling = Travelling::new(&self.in_flight);
        let execution = async move {
            let _travelling = travelling;
            fate.way_there().await;
            if fate.refused {
                return None;
            }
            let answer = run(Arc::clone(&inner)).await;
            if fate.duplicated {
                run(inner).await;
            }
            Some(answer)
        };
        let answer = if fate.detached {
            tokio::spawn(execution).await.ok().flatten()
        } else {
            execution.await
        };
        fate.way_back().await;
        match answer {
            None => Err(self.error(
                Executed::No,
                BackendErrorKind::Unavailable,
                "refused on purpose",
            )),
            Some(_) if fate.lost => Err(self.error(
                Executed::Maybe,
                BackendErrorKind::Timeout,
                "answer lost on purpose",
            )),
            Some(answer) => Ok(answer),
        }
    }

    fn error(&self, executed: Executed, kind: BackendErrorKind, message: &str) -> BackendError {
        BackendError::new(self.inner.info().name, kind, executed, message)
    }
}

/// Counts an execution while it is in flight.
struct Travelling(Arc<AtomicUsize>);

impl Travelling {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(count))
    }
}

impl Drop for Travelling {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Runs a call with its fate. The call's only argument is a reference.
macro_rules! faulty {
    ($self:ident.$method:ident($argument:ident $(, $deadline:ident)?)) => {{
        let argument = $argument.to_owned();
        let call = $self.call(move |inner| {
            let argument = argument.clone();
            async move { inner.$method(&argument $(, $deadline)?).await }
        });
        call.await?
    }};
}

#[async_trait]
impl locktopus_core::Layer for FaultyBackend {
    fn inner(&self) -> &dyn LockBackend {
        &*self.inner
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        faulty!(self.attempt(attempt))
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        faulty!(self.release(request))
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let requests = batch.to_vec();
        let answers = self.call(move |inner| {
            let requests = requests.clone();
            async move { inner.extend(&requests, deadline).await }
        });
        match answers.await {
            Ok(answers) => answers,
            Err(error) => {
                let again = || self.error(error.executed(), error.kind(), "failed on purpose");
                batch.iter().map(|_| Err(again())).collect()
            }
        }
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        faulty!(self.inspect(target, deadline))
    }

    async fn close(&self) {
        let fate = self.fate();
        fate.way_there().await;
        self.inner.close().await;
        fate.way_back().await;
    }

    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        self.inner.wake_ups().map(|_| self as _)
    }

    fn counters(&self) -> Option<&dyn Counters> {
        self.inner.counters().map(|_| self as _)
    }

    fn groups(&self) -> Option<&dyn Groups> {
        self.inner.groups().map(|_| self as _)
    }

    fn directory(&self) -> Option<&dyn Directory> {
        self.inner.directory().map(|_| self as _)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        self.inner.instances().map(|_| self as _)
    }

    fn diagnosis(&self) -> Option<&dyn Diagnostics> {
        self.inner.diagnosis().map(|_| self as _)
    }
}

#[async_trait]
impl WakeUps for FaultyBackend {
    fn listen(&self, target: &LockTarget) -> Option<WakeStream> {
        self.inner.listen(target)
    }

    async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        faulty!(self.subscribe(target, deadline))
    }
}

#[async_trait]
impl Counters for FaultyBackend {
    async fn counter(&self, request: &CounterRequest) -> Result<CounterOutcome, BackendError> {
        faulty!(self.counter(request))
    }
}

#[async_trait]
impl Groups for FaultyBackend {
    fn group(&self, target: &LockTarget) -> Option<u32> {
        self.inner.group(target)
    }

    async fn attempt_all(&self, attempts: &[AcquireAttempt]) -> Result<GroupOutcome, BackendError> {
        faulty!(self.attempt_all(attempts))
    }
}

#[async_trait]
impl Directory for FaultyBackend {
    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        let prefix = prefix.to_owned();
        self.call(move |inner| {
            let (prefix, cursor) = (prefix.clone(), cursor.clone());
            async move { inner.scan(&prefix, cursor, deadline).await }
        })
        .await?
    }

    async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        faulty!(self.evict(target, deadline))
    }
}

#[async_trait]
impl Instances for FaultyBackend {
    async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError> {
        faulty!(self.announce(announcement))
    }

    async fn records(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        faulty!(self.records(query))
    }
}

#[async_trait]
impl Diagnostics for FaultyBackend {
    async fn diagnose(&self, deadline: Instant) -> Result<Diagnosis, BackendError> {
        self.call(move |inner| async move { inner.diagnose(deadline).await })
            .await?
    }
}
