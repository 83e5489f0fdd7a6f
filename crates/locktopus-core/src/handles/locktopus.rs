//! The entry point for those who use locks.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::contract::backend::{BackendInfo, DynBackend, LockBackend};
use crate::contract::backend_error::BackendError;
use crate::contract::clock::timer_in;
use crate::contract::diagnosis::Diagnosis;
use crate::contract::kind::LockKind;
use crate::contract::mutex_profile::MutexProfile;
use crate::contract::name::RawName;
use crate::engine::acquisition::Engine;
use crate::engine::error::{LockError, LostCause};
use crate::handles::builder::LocktopusBuilder;
use crate::handles::held_lock::HeldLock;
use crate::handles::latch::Latch;
use crate::handles::listing::LockList;
use crate::handles::lock_request::{LockRequest, Named};
use crate::handles::multi::MultiLock;
use crate::handles::rw_lock::RwLock;
use crate::handles::semaphore::Semaphore;

/// Locks of one backend. Cheap to clone; clones share one watchdog and one set of connections.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
/// When the last clone, request and guard are gone, the background tasks end by themselves. Call
/// [`shutdown`](Self::shutdown) before the process exits: it waits for releases that are still under way.
#[derive(Debug, Clone)]
pub struct Locktopus {
    engine: Arc<Engine>,
}

impl Locktopus {
    pub(super) fn on(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// Starts building one on top of a backend.
    pub fn builder(backend: impl LockBackend) -> LocktopusBuilder {
        Self::builder_dyn(Arc::new(backend))
    }

    /// Starts building one on top of a shared backend.
    pub fn builder_dyn(backend: DynBackend) -> LocktopusBuilder {
        LocktopusBuilder::new(backend)
    }

    /// The default lock: exclusive, reentrant by [owner handle](crate::Owner). On Redis it is Redisson's
    /// `RLock`.
    pub fn lock(&self, name: impl Into<RawName>) -> LockRequest {
        self.request(name.into(), LockKind::Reentrant)
    }

    /// A lock that is granted strictly in order of arrival, across all processes: exclusive and reentrant, as
    /// [`lock`](Self::lock). On Redis it is Redisson's `RFairLock`.
    ///
    /// Waiters have a place in the queue, and keep it as long as they are heard of, whatever their
    /// [strategy](LockRequest::strategy). [`LockRequest::with_progress`] tells the place and an estimate of the time. A
    /// waiter that gives up, is cancelled or dropped leaves the queue; one that crashes is passed over when its
    /// place has lapsed.
    pub fn fair_lock(&self, name: impl Into<RawName>) -> LockRequest {
        self.request(name.into(), LockKind::Fair)
    }

    /// A plain mutex: exclusive, not reentrant, one string on Redis.
    pub fn mutex(&self, name: impl Into<RawName>) -> LockRequest {
        self.mutex_as(name, MutexProfile::default())
    }

    /// A plain mutex laid out as another library expects it.
    pub fn mutex_as(&self, name: impl Into<RawName>, profile: MutexProfile) -> LockRequest {
        self.request(name.into(), LockKind::Mutex(Arc::new(profile)))
    }

    /// A read-write lock: many readers or one writer.
    pub fn rw_lock(&self, name: impl Into<RawName>) -> RwLock {
        RwLock::new(Arc::clone(&self.engine), Named::Given(name.into()))
    }

    /// A semaphore. On Redis it is Redisson's `RSemaphore`, which keeps only a number; who holds how many permits until
    /// when stands beside it, so that permits of crashed native holders come back. Those of other libraries do not.
    pub fn semaphore(&self, name: impl Into<RawName>) -> Semaphore {
        let name = Named::Given(name.into());
        Semaphore::new(Arc::clone(&self.engine), name, LockKind::Semaphore)
    }

    /// A semaphore each of whose permits has an id and an expiry that all libraries see. On Redis it is Redisson's
    /// `RPermitExpirableSemaphore`.
    pub fn permit_semaphore(&self, name: impl Into<RawName>) -> Semaphore {
        let name = Named::Given(name.into());
        Semaphore::new(Arc::clone(&self.engine), name, LockKind::Permits)
    }

    /// A count-down latch.
    pub fn latch(&self, name: impl Into<RawName>) -> Latch {
        Latch::new(Arc::clone(&self.engine), Named::Given(name.into()))
    }

    /// Several locks of the default kind, all or nothing. [`MultiLock::add`] adds locks of other kinds, and of other
    /// backends.
    pub fn multi<N: Into<RawName>>(&self, names: impl IntoIterator<Item = N>) -> MultiLock {
        let requests = names.into_iter().map(|name| self.lock(name));
        requests.fold(MultiLock::new(), MultiLock::add)
    }

    /// Cancelled by [`shutdown`](Self::shutdown).
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.engine.closing
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    fn request(&self, name: RawName, kind: LockKind) -> LockRequest {
        LockRequest::new(Arc::clone(&self.engine), Named::Given(name), kind)
    }

    /// Lists the locks of this namespace that are held, by anybody, and whose names begin with `prefix`, a page at a
    /// time. An empty prefix lists the whole namespace. Never blocks the server for long.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
    /// [`LockError::Name`] if no name can begin like this.
    pub fn list(&self, prefix: impl Into<RawName>) -> Result<LockList, LockError> {
        LockList::new(&self.engine, &prefix.into())
    }

    /// The locks that this `Locktopus` and its clones hold or [keep](LockRequest::lease_cache), longest held first.
    /// Asks nobody.
    #[must_use]
    pub fn held_locks(&self) -> Vec<HeldLock> {
        HeldLock::all(&self.engine.watchdog)
    }

    /// What is put in front of every lock name. Empty: nothing.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.engine.settings.namespace
    }

    /// What the backend is.
    #[must_use]
    pub fn backend(&self) -> &BackendInfo {
        self.engine.backend.info()
    }

    /// Looks for what silently breaks locks on this backend. Backends on servers also take a probe lock and
    /// give it back, which shows missing permissions.
    ///
    /// # Errors
    ///
    /// The backend's error if it could not be asked.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a probe lock that was taken lapses after a second.
    pub async fn diagnose(&self) -> Result<Diagnosis, BackendError> {
        // Several calls one after the other, and a server that hangs takes as long as one may.
        let deadline = timer_in(self.engine.call_timeout().saturating_mul(3));
        self.engine.backend.diagnose(deadline).await
    }

    /// How many locks this `Locktopus` and its clones hold or [keep](LockRequest::lease_cache).
    #[must_use]
    pub fn held(&self) -> usize {
        self.engine.watchdog.len()
    }

    /// How many background releases and renewals are under way.
    #[must_use]
    pub fn background_tasks(&self) -> usize {
        self.engine.tasks.len()
    }

    /// Ends this `Locktopus` and all its clones.
    ///
    /// New acquisitions and waiting ones fail with [`LockError::ShutDown`]. Locks still held are declared
    /// lost ([`LostCause::ShutDown`]) and released. Then it waits up to `grace` for every release under way,
    /// and closes the backend. What could not be released lapses with its lease.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: if the future is dropped, the backend stays open. Calling it again is fine.
    pub async fn shutdown(&self, grace: Duration) -> ShutdownReport {
        let services = &self.engine;
        services.closing.cancel();
        services.cohorts.close();
        for state in services.watchdog.close() {
            if state.begin_release() {
                state.end(LostCause::ShutDown);
                services.reap(services.pending_release_of(&state));
            }
        }
        services.attempts.close();
        services.tasks.close();
        services.announcing.close();
        let drained = async {
            // First the attempts under way: their futures see `closing` and leave what they took to the reaper.
            services.attempts.wait().await;
            services.tasks.wait().await;
            // Not among what could be abandoned: a record that stays ends by itself, and blocks nobody.
            services.announcing.wait().await;
        };
        let drained = tokio::time::timeout(grace, drained).await.is_ok();
        let abandoned = if drained {
            0
        } else {
            services.attempts.len() + services.tasks.len()
        };
        services.closed.cancel();
        // A backend that hangs must not keep the process from ending.
        let _ = tokio::time::timeout(services.call_timeout(), services.backend.close()).await;
        ShutdownReport { abandoned }
    }
}

/// How a shutdown ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "locks that were not released block others until their leases end"]
pub struct ShutdownReport {
    /// Releases that were not confirmed in time; those locks are free when their leases have ended.
    pub abandoned: usize,
}
