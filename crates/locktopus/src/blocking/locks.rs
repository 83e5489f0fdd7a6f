//! The entry point for those who block.

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{
    HeldLock, LocktopusBuilder, MutexProfile, OwnerId, RawName, ShutdownReport, Who,
};

use super::counted::{Latch, RwLock, Semaphore};
use super::error::BlockingError;
use super::request::LockRequest;
use super::runtime::Background;

/// Connects to the place that a URL names, as [`crate::connect`] does, and starts the background thread.
///
/// # Errors
///
/// [`BlockingError::Connect`], [`BlockingError::Thread`], [`BlockingError::InsideRuntime`].
pub fn connect(url: &str) -> Result<Locktopus, BlockingError> {
    connect_with(url, |builder| builder)
}

/// As [`connect`], with a say in how locks behave. Settings in the URL are applied first.
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
    url: &str,
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
/// [`BlockingError::Lock`] for impossible settings, [`BlockingError::Thread`], [`BlockingError::InsideRuntime`].
pub fn build(builder: LocktopusBuilder) -> Result<Locktopus, BlockingError> {
    let background = Background::start()?;
    let locks = background.wait(async { builder.build() })??;
    Ok(Locktopus { locks, background })
}

/// Locks of one backend, for threads. Cheap to clone; clones share one background thread. See the
/// [module](super) for where it may be used.
#[derive(Debug, Clone)]
pub struct Locktopus {
    locks: crate::Locktopus,
    background: Arc<Background>,
}

impl Locktopus {
    /// The default lock. See [`crate::Locktopus::lock`].
    pub fn lock(&self, name: impl Into<RawName>) -> LockRequest {
        self.request(self.locks.lock(name))
    }

    /// A lock that is granted in order of arrival. See [`crate::Locktopus::fair_lock`].
    pub fn fair_lock(&self, name: impl Into<RawName>) -> LockRequest {
        self.request(self.locks.fair_lock(name))
    }

    /// A plain mutex. See [`crate::Locktopus::mutex`].
    pub fn mutex(&self, name: impl Into<RawName>) -> LockRequest {
        self.request(self.locks.mutex(name))
    }

    /// A plain mutex laid out as another library expects it. See [`crate::Locktopus::mutex_as`].
    pub fn mutex_as(&self, name: impl Into<RawName>, profile: MutexProfile) -> LockRequest {
        self.request(self.locks.mutex_as(name, profile))
    }

    /// A read-write lock. See [`crate::Locktopus::rw_lock`].
    pub fn rw_lock(&self, name: impl Into<RawName>) -> RwLock {
        RwLock::new(self.locks.rw_lock(name), &self.background)
    }

    /// A semaphore. See [`crate::Locktopus::semaphore`].
    pub fn semaphore(&self, name: impl Into<RawName>) -> Semaphore {
        Semaphore::new(self.locks.semaphore(name), &self.background)
    }

    /// A semaphore each of whose permits has an id. See [`crate::Locktopus::permit_semaphore`].
    pub fn permit_semaphore(&self, name: impl Into<RawName>) -> Semaphore {
        Semaphore::new(self.locks.permit_semaphore(name), &self.background)
    }

    /// A count-down latch. See [`crate::Locktopus::latch`].
    pub fn latch(&self, name: impl Into<RawName>) -> Latch {
        Latch::new(self.locks.latch(name), &self.background)
    }

    /// The locks that this `Locktopus` and its clones hold. See [`crate::Locktopus::held_locks`].
    #[must_use]
    pub fn held_locks(&self) -> Vec<HeldLock> {
        self.locks.held_locks()
    }

    /// Looks up what the labels of holders and waiters say. See [`crate::Locktopus::who`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::InsideRuntime`], and what the backend says.
    pub fn who<'a>(
        &self,
        owners: impl IntoIterator<Item = &'a OwnerId>,
    ) -> Result<Who, BlockingError> {
        Ok(self.background.wait(self.locks.who(owners))??)
    }

    /// The asynchronous locks behind it, for what has no blocking call. Their futures belong into
    /// [`wait_for`](Self::wait_for).
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
    /// [`BlockingError::InsideRuntime`]; the future is dropped then.
    pub fn wait_for<F: Future>(&self, future: F) -> Result<F::Output, BlockingError> {
        self.background.wait(future)
    }

    /// Ends this `Locktopus` and all its clones; blocks for up to `grace` until every release under way is answered. See
    /// [`crate::Locktopus::shutdown`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::InsideRuntime`]; nothing was ended.
    pub fn shutdown(&self, grace: Duration) -> Result<ShutdownReport, BlockingError> {
        self.background.wait(self.locks.shutdown(grace))
    }

    fn request(&self, request: locktopus_core::LockRequest) -> LockRequest {
        LockRequest::new(request, &self.background)
    }
}
