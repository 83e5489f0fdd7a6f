//! Rate limiters: permits that are spent, and come back one period later.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::{CounterAction, LockKind, LockState, RawName};
use tokio_util::sync::CancellationToken;

use crate::engine::acquisition::Wait;
use crate::engine::error::LockError;
use crate::engine::holding::services::Services;
use crate::handles::guard::LockGuard;
use crate::handles::lock_request::{LockRequest, RequestName};
use crate::handles::locktopus::Locktopus;
use crate::handles::semaphore::{Semaphore, check_total};

/// A number of permits in a period, shared by all processes. Made by
/// [`Locktopus::rate_limiter`](crate::Locktopus::rate_limiter).
///
/// Set the rate first, with [`initialise`](Self::initialise) or [`set_rate`](Self::set_rate). Until
/// then requests fail at once. So does a request for more permits than there are
/// ([`LockError::too_few_permits`]).
///
/// A permit comes back one period after it was taken, by the backend's clock. So no period of that
/// length, wherever it begins, sees more permits than the rate allows. Nothing is held: there is no
/// guard, no lease to renew and nothing to release. Waiters queue, and get their permits in order
/// of arrival as soon as enough have come back.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use locktopus_core::Locktopus;
/// use locktopus_memory::MemoryBackend;
/// let locks = Locktopus::builder(MemoryBackend::new()).build()?;
/// let mails = locks.rate_limiter("mails");
/// mails.initialise(2, Duration::from_secs(60)).await?;
/// mails.acquire().await?;
/// mails.acquire().await?;
/// assert!(!mails.try_acquire().await?); // both are spent
/// mails.acquire().await?; // after a minute
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// All methods fail with [`LockError::Name`] and [`LockError::Option`] before anything is sent,
/// with [`LockError::ShutDown`] after a shutdown, and with [`LockError::Backend`] if the backend
/// refuses or cannot be reached for as long as
/// [`LocktopusBuilder::tolerate_outage`](crate::LocktopusBuilder::tolerate_outage) allows.
#[derive(Debug, Clone)]
#[must_use = "a rate limiter does nothing until permits are acquired"]
pub struct RateLimiter {
    services: Arc<Services>,
    permits: Semaphore,
    wait: Option<Duration>,
    cancel: Option<CancellationToken>,
}

impl Locktopus {
    /// A rate limiter: a number of permits in a period, shared by all processes.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let mails = locks.rate_limiter("mails");
    /// mails.initialise(100, std::time::Duration::from_secs(60)).await?; // only the first call sets it
    /// mails.acquire().await?; // the hundred and first waits
    /// # Ok(()) }
    /// ```
    pub fn rate_limiter(&self, name: impl Into<RawName>) -> RateLimiter {
        RateLimiter::new(Arc::clone(&self.services), RequestName::Given(name.into()))
    }
}

impl RateLimiter {
    pub(crate) fn new(services: Arc<Services>, name: RequestName) -> Self {
        let permits = Semaphore::new(Arc::clone(&services), name, LockKind::RateLimiter);
        Self {
            services,
            permits,
            wait: None,
            cancel: None,
        }
    }

    /// Gives up with [`LockError::WaitTimeout`] if the permits are not available within this time.
    /// See [`LockRequest::wait_at_most`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let mails = locks.rate_limiter("mails").wait_at_most(Duration::from_millis(20));
    /// mails.initialise(1, Duration::from_secs(60)).await?;
    /// mails.acquire().await?;
    /// assert!(mails.acquire().await.is_err_and(|error| error.is_busy()));
    /// # Ok(()) }
    /// ```
    pub fn wait_at_most(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Gives up with [`LockError::Cancelled`] when this token is cancelled. See
    /// [`LockRequest::cancel_on`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::{CancellationToken, LockError};
    /// let stop = CancellationToken::new();
    /// let mails = locks.rate_limiter("mails").cancel_on(stop.clone());
    /// mails.initialise(1, Duration::from_secs(60)).await?;
    /// mails.acquire().await?;
    /// stop.cancel();
    /// assert!(matches!(mails.acquire().await, Err(LockError::Cancelled { .. })));
    /// # Ok(()) }
    /// ```
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Sets the rate, unless it is already set: this many permits in each period. Returns whether
    /// it changed anything.
    ///
    /// The period is at least [`MIN_LEASE`](crate::MIN_LEASE), and at most the longest lease
    /// allowed; it is cut to whole milliseconds.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let mails = locks.rate_limiter("mails");
    /// assert!(mails.initialise(100, Duration::from_secs(60)).await?);
    /// assert!(!mails.initialise(5, Duration::from_secs(1)).await?); // it has 100 a minute
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [above](Self#errors). [`LockError::Option`] if the period is out of bounds, or for more
    /// than [`MAX_SEMAPHORE_PERMITS`](crate::MAX_SEMAPHORE_PERMITS) permits.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, this may or may not have happened. Repeating it does no harm.
    pub async fn initialise(&self, permits: u32, per: Duration) -> Result<bool, LockError> {
        Ok(self.rate(permits, per, true).await?.1)
    }

    /// Changes the rate, or sets the first one. Returns how many permits are free, before waiters
    /// take theirs; negative if more were taken in the last period than the new rate allows.
    ///
    /// Permits taken earlier come back when they would have, but no later than one new period from
    /// now.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let mails = locks.rate_limiter("mails");
    /// assert_eq!(mails.set_rate(10, Duration::from_secs(60)).await?, 10);
    /// mails.acquire_many(4).await?;
    /// assert_eq!(mails.set_rate(3, Duration::from_secs(60)).await?, -1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`initialise`](Self::initialise).
    ///
    /// # Cancel safety
    ///
    /// As [`initialise`](Self::initialise).
    pub async fn set_rate(&self, permits: u32, per: Duration) -> Result<i64, LockError> {
        Ok(self.rate(permits, per, false).await?.0.unwrap_or_default())
    }

    /// Takes one permit, waiting for it if necessary.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let mails = locks.rate_limiter("mails");
    /// mails.initialise(100, Duration::from_secs(60)).await?;
    /// mails.acquire().await?;
    /// println!("may send one");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [above](Self#errors); [`LockError::WaitTimeout`] and [`LockError::Cancelled`] if you set
    /// those options.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a waiter whose future is dropped leaves the queue, and permits that an attempt
    /// under way still takes are given back in the background. A permit is spent once this has
    /// returned.
    pub async fn acquire(&self) -> Result<(), LockError> {
        self.acquire_many(1).await
    }

    /// Takes this many permits together, all or none: between 1 and
    /// [`MAX_PERMITS`](crate::MAX_PERMITS). See [`acquire`](Self::acquire).
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let mails = locks.rate_limiter("mails");
    /// mails.initialise(100, Duration::from_secs(60)).await?;
    /// mails.acquire_many(30).await?;
    /// assert_eq!(mails.available().await?, Some(70));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_many(&self, permits: u32) -> Result<(), LockError> {
        let wait = self.wait.map_or(Wait::Forever, Wait::at_most);
        self.request(permits).spend(wait).await.map(|_| ())
    }

    /// Takes one permit if there is one right now and no waiter is ahead; false otherwise.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let mails = locks.rate_limiter("mails");
    /// mails.initialise(1, Duration::from_secs(60)).await?;
    /// assert!(mails.try_acquire().await?);
    /// assert!(!mails.try_acquire().await?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [above](Self#errors), except that an unreachable backend is an error at once.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<bool, LockError> {
        self.request(1).spend(Wait::Not).await
    }

    /// How many permits are free. Negative after a lower rate was [set](Self::set_rate); `None` if
    /// no rate was set.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// assert_eq!(locks.rate_limiter("mails").available().await?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [above](Self#errors).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; reads only.
    pub async fn available(&self) -> Result<Option<i64>, LockError> {
        self.permits.available().await
    }

    /// Deletes the rate and the record of permits taken. Returns whether there was a rate. New
    /// requests then fail, and so do waiters at their next check.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// assert!(!locks.rate_limiter("mails").delete().await?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [above](Self#errors).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, this may or may not have happened.
    pub async fn delete(&self) -> Result<bool, LockError> {
        self.permits.delete().await
    }

    /// Reads which permits are spent and when they come back, the waiters, and how many are free.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let mails = locks.rate_limiter("mails");
    /// mails.initialise(9, Duration::from_secs(60)).await?;
    /// mails.acquire_many(2).await?;
    /// let state = mails.inspect().await?;
    /// assert_eq!((state.holders.len(), state.available), (1, Some(7)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Name`] and [`LockError::Backend`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; reads only.
    pub async fn inspect(&self) -> Result<LockState, LockError> {
        self.permits.inspect().await
    }

    fn request(&self, permits: u32) -> LockRequest<LockGuard> {
        let mut request = self.permits.permits(permits);
        if let Some(token) = &self.cancel {
            request = request.cancel_on(token.clone());
        }
        request
    }

    /// Returns how many are free afterwards, and whether the rate changed.
    async fn rate(
        &self,
        permits: u32,
        per: Duration,
        keep: bool,
    ) -> Result<(Option<i64>, bool), LockError> {
        let permits = check_total("permits", permits)?;
        let per = self.services.settings.check_lease("per", per);
        let per = per.map_err(|mut error| {
            error.rule = error.rule.replace("a lease", "a period");
            error
        })?;
        let action = CounterAction::Rate { permits, per, keep };
        let outcome = self.permits.count(action).await?;
        Ok((outcome.value, outcome.changed))
    }
}
