//! Adds a prefix to names on their way to the backend.

use std::error::Error as _;

use async_trait::async_trait;
use locktopus_contract::{
    AcquireAttempt, Announcement, AttemptOutcome, BackendError, BackendErrorKind, CounterOutcome,
    CounterRequest, Counters, Directory, DynBackend, Eviction, Executed, ExtendOutcome,
    ExtendRequest, FoundLock, GroupOutcome, Groups, InstanceQuery, InstanceRecord, Instances,
    LockBackend, LockName, LockPage, LockState, LockTarget, NameError, OtherKind, ReleaseOutcome,
    ReleaseRequest, ScanCursor, TooFewPermits, WakeStream, WakeUps,
};
use tokio::time::Instant;

/// Any backend, with a prefix before every lock name.
///
/// Two prefixes on one backend give two separate sets of locks, unless one prefix is the start of
/// the other. So end them with a separator. Names in answers and other errors come without the
/// prefix; names in [`NameError`]s come as they would be stored. Other libraries that share a lock
/// use the whole name.
///
/// `LocktopusBuilder::namespace` does the same for one `Locktopus`. Use this layer to give a
/// backend to code that builds its own `Locktopus` and must not see other locks.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::sync::Arc;
/// # use locktopus_core::Locktopus;
/// # use locktopus_layers::Prefix;
/// # use locktopus_memory::MemoryBackend;
/// let shared = Arc::new(MemoryBackend::new());
/// let tenant =
///     |id: u32| Locktopus::builder(Prefix::new(shared.clone(), format!("tenant-{id}:"))).build();
/// let (seven, eight) = (tenant(7)?, tenant(8)?);
/// let _held = seven.lock("import").acquire().await?;
/// assert!(eight.lock("import").try_acquire().await?.is_some());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Prefix {
    inner: DynBackend,
    prefix: String,
}

impl Prefix {
    /// Puts `prefix` before every name. It counts towards the
    /// [length of a name](locktopus_contract::MAX_NAME_BYTES).
    #[must_use]
    pub fn new(inner: DynBackend, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        Self { inner, prefix }
    }

    fn prefixed(&self, target: &LockTarget) -> Result<LockTarget, NameError> {
        let name = LockName::in_namespace(&self.prefix, target.name().as_str())?;
        Ok(LockTarget::new(name, target.kind().clone()))
    }

    /// Like [`prefixed`](Self::prefixed), for callers that did not call
    /// [`check`](LockBackend::check) first.
    fn placed(&self, target: &LockTarget) -> Result<LockTarget, BackendError> {
        self.prefixed(target).map_err(|error| {
            let name = self.inner.info().name;
            let kind = BackendErrorKind::Refused;
            BackendError::new(name, kind, Executed::No, error.to_string()).with_source(error)
        })
    }

    fn attempt_of(&self, attempt: &AcquireAttempt) -> Result<AcquireAttempt, BackendError> {
        let target = self.placed(&attempt.target)?;
        Ok(AcquireAttempt {
            target,
            ..attempt.clone()
        })
    }
}

/// If the error names a target in the backend's form, changes it to the caller's form.
fn as_asked(error: BackendError, asked: &LockTarget) -> BackendError {
    let name = error.backend();
    let Some(source) = error.source() else {
        return error;
    };
    if let Some(other) = source.downcast_ref::<OtherKind>() {
        return BackendError::other_kind(name, asked, other.found.clone());
    }
    match source.downcast_ref::<TooFewPermits>() {
        Some(few) => BackendError::too_few_permits(name, asked, few.asked, few.total),
        None => error,
    }
}

#[async_trait]
impl locktopus_contract::Layer for Prefix {
    fn inner(&self) -> &dyn LockBackend {
        &*self.inner
    }

    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        self.inner.check(&self.prefixed(target)?)
    }

    fn shard(&self, target: &LockTarget) -> u32 {
        // A name that is too long is never held, so its shard does not matter.
        self.prefixed(target)
            .map_or(0, |target| self.inner.shard(&target))
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let placed = self.attempt_of(attempt)?;
        let answer = self.inner.attempt(&placed).await;
        answer.map_err(|error| as_asked(error, &attempt.target))
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let target = self.placed(&request.target)?;
        let request = ReleaseRequest {
            target,
            ..request.clone()
        };
        self.inner.release(&request).await
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let placed = batch.iter().map(|request| {
            let target = self.placed(&request.target)?;
            Ok(ExtendRequest {
                target,
                ..request.clone()
            })
        });
        let placed: Vec<Result<ExtendRequest, BackendError>> = placed.collect();
        let sent: Vec<_> = placed.iter().flatten().cloned().collect();
        let mut answers = self.inner.extend(&sent, deadline).await.into_iter();
        placed
            .into_iter()
            .filter_map(|placed| match placed {
                Ok(_) => answers.next(),
                Err(error) => Some(Err(error)),
            })
            .collect()
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let answer = self.inner.inspect(&self.placed(target)?, deadline).await;
        answer.map_err(|error| as_asked(error, target))
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
}

#[async_trait]
impl WakeUps for Prefix {
    fn listen(&self, target: &LockTarget) -> Option<WakeStream> {
        self.inner.listen(&self.prefixed(target).ok()?)
    }

    async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        self.inner.subscribe(&self.placed(target)?, deadline).await
    }
}

#[async_trait]
impl Counters for Prefix {
    async fn counter(&self, request: &CounterRequest) -> Result<CounterOutcome, BackendError> {
        let placed = CounterRequest {
            target: self.placed(&request.target)?,
            ..request.clone()
        };
        let answer = self.inner.counter(&placed).await;
        answer.map_err(|error| as_asked(error, &request.target))
    }
}

#[async_trait]
impl Groups for Prefix {
    fn group(&self, target: &LockTarget) -> Option<u32> {
        self.inner.group(&self.prefixed(target).ok()?)
    }

    async fn attempt_all(&self, attempts: &[AcquireAttempt]) -> Result<GroupOutcome, BackendError> {
        let placed: Vec<_> = attempts
            .iter()
            .map(|attempt| self.attempt_of(attempt))
            .collect::<Result<_, _>>()?;
        let answer = self.inner.attempt_all(&placed).await;
        answer.map_err(|error| {
            let source = error.source();
            let named = source.and_then(|source| {
                let other = source.downcast_ref().map(|other: &OtherKind| &other.asked);
                let few = || source.downcast_ref().map(|few: &TooFewPermits| &few.target);
                other.or_else(few)
            });
            let index =
                named.and_then(|named| placed.iter().position(|placed| placed.target == *named));
            match index {
                Some(index) => as_asked(error, &attempts[index].target),
                None => error,
            }
        })
    }
}

#[async_trait]
impl Directory for Prefix {
    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        let whole = format!("{}{prefix}", self.prefix);
        let page = self.inner.scan(&whole, cursor, deadline).await?;
        let locks = page.locks.into_iter().filter_map(|lock| {
            let name = lock.name.strip_prefix(&self.prefix)?.to_owned();
            Some(FoundLock::new(name, lock.kind))
        });
        Ok(LockPage::new(locks.collect(), page.next))
    }

    async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        let answer = self.inner.evict(&self.placed(target)?, deadline).await;
        answer.map_err(|error| as_asked(error, target))
    }
}

#[async_trait]
impl Instances for Prefix {
    async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError> {
        let announcement = Announcement {
            namespace: format!("{}{}", self.prefix, announcement.namespace),
            ..announcement.clone()
        };
        self.inner.announce(&announcement).await
    }

    async fn records(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        let query = InstanceQuery {
            namespace: format!("{}{}", self.prefix, query.namespace),
            ..query.clone()
        };
        self.inner.records(&query).await
    }
}
