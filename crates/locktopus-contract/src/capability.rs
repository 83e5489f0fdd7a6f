//! Optional abilities of a backend. Each is a small trait, and a backend returns an object that
//! implements it, or none.

use async_trait::async_trait;
use tokio::time::Instant;

use crate::backend::LockBackend;
use crate::backend_error::BackendError;
use crate::counter::{CounterOutcome, CounterRequest};
use crate::diagnosis::Diagnosis;
use crate::instance::{Announcement, InstanceQuery, InstanceRecord};
use crate::kind::LockTarget;
use crate::lock_state::{Eviction, LockPage, ScanCursor};
use crate::request::{AcquireAttempt, GroupOutcome};
use crate::wake::WakeStream;

/// Notifies waiters. Without it, waiters poll with growing pauses.
///
/// ```
/// # use std::sync::Arc;
/// # use locktopus::{DynBackend, LockKind, LockName, LockTarget, MemoryBackend, WakeUps};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let backend: DynBackend = Arc::new(MemoryBackend::new());
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(1);
/// let wake_ups: &dyn WakeUps = backend.wake_ups().expect("memory wakes its waiters");
/// assert!(wake_ups.listen(&target).is_none(), "nobody listens yet");
/// let _stream = wake_ups.subscribe(&target, deadline).await?;
/// assert!(wake_ups.listen(&target).is_some());
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// The same as for [`LockBackend`].
///
/// # Cancel safety
///
/// The same as for [`LockBackend`].
#[async_trait]
pub trait WakeUps: Send + Sync {
    /// Adds a listener if this process already listens and has missed nothing. Sends nothing.
    fn listen(&self, target: &LockTarget) -> Option<WakeStream>;

    /// Listens for hints that the target may be free, and for grants to this process's owners.
    ///
    /// Once this returns, every release that starts later reaches the lock's new owner, or wakes at
    /// least one waiter of this process. Both messages may be lost, and a hint may be false. After
    /// anything that can lose messages, every stream yields [`Wake::Resync`](crate::Wake).
    async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError>;
}

/// Keeps the numbers of semaphores, rate limiters and latches. Without it,
/// [`check`](LockBackend::check) refuses these kinds.
///
/// ```
/// # use std::sync::Arc;
/// # use locktopus::{Counters, CounterAction, CounterRequest, DynBackend, LockKind, LockName};
/// # use locktopus::{LockTarget, MemoryBackend, OwnerId};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let backend: DynBackend = Arc::new(MemoryBackend::new());
/// let counters: &dyn Counters = backend.counters().expect("memory keeps numbers");
/// let read = CounterRequest {
///     target: LockTarget::new(LockName::new("workers")?, LockKind::Semaphore),
///     operation: OwnerId::generate(),
///     action: CounterAction::Read,
///     deadline: tokio::time::Instant::now() + std::time::Duration::from_secs(1),
/// };
/// assert!(!counters.counter(&read).await?.changed);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// The same as for [`LockBackend`].
///
/// # Cancel safety
///
/// The same as for [`LockBackend`].
#[async_trait]
pub trait Counters: Send + Sync {
    /// Reads or changes the number of a semaphore, a rate limiter or a latch.
    async fn counter(&self, request: &CounterRequest) -> Result<CounterOutcome, BackendError>;
}

/// Takes several locks in one call. Without it, the core takes them one by one.
///
/// ```
/// # use std::sync::Arc;
/// # use locktopus::{DynBackend, Groups, LockKind, LockName, LockTarget, MemoryBackend};
/// # let backend: DynBackend = Arc::new(MemoryBackend::new());
/// let groups: &dyn Groups = backend.groups().expect("memory takes them together");
/// let target = |name| LockName::new(name).map(|name| LockTarget::new(name, LockKind::Reentrant));
/// assert_eq!(groups.group(&target("from")?), groups.group(&target("to")?));
/// # Ok::<(), locktopus::NameError>(())
/// ```
///
/// # Errors
///
/// The same as for [`LockBackend`].
///
/// # Cancel safety
///
/// The same as for [`LockBackend`].
#[async_trait]
pub trait Groups: Send + Sync {
    /// The group of this target. [`attempt_all`](Self::attempt_all) takes targets of one group
    /// together. `None`: this target can only be taken alone.
    fn group(&self, target: &LockTarget) -> Option<u32>;

    /// Tries once to take several different locks of one group, all or nothing.
    async fn attempt_all(&self, attempts: &[AcquireAttempt]) -> Result<GroupOutcome, BackendError>;
}

/// Finds locks that other owners hold, and ends their holds. Without it, held locks cannot be
/// listed, and no release can be forced.
///
/// ```
/// # use std::sync::Arc;
/// # use locktopus::{Directory, DynBackend, MemoryBackend};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let backend: DynBackend = Arc::new(MemoryBackend::new());
/// let directory: &dyn Directory = backend.directory().expect("memory lists its locks");
/// let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(1);
/// assert!(directory.scan("invoice:", None, deadline).await?.locks.is_empty());
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// The same as for [`LockBackend`].
///
/// # Cancel safety
///
/// The same as for [`LockBackend`].
#[async_trait]
pub trait Directory: Send + Sync {
    /// Lists held locks whose names begin with `prefix`, a page at a time. Never blocks the backend
    /// for long. A backend that can only evict fails with kind `Unsupported`.
    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError>;

    /// Ends every hold of a lock, fences its tokens, and hands the lock on. Queue places stay.
    async fn evict(&self, target: &LockTarget, deadline: Instant)
    -> Result<Eviction, BackendError>;
}

/// Keeps the records that describe instances. Without it, holders are shown without labels.
///
/// Every client of the same namespace can read a record, until it expires or the instance removes
/// it. A record has no effect on locks.
///
/// ```
/// # use std::sync::Arc;
/// # use locktopus::{DynBackend, InstanceId, InstanceQuery, Instances, MemoryBackend};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let backend: DynBackend = Arc::new(MemoryBackend::new());
/// let instances: &dyn Instances = backend.instances().expect("memory keeps records");
/// let query = InstanceQuery {
///     namespace: String::new(),
///     instances: vec![InstanceId::from_bytes([1; 6])],
///     deadline: tokio::time::Instant::now() + std::time::Duration::from_secs(1),
/// };
/// assert_eq!(instances.records(&query).await?, [None]);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// The same as for [`LockBackend`].
///
/// # Cancel safety
///
/// The same as for [`LockBackend`].
#[async_trait]
pub trait Instances: Send + Sync {
    /// Keeps the record of an instance, or forgets it.
    async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError>;

    /// The records of these instances: one answer for each, in order. `None`: no record.
    async fn records(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError>;
}

/// Looks for settings that silently break locks. Without it, a connection is not checked.
///
/// ```
/// # use std::sync::Arc;
/// # use locktopus::{Diagnostics, DynBackend, MemoryBackend};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let backend: DynBackend = Arc::new(MemoryBackend::new());
/// let diagnosis: &dyn Diagnostics = backend.diagnosis().expect("memory knows where it is");
/// let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(1);
/// assert_eq!(diagnosis.diagnose(deadline).await?.nodes, ["this process"]);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// The same as for [`LockBackend`].
///
/// # Cancel safety
///
/// The same as for [`LockBackend`].
#[async_trait]
pub trait Diagnostics: Send + Sync {
    /// Looks for eviction, old servers, missing permissions and wrong clocks.
    async fn diagnose(&self, deadline: Instant) -> Result<Diagnosis, BackendError>;
}

/// The capabilities, for callers. If the backend lacks one, the request fails with kind
/// [`Unsupported`](crate::BackendErrorKind::Unsupported) and does nothing.
impl<'a> dyn LockBackend + 'a {
    /// [`WakeUps::listen`]; `None` without wake-ups.
    pub fn listen(&self, target: &LockTarget) -> Option<WakeStream> {
        self.wake_ups()?.listen(target)
    }

    /// [`WakeUps::subscribe`].
    ///
    /// # Errors
    ///
    /// Those of [`LockBackend`], or `Unsupported`.
    ///
    /// # Cancel safety
    ///
    /// The same as for [`LockBackend`].
    pub async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        let wake_ups = self.able(self.wake_ups(), "nobody is woken here; waiters ask again")?;
        wake_ups.subscribe(target, deadline).await
    }

    /// [`Counters::counter`].
    ///
    /// # Errors
    ///
    /// Those of [`LockBackend`], or `Unsupported`.
    ///
    /// # Cancel safety
    ///
    /// The same as for [`LockBackend`].
    pub async fn counter(&self, request: &CounterRequest) -> Result<CounterOutcome, BackendError> {
        let why = "there are no semaphores and no latches here";
        self.able(self.counters(), why)?.counter(request).await
    }

    /// [`Groups::group`]; `None` without groups.
    pub fn group(&self, target: &LockTarget) -> Option<u32> {
        self.groups()?.group(target)
    }

    /// [`Groups::attempt_all`].
    ///
    /// # Errors
    ///
    /// Those of [`LockBackend`], or `Unsupported`.
    ///
    /// # Cancel safety
    ///
    /// The same as for [`LockBackend`].
    pub async fn attempt_all(
        &self,
        attempts: &[AcquireAttempt],
    ) -> Result<GroupOutcome, BackendError> {
        let groups = self.able(self.groups(), "locks are taken one by one here")?;
        groups.attempt_all(attempts).await
    }

    /// [`Directory::scan`].
    ///
    /// # Errors
    ///
    /// Those of [`LockBackend`], or `Unsupported`.
    ///
    /// # Cancel safety
    ///
    /// The same as for [`LockBackend`].
    pub async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        let directory = self.able(self.directory(), "locks cannot be listed here")?;
        directory.scan(prefix, cursor, deadline).await
    }

    /// [`Directory::evict`].
    ///
    /// # Errors
    ///
    /// Those of [`LockBackend`], or `Unsupported`.
    ///
    /// # Cancel safety
    ///
    /// The same as for [`LockBackend`].
    pub async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        let directory = self.able(self.directory(), "no release can be forced here")?;
        directory.evict(target, deadline).await
    }

    /// [`Instances::announce`].
    ///
    /// # Errors
    ///
    /// Those of [`LockBackend`], or `Unsupported`.
    ///
    /// # Cancel safety
    ///
    /// The same as for [`LockBackend`].
    pub async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError> {
        let instances = self.able(self.instances(), "records of instances are not kept here")?;
        instances.announce(announcement).await
    }

    /// [`Instances::records`].
    ///
    /// # Errors
    ///
    /// Those of [`LockBackend`], or `Unsupported`.
    ///
    /// # Cancel safety
    ///
    /// The same as for [`LockBackend`].
    pub async fn records(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        let instances = self.able(self.instances(), "records of instances are not kept here")?;
        instances.records(query).await
    }

    /// [`Diagnostics::diagnose`]. Without diagnostics, it returns one node and no finding.
    ///
    /// # Errors
    ///
    /// Those of [`LockBackend`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn diagnose(&self, deadline: Instant) -> Result<Diagnosis, BackendError> {
        match self.diagnosis() {
            Some(diagnosis) => diagnosis.diagnose(deadline).await,
            None => Ok(Diagnosis {
                nodes: vec![self.info().description.clone()],
                ..Diagnosis::default()
            }),
        }
    }

    fn able<T>(&self, capability: Option<T>, why: &'static str) -> Result<T, BackendError> {
        capability.ok_or_else(|| BackendError::unsupported(self.info().name, why))
    }
}
