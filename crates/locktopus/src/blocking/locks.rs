//! The entry point of the blocking API.

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{
    HeldLock, KnownInstances, LocktopusBuilder, MutexProfile, OwnerId, RawName, ShutdownReport,
};

use super::counted::{Latch, RateLimiter, RwLock, Semaphore};
use super::error::BlockingError;
use super::request::LockRequest;
use super::runtime::Background;
use crate::url::IntoBackendUrl;

/// Connects to the backend that a URL names, as [`crate::connect`] does, and starts the background
/// thread.
///
/// ```
/// let locks = locktopus::blocking::connect("memory:")?;
/// let guard = locks.lock("invoice:42").acquire()?;
/// guard.ensure_valid()?; // right before each side effect
/// guard.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`BlockingError::Connect`], [`BlockingError::Thread`], [`BlockingError::InsideRuntime`].
pub fn connect(url: impl IntoBackendUrl) -> Result<Locktopus, BlockingError> {
    connect_with(url, |builder| builder)
}

/// As [`connect`], but lets you configure the `Locktopus`. Settings in the URL are applied first.
///
/// ```
/// # use std::time::Duration;
/// # use locktopus::blocking;
/// # fn main() -> Result<(), blocking::BlockingError> {
/// let lease = Duration::from_secs(10);
/// let locks = blocking::connect_with("memory:", |builder| builder.renewed_lease(lease))?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// As [`connect`].
pub fn connect_with(
    url: impl IntoBackendUrl,
    configure: impl FnOnce(LocktopusBuilder) -> LocktopusBuilder,
) -> Result<Locktopus, BlockingError> {
    let background = Background::start()?;
    let locks = background.wait(crate::connect_with(url, configure))??;
    Ok(Locktopus { locks, background })
}

/// Locks on a backend that needs no connecting, such as one of your own.
///
/// ```
/// # use locktopus::{Locktopus, MemoryBackend, blocking};
/// # fn main() -> Result<(), blocking::BlockingError> {
/// let locks = blocking::build(Locktopus::builder(MemoryBackend::new()).namespace("shop:"))?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`BlockingError::Lock`] for impossible settings, [`BlockingError::Thread`],
/// [`BlockingError::InsideRuntime`].
pub fn build(builder: LocktopusBuilder) -> Result<Locktopus, BlockingError> {
    let background = Background::start()?;
    let locks = background.wait(async { builder.build() })??;
    Ok(Locktopus { locks, background })
}

/// Locks of one backend, for threads. Cheap to clone; clones share one background thread. See the
/// [module](super) for where you may use it.
#[derive(Debug, Clone)]
pub struct Locktopus {
    locks: crate::Locktopus,
    background: Arc<Background>,
}

impl Locktopus {
    /// The default lock. See [`crate::Locktopus::lock`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let guard = locks.lock("invoice:42").acquire()?;
    /// assert!(locks.lock("invoice:42").try_acquire()?.is_none());
    /// guard.release()?;
    /// # Ok(()) }
    /// ```
    pub fn lock(&self, name: impl Into<RawName>) -> LockRequest {
        self.request(self.locks.lock(name))
    }

    /// A lock that is granted in order of arrival. See [`crate::Locktopus::fair_lock`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// locks.fair_lock("printer").acquire()?.release()?;
    /// # Ok(()) }
    /// ```
    pub fn fair_lock(&self, name: impl Into<RawName>) -> LockRequest {
        self.request(self.locks.fair_lock(name))
    }

    /// A plain mutex. See [`crate::Locktopus::mutex`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// locks.mutex("invoice:42").acquire()?.release()?;
    /// # Ok(()) }
    /// ```
    pub fn mutex(&self, name: impl Into<RawName>) -> LockRequest {
        self.request(self.locks.mutex(name))
    }

    /// A plain mutex in the format of another library. See [`crate::Locktopus::mutex_as`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// use locktopus::MutexProfile;
    /// locks.mutex_as("invoice:42", MutexProfile::redis_py()).acquire()?.release()?;
    /// # Ok(()) }
    /// ```
    pub fn mutex_as(&self, name: impl Into<RawName>, profile: MutexProfile) -> LockRequest {
        self.request(self.locks.mutex_as(name, profile))
    }

    /// A read-write lock. See [`crate::Locktopus::rw_lock`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let reading = locks.rw_lock("prices").read().acquire()?;
    /// assert!(locks.rw_lock("prices").write().try_acquire()?.is_none());
    /// reading.release()?;
    /// # Ok(()) }
    /// ```
    pub fn rw_lock(&self, name: impl Into<RawName>) -> RwLock {
        RwLock::new(self.locks.rw_lock(name), &self.background)
    }

    /// A semaphore. See [`crate::Locktopus::semaphore`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let workers = locks.semaphore("workers");
    /// workers.initialise(3)?;
    /// workers.permits(2).acquire()?.release()?;
    /// # Ok(()) }
    /// ```
    pub fn semaphore(&self, name: impl Into<RawName>) -> Semaphore {
        Semaphore::new(self.locks.semaphore(name), &self.background)
    }

    /// A semaphore whose permits have ids. See [`crate::Locktopus::permit_semaphore`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let licences = locks.permit_semaphore("licences");
    /// licences.initialise(2)?;
    /// licences.permits(1).acquire()?.release()?;
    /// # Ok(()) }
    /// ```
    pub fn permit_semaphore(&self, name: impl Into<RawName>) -> Semaphore {
        Semaphore::new(self.locks.permit_semaphore(name), &self.background)
    }

    /// A rate limiter. See [`crate::Locktopus::rate_limiter`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let mails = locks.rate_limiter("mails");
    /// mails.initialise(100, Duration::from_secs(60))?;
    /// mails.acquire()?;
    /// # Ok(()) }
    /// ```
    pub fn rate_limiter(&self, name: impl Into<RawName>) -> RateLimiter {
        RateLimiter::new(self.locks.rate_limiter(name), &self.background)
    }

    /// A count-down latch. See [`crate::Locktopus::latch`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let shards = locks.latch("rebuild");
    /// shards.initialise(1)?;
    /// shards.count_down()?;
    /// shards.wait()?;
    /// # Ok(()) }
    /// ```
    pub fn latch(&self, name: impl Into<RawName>) -> Latch {
        Latch::new(self.locks.latch(name), &self.background)
    }

    /// The locks that this `Locktopus` and its clones hold. See [`crate::Locktopus::held_locks`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let _guard = locks.lock("invoice:42").acquire()?;
    /// assert_eq!(locks.held_locks().len(), 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn held_locks(&self) -> Vec<HeldLock> {
        self.locks.held_locks()
    }

    /// Looks up the labels of holders and waiters. See [`crate::Locktopus::who`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let _guard = locks.lock("invoice:42").acquire()?;
    /// let state = locks.lock("invoice:42").inspect()?;
    /// let who = locks.who(state.owners())?;
    /// assert!(who.of(&state.holders[0].owner).is_none()); // it has no label
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BlockingError::InsideRuntime`], and the backend's error.
    pub fn who<'a>(
        &self,
        owners: impl IntoIterator<Item = &'a OwnerId>,
    ) -> Result<KnownInstances, BlockingError> {
        Ok(self.background.wait(self.locks.who(owners))??)
    }

    /// The asynchronous locks behind it, for operations without a blocking call. Pass their futures
    /// to [`wait_for`](Self::wait_for).
    #[must_use]
    pub fn asynchronous(&self) -> &crate::Locktopus {
        &self.locks
    }

    /// Blocks until a future is done, such as one of the [asynchronous locks](Self::asynchronous).
    ///
    /// ```
    /// # use locktopus::blocking;
    /// # fn main() -> Result<(), blocking::BlockingError> {
    /// let locks = blocking::connect("memory:")?;
    /// let both = locks.asynchronous().multi(["a", "b"]);
    /// let guard = locks.wait_for(both.acquire())??;
    /// locks.wait_for(guard.release())?.expect("both were held to the end");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BlockingError::InsideRuntime`]; the future is then dropped.
    pub fn wait_for<F: Future>(&self, future: F) -> Result<F::Output, BlockingError> {
        self.background.wait(future)
    }

    /// Ends this `Locktopus` and all its clones; blocks for up to `grace` until every release under
    /// way is answered. See [`crate::Locktopus::shutdown`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let _guard = locks.lock("invoice:42").acquire()?;
    /// let report = locks.shutdown(Duration::from_secs(5))?;
    /// assert_eq!(report.abandoned, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BlockingError::InsideRuntime`]; nothing was shut down.
    pub fn shutdown(&self, grace: Duration) -> Result<ShutdownReport, BlockingError> {
        self.background.wait(self.locks.shutdown(grace))
    }

    fn request(&self, request: locktopus_core::LockRequest) -> LockRequest {
        LockRequest::new(request, &self.background)
    }
}
