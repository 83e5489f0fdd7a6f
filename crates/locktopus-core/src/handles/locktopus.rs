//! The entry point for users of locks.

mod shutdown;

use locktopus_contract::clock::timer_in;
use locktopus_contract::{
    BackendError, BackendInfo, Diagnosis, DynBackend, Finding, LockBackend, LockKind, MutexProfile,
    RawName, Severity,
};
pub use shutdown::ShutdownReport;
use tokio_util::sync::CancellationToken;

use std::sync::Arc;

use crate::engine::error::LockError;
use crate::engine::holding::services::Services;
use crate::handles::builder::LocktopusBuilder;
use crate::handles::held_lock::HeldLock;
use crate::handles::latch::Latch;
use crate::handles::listing::LockList;
use crate::handles::lock_request::{LockRequest, RequestName};
use crate::handles::multi::MultiLock;
use crate::handles::rw_lock::RwLock;
use crate::handles::semaphore::Semaphore;

/// Locks of one backend. Cheap to clone; clones share one watchdog and one set of connections.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use locktopus_core::Locktopus;
/// use locktopus_memory::MemoryBackend;
///
/// let locks = Locktopus::builder(MemoryBackend::new()).namespace("shop:").build()?;
/// let guard = locks.lock("invoice:42").wait_at_most(Duration::from_secs(5)).acquire().await?;
/// assert!(locks.lock("invoice:42").try_acquire().await?.is_none());
/// guard.release().await?;
/// locks.shutdown(Duration::from_secs(1)).await;
/// # Ok(()) }
/// ```
///
/// The background tasks end once the last clone, request and guard are gone. Call
/// [`shutdown`](Self::shutdown) before the process exits: it waits for releases that are still
/// under way.
#[derive(Debug, Clone)]
pub struct Locktopus {
    pub(super) services: Arc<Services>,
}

impl Locktopus {
    pub(super) fn on(services: Arc<Services>) -> Self {
        Self { services }
    }

    /// Starts to build a `Locktopus` on a backend.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use locktopus::{Locktopus, MemoryBackend};
    /// let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// locks.lock("invoice:42").acquire().await?.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn builder(backend: impl LockBackend) -> LocktopusBuilder {
        Self::builder_dyn(Arc::new(backend))
    }

    /// Starts to build a `Locktopus` on a shared backend.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use locktopus::Locktopus;
    /// // One connection for all tenants of a service, each with its own names.
    /// let backend = locktopus::connect_backend("memory:").await?;
    /// let one = Locktopus::builder_dyn(backend.clone()).namespace("one:").build()?;
    /// let other = Locktopus::builder_dyn(backend).namespace("other:").build()?;
    /// let _held = one.lock("invoice").acquire().await?;
    /// assert!(other.lock("invoice").try_acquire().await?.is_some());
    /// # Ok(()) }
    /// ```
    pub fn builder_dyn(backend: DynBackend) -> LocktopusBuilder {
        LocktopusBuilder::new(backend)
    }

    /// The default lock: exclusive, and reentrant for an [owner](crate::Owner). On Redis it is
    /// Redisson's `RLock`.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("invoice:42").acquire().await?;
    /// let again = guard.reenter()?;
    /// guard.release().await?;
    /// assert!(locks.lock("invoice:42").try_acquire().await?.is_none()); // `again` holds it
    /// again.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn lock(&self, name: impl Into<RawName>) -> LockRequest {
        self.request(name.into(), LockKind::Reentrant)
    }

    /// A lock that is granted in order of arrival, across all processes. Exclusive and reentrant,
    /// as [`lock`](Self::lock). On Redis it is Redisson's `RFairLock`. Waiters that do not react
    /// are passed over, and a failover may lose the queue.
    ///
    /// Waiters keep their place in the queue as long as they send heartbeats, with any
    /// [strategy](LockRequest::strategy). [`LockRequest::with_progress`] reports the place and an
    /// estimate of the time. A waiter that gives up, is cancelled or is dropped leaves the queue;
    /// one that crashes is passed over when its place has expired.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.fair_lock("printer").acquire().await?;
    /// let next = tokio::spawn(locks.fair_lock("printer").acquire());
    /// guard.release().await?;
    /// next.await??.release().await?; // the first to arrive, in any process
    /// # Ok(()) }
    /// ```
    pub fn fair_lock(&self, name: impl Into<RawName>) -> LockRequest {
        self.request(name.into(), LockKind::Fair)
    }

    /// A plain mutex: exclusive, not reentrant, one string on Redis.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::LockError;
    /// let guard = locks.mutex("invoice:42").acquire().await?;
    /// assert!(matches!(guard.reenter(), Err(LockError::NotReentrant { .. })));
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn mutex(&self, name: impl Into<RawName>) -> LockRequest {
        self.mutex_as(name, MutexProfile::default())
    }

    /// A plain mutex in the format of another library.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::MutexProfile;
    /// // Excludes Python programs that use redis-py's `Lock("invoice:42")`.
    /// let guard = locks.mutex_as("invoice:42", MutexProfile::redis_py()).acquire().await?;
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn mutex_as(&self, name: impl Into<RawName>, profile: MutexProfile) -> LockRequest {
        self.request(name.into(), LockKind::Mutex(Arc::new(profile)))
    }

    /// A read-write lock: many readers or one writer.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let prices = locks.rw_lock("prices");
    /// let (one, other) = (prices.read().acquire().await?, prices.read().acquire().await?);
    /// assert!(prices.write().try_acquire().await?.is_none());
    /// one.release().await?;
    /// other.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn rw_lock(&self, name: impl Into<RawName>) -> RwLock {
        RwLock::new(Arc::clone(&self.services), RequestName::Given(name.into()))
    }

    /// A semaphore. On Redis it is Redisson's `RSemaphore`, which stores only a number. A record
    /// beside it says who holds how many permits until when, so permits of crashed native holders
    /// come back. Those of other libraries do not.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let workers = locks.semaphore("workers");
    /// workers.initialise(3).await?; // only the first call sets it
    /// let permit = workers.permits(1).acquire().await?;
    /// assert_eq!(workers.available().await?, Some(2));
    /// permit.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn semaphore(&self, name: impl Into<RawName>) -> Semaphore {
        let name = RequestName::Given(name.into());
        Semaphore::new(Arc::clone(&self.services), name, LockKind::Semaphore)
    }

    /// A semaphore whose permits have ids and expiry times, visible to all libraries. On Redis it
    /// is Redisson's `RPermitExpirableSemaphore`.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let licences = locks.permit_semaphore("licences");
    /// licences.initialise(2).await?;
    /// let two = licences.permits(2).acquire().await?;
    /// assert!(licences.permits(1).try_acquire().await?.is_none());
    /// two.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn permit_semaphore(&self, name: impl Into<RawName>) -> Semaphore {
        let name = RequestName::Given(name.into());
        Semaphore::new(Arc::clone(&self.services), name, LockKind::PermitSemaphore)
    }

    /// A count-down latch.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let shards = locks.latch("rebuild:7");
    /// shards.initialise(1).await?;
    /// shards.count_down().await?; // when a part is done
    /// shards.wait().await?;
    /// # Ok(()) }
    /// ```
    pub fn latch(&self, name: impl Into<RawName>) -> Latch {
        Latch::new(Arc::clone(&self.services), RequestName::Given(name.into()))
    }

    /// A lock of a kind chosen at run time, for example on a command line. The methods above return
    /// handles of their kind; this returns a request for one holder. Use
    /// [`permits`](LockRequest::permits) to ask for several.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::LockKind;
    /// let kind = LockKind::from_word("read_lock").ok_or("no kind of lock")?;
    /// let reading = locks.of_kind("prices", kind).acquire().await?;
    /// assert!(locks.rw_lock("prices").write().try_acquire().await?.is_none());
    /// reading.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn of_kind(&self, name: impl Into<RawName>, kind: LockKind) -> LockRequest {
        self.request(name.into(), kind)
    }

    /// Several locks of the default kind, all or nothing. [`MultiLock::add`] adds locks of other
    /// kinds or backends.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let both = locks.multi(["account:1", "account:2"]).acquire().await?;
    /// assert!(locks.lock("account:2").try_acquire().await?.is_none());
    /// both.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn multi<N: Into<RawName>>(&self, names: impl IntoIterator<Item = N>) -> MultiLock {
        let requests = names.into_iter().map(|name| self.lock(name));
        requests.fold(MultiLock::new(), MultiLock::add)
    }

    /// A token that is cancelled as soon as [`shutdown`](Self::shutdown) begins, for loops of your
    /// own. Cancelling it has no effect on the locks.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let closing = locks.shutdown_token();
    /// let ticking = tokio::spawn(async move {
    ///     while !closing.is_cancelled() {
    ///         let hour = tokio::time::sleep(Duration::from_secs(3_600));
    ///         tokio::select! {
    ///             () = hour => println!("an hour is over"),
    ///             () = closing.cancelled() => {}
    ///         }
    ///     }
    /// });
    /// let _ = locks.shutdown(Duration::from_secs(5)).await;
    /// ticking.await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn shutdown_token(&self) -> CancellationToken {
        self.services.closing.child_token()
    }

    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.services
    }

    fn request(&self, name: RawName, kind: LockKind) -> LockRequest {
        LockRequest::new(Arc::clone(&self.services), RequestName::Given(name), kind)
    }

    /// Lists this namespace's held locks, of all holders, whose names begin with `prefix`, one page
    /// at a time. An empty prefix lists the whole namespace. Never blocks the server for long.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// let locks = Locktopus::builder(MemoryBackend::new()).namespace("shop:").build()?;
    /// let _guard = locks.lock("invoice:42").acquire().await?;
    /// let mut list = locks.list("invoice:")?;
    /// while let Some(page) = list.next_page().await? {
    ///     for lock in page {
    ///         let state = lock.request().inspect().await?;
    ///         println!("{} {}: {:?}", lock.kind().as_str(), lock.name(), state.holder());
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Name`] if no name can begin with `prefix`.
    pub fn list(&self, prefix: impl Into<RawName>) -> Result<LockList, LockError> {
        LockList::new(&self.services, &prefix.into())
    }

    /// The locks that this `Locktopus` and its clones hold or [keep](LockRequest::lease_cache),
    /// longest held first. Does not contact the backend.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let _guard = locks.lock("invoice:42").acquire().await?;
    /// let names: Vec<_> = locks.held_locks().iter().map(|lock| lock.target.name().to_string()).collect();
    /// assert_eq!((names, locks.held()), (vec!["invoice:42".to_owned()], 1));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn held_locks(&self) -> Vec<HeldLock> {
        HeldLock::all(&self.services)
    }

    /// The prefix of every lock name; empty if there is none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.services.settings.namespace
    }

    /// Describes the backend.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// assert_eq!(locks.backend().name, "memory");
    /// assert_eq!((locks.namespace(), locks.background_tasks()), ("", 0));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn backend(&self) -> &BackendInfo {
        self.services.backend.info()
    }

    /// Checks for conditions that silently break locks on this backend. Backends on servers also
    /// take a probe lock and release it, which shows missing permissions.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::Severity;
    /// let diagnosis = locks.diagnose().await?;
    /// for finding in &diagnosis.findings {
    ///     println!("{finding}");
    /// }
    /// assert_ne!(diagnosis.worst(), Some(Severity::Danger));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The backend's error if it could not be reached.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a probe lock that was taken expires after a second.
    pub async fn diagnose(&self) -> Result<Diagnosis, BackendError> {
        // About twenty calls, one after the other; a server that hangs costs two call timeouts.
        let deadline = timer_in(self.services.call_timeout().saturating_mul(5));
        let mut diagnosis = self.services.backend.diagnose(deadline).await?;
        let outlives = self.backend().outlives;
        if !outlives.is_zero() {
            let message = format!(
                "the lock of a process that died may stay held for {outlives:?} after its lease; waiters wait that long"
            );
            let finding = Finding::new(Severity::Note, "outlives", message);
            diagnosis.findings.push(finding);
        }
        Ok(diagnosis)
    }

    /// How many locks this `Locktopus` and its clones hold or [keep](LockRequest::lease_cache).
    #[must_use]
    pub fn held(&self) -> usize {
        self.services.watchdog.len()
    }

    /// How many background releases and renewals are under way.
    #[must_use]
    pub fn background_tasks(&self) -> usize {
        self.services.tasks.len()
    }
}
