//! Blocking read-write locks, semaphores, rate limiters and latches.

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{LockError, WriteGuard};

use super::error::BlockingError;
use super::request::LockRequest;
use super::runtime::Background;

/// Many readers or one writer. See [`crate::RwLock`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::blocking::connect("memory:")?;
/// let prices = locks.rw_lock("prices");
/// let reading = prices.read().acquire()?;
/// assert!(prices.write().try_acquire()?.is_none());
/// reading.release()?;
/// prices.write().acquire()?.release()?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a read-write lock does nothing until one half of it is acquired"]
pub struct RwLock {
    lock: locktopus_core::RwLock,
    background: Arc<Background>,
}

impl RwLock {
    pub(super) fn new(lock: locktopus_core::RwLock, background: &Arc<Background>) -> Self {
        let background = Arc::clone(background);
        Self { lock, background }
    }

    /// The readers' half.
    pub fn read(&self) -> LockRequest {
        LockRequest::new(self.lock.read(), &self.background)
    }

    /// The writer's half.
    pub fn write(&self) -> LockRequest<WriteGuard> {
        LockRequest::new(self.lock.write(), &self.background)
    }
}

/// Counted permits. See [`crate::Semaphore`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::blocking::connect("memory:")?;
/// let workers = locks.semaphore("workers");
/// workers.initialise(3)?;
/// let two = workers.permits(2).acquire()?;
/// assert_eq!(workers.available()?, Some(1));
/// two.release()?;
/// assert!(workers.delete()?);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a semaphore does nothing until permits are acquired or counted"]
pub struct Semaphore {
    semaphore: locktopus_core::Semaphore,
    background: Arc<Background>,
}

impl Semaphore {
    pub(super) fn new(semaphore: locktopus_core::Semaphore, background: &Arc<Background>) -> Self {
        let background = Arc::clone(background);
        Self {
            semaphore,
            background,
        }
    }

    /// Asks for this many permits together, all or none.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let workers = locks.semaphore("workers");
    /// workers.initialise(3)?;
    /// assert_eq!(workers.permits(2).acquire()?.permits(), 2);
    /// # Ok(()) }
    /// ```
    pub fn permits(&self, permits: u32) -> LockRequest {
        LockRequest::new(self.semaphore.permits(permits), &self.background)
    }

    /// Sets the number of permits, unless it is already set. Returns whether it changed anything.
    /// See [`crate::Semaphore::initialise`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let workers = locks.semaphore("workers");
    /// assert!(workers.initialise(3)?);
    /// assert!(!workers.initialise(5)?); // it has 3
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn initialise(&self, total: u32) -> Result<bool, BlockingError> {
        self.wait(self.semaphore.initialise(total))
    }

    /// How many permits are free. See [`crate::Semaphore::available`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn available(&self) -> Result<Option<i64>, BlockingError> {
        self.wait(self.semaphore.available())
    }

    /// Sets how many permits there are, and returns how many are free. See
    /// [`crate::Semaphore::resize`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let workers = locks.semaphore("workers");
    /// workers.initialise(3)?;
    /// assert_eq!(workers.resize(5)?, 5); // five are free
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn resize(&self, total: u32) -> Result<i64, BlockingError> {
        self.wait(self.semaphore.resize(total))
    }

    /// Deletes the semaphore. See [`crate::Semaphore::delete`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn delete(&self) -> Result<bool, BlockingError> {
        self.wait(self.semaphore.delete())
    }

    fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, LockError>>,
    ) -> Result<T, BlockingError> {
        Ok(self.background.wait(answer)??)
    }
}

/// A number of permits in a period. See [`crate::RateLimiter`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # let locks = locktopus::blocking::connect("memory:")?;
/// let mails = locks.rate_limiter("mails");
/// mails.initialise(3, Duration::from_secs(60))?;
/// mails.acquire()?;
/// mails.acquire_many(2)?;
/// assert!(!mails.try_acquire()?); // all three are spent
/// assert_eq!(mails.available()?, Some(0));
/// assert_eq!(mails.set_rate(5, Duration::from_secs(60))?, 2); // two are free
/// assert!(mails.delete()?);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a rate limiter does nothing until permits are acquired"]
pub struct RateLimiter {
    limiter: locktopus_core::RateLimiter,
    background: Arc<Background>,
}

impl RateLimiter {
    pub(super) fn new(limiter: locktopus_core::RateLimiter, background: &Arc<Background>) -> Self {
        let background = Arc::clone(background);
        Self {
            limiter,
            background,
        }
    }

    /// Gives up if the permits are not available within this time. See
    /// [`crate::RateLimiter::wait_at_most`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let mails = locks.rate_limiter("mails").wait_at_most(Duration::from_millis(20));
    /// mails.initialise(1, Duration::from_secs(60))?;
    /// mails.acquire()?;
    /// assert!(mails.acquire().is_err());
    /// # Ok(()) }
    /// ```
    pub fn wait_at_most(self, wait: Duration) -> Self {
        let limiter = self.limiter.wait_at_most(wait);
        Self { limiter, ..self }
    }

    /// Sets the rate, unless it is already set. Returns whether it changed anything. See
    /// [`crate::RateLimiter::initialise`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn initialise(&self, permits: u32, per: Duration) -> Result<bool, BlockingError> {
        self.wait(self.limiter.initialise(permits, per))
    }

    /// Changes the rate, or sets the first one. Returns how many permits are free. See
    /// [`crate::RateLimiter::set_rate`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn set_rate(&self, permits: u32, per: Duration) -> Result<i64, BlockingError> {
        self.wait(self.limiter.set_rate(permits, per))
    }

    /// Takes one permit; blocks until there is one. See [`crate::RateLimiter::acquire`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn acquire(&self) -> Result<(), BlockingError> {
        self.wait(self.limiter.acquire())
    }

    /// Takes this many permits together, all or none; blocks until there are enough. See
    /// [`crate::RateLimiter::acquire_many`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn acquire_many(&self, permits: u32) -> Result<(), BlockingError> {
        self.wait(self.limiter.acquire_many(permits))
    }

    /// Takes one permit if there is one right now; false otherwise. See
    /// [`crate::RateLimiter::try_acquire`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn try_acquire(&self) -> Result<bool, BlockingError> {
        self.wait(self.limiter.try_acquire())
    }

    /// How many permits are free. See [`crate::RateLimiter::available`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn available(&self) -> Result<Option<i64>, BlockingError> {
        self.wait(self.limiter.available())
    }

    /// Deletes the rate. See [`crate::RateLimiter::delete`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn delete(&self) -> Result<bool, BlockingError> {
        self.wait(self.limiter.delete())
    }

    fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, LockError>>,
    ) -> Result<T, BlockingError> {
        Ok(self.background.wait(answer)??)
    }
}

/// Waiting until something has happened a number of times. See [`crate::Latch`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::blocking::connect("memory:")?;
/// let shards = locks.latch("rebuild");
/// shards.initialise(2)?;
/// assert_eq!(shards.count_down()?, 1);
/// shards.count_down()?;
/// shards.wait()?;
/// assert_eq!(shards.count()?, 0);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a latch does nothing until it is counted or waited for"]
pub struct Latch {
    latch: locktopus_core::Latch,
    background: Arc<Background>,
}

impl Latch {
    pub(super) fn new(latch: locktopus_core::Latch, background: &Arc<Background>) -> Self {
        let background = Arc::clone(background);
        Self { latch, background }
    }

    /// Sets the count, unless there is one. Returns whether it did. See
    /// [`crate::Latch::initialise`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let shards = locks.latch("rebuild");
    /// assert!(shards.initialise(2)?);
    /// assert!(!shards.initialise(5)?); // it counts already
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn initialise(&self, count: u64) -> Result<bool, BlockingError> {
        self.wait_for(self.latch.initialise(count))
    }

    /// Counts down by one and returns what is left. See [`crate::Latch::count_down`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn count_down(&self) -> Result<u64, BlockingError> {
        self.wait_for(self.latch.count_down())
    }

    /// The count. See [`crate::Latch::count`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn count(&self) -> Result<u64, BlockingError> {
        self.wait_for(self.latch.count())
    }

    /// Blocks until the count is zero. See [`crate::Latch::wait`].
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`], [`BlockingError::InsideRuntime`].
    pub fn wait(&self) -> Result<(), BlockingError> {
        self.wait_for(self.latch.wait().into_future())
    }

    /// Blocks until the count is zero, for this long at most.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::blocking::connect("memory:")?;
    /// let shards = locks.latch("rebuild");
    /// shards.initialise(1)?;
    /// assert!(shards.wait_at_most(Duration::from_millis(20)).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BlockingError::Lock`] with [`LockError::WaitTimeout`] if the count is not zero by then;
    /// [`BlockingError::InsideRuntime`].
    pub fn wait_at_most(&self, wait: Duration) -> Result<(), BlockingError> {
        self.wait_for(self.latch.wait().at_most(wait).into_future())
    }

    fn wait_for<T>(
        &self,
        answer: impl Future<Output = Result<T, LockError>>,
    ) -> Result<T, BlockingError> {
        Ok(self.background.wait(answer)??)
    }
}
