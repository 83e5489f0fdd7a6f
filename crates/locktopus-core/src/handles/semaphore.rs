//! Semaphores: counted permits.

use std::sync::Arc;

use locktopus_contract::{
    CounterAction, CounterOutcome, LockKind, LockState, OptionError, TooFewPermits,
};

use crate::engine::error::LockError;
use crate::engine::holding::services::Services;
use crate::handles::lock_request::{LockRequest, RequestName};

/// The most permits that a semaphore can have: 2^31 - 1, the limit of other libraries.
pub const MAX_SEMAPHORE_PERMITS: u32 = i32::MAX as u32;

/// A shared number of permits. Made by [`Locktopus::semaphore`](crate::Locktopus::semaphore) and
/// [`Locktopus::permit_semaphore`](crate::Locktopus::permit_semaphore). On Redis they are
/// Redisson's `RSemaphore` and `RPermitExpirableSemaphore`.
///
/// Set the number of permits first, with [`initialise`](Self::initialise) or
/// [`resize`](Self::resize). Until then requests fail at once. So does a request for more permits
/// than there are in all, free, held and drained ([`LockError::too_few_permits`]). To make requests
/// wait, [`drain`](Self::drain) the semaphore.
///
/// In both kinds, permits are held by a lease, like locks: renewed by the watchdog while the guard
/// lives, or [for a fixed time](LockRequest::fixed_lease). Permits of a crashed holder come back
/// when its lease ends, by the backend's clock. Waiters are served in order of arrival, so small
/// requests cannot starve a large one. Permits belong to their guard; [owners](crate::Owner) are
/// ignored.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use locktopus_core::Locktopus;
/// use locktopus_memory::MemoryBackend;
/// let locks = Locktopus::builder(MemoryBackend::new()).build()?;
/// let workers = locks.semaphore("workers");
/// workers.initialise(3).await?;
/// let two = workers.permits(2).acquire().await?;
/// assert_eq!(workers.available().await?, Some(1));
/// assert!(workers.permits(2).try_acquire().await?.is_none());
/// two.release().await?;
/// assert_eq!(workers.available().await?, Some(3));
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// All methods fail with [`LockError::Name`] and [`LockError::Option`] before anything is sent,
/// with [`LockError::ShutDown`] after a shutdown, and with [`LockError::Backend`] if the backend
/// refuses or cannot be reached for as long as
/// [`LocktopusBuilder::tolerate_outage`](crate::LocktopusBuilder::tolerate_outage) allows. An
/// operation that may have run is repeated under the same id, so it takes effect only once.
#[derive(Debug, Clone)]
#[must_use = "a semaphore does nothing until permits are acquired or counted"]
pub struct Semaphore {
    services: Arc<Services>,
    name: RequestName,
    kind: LockKind,
}

impl Semaphore {
    pub(crate) fn new(services: Arc<Services>, name: RequestName, kind: LockKind) -> Self {
        Self {
            services,
            name,
            kind,
        }
    }

    /// Asks for this many permits together, all or none: between 1 and
    /// [`MAX_PERMITS`](crate::MAX_PERMITS).
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let workers = locks.semaphore("workers");
    /// workers.initialise(3).await?;
    /// let two = workers.permits(2).acquire().await?;
    /// assert_eq!(two.permits(), 2);
    /// assert!(workers.permits(2).try_acquire().await?.is_none()); // one is not enough
    /// two.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn permits(&self, permits: u32) -> LockRequest {
        let (services, name) = (Arc::clone(&self.services), self.name.clone());
        LockRequest::new(services, name, self.kind.clone()).permits(permits)
    }

    /// How many permits are free. Negative after a [`resize`](Self::resize) to less than are held;
    /// `None` if the number was never set.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let workers = locks.semaphore("workers");
    /// assert_eq!(workers.available().await?, None);
    /// workers.initialise(3).await?;
    /// assert_eq!(workers.available().await?, Some(3));
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
        Ok(self.count(CounterAction::Read).await?.value)
    }

    /// Sets the number of permits, unless it is already set. Returns whether it changed anything.
    /// If the number was lost while permits are held (the key was deleted), those permits are part
    /// of the new number.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let workers = locks.semaphore("workers");
    /// assert!(workers.initialise(3).await?);
    /// assert!(!workers.initialise(5).await?); // it has 3
    /// assert_eq!(workers.available().await?, Some(3));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [above](Self#errors). More than [`MAX_SEMAPHORE_PERMITS`] is [`LockError::Option`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, this may or may not have happened. Repeating it does no harm.
    pub async fn initialise(&self, total: u32) -> Result<bool, LockError> {
        let total = check_total("initialise", total)?;
        Ok(self.count(CounterAction::Initialise(total)).await?.changed)
    }

    /// Sets how many permits there are in all, free and held. Returns how many are free, before
    /// waiters take theirs. No holder loses a permit: if more are held, the number of free ones is
    /// negative until enough have come back.
    ///
    /// The record does not include permits of a plain semaphore that Redisson clients hold, so they
    /// are not counted at all: with four of them out, a resize to ten leaves ten free ones.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let workers = locks.semaphore("workers");
    /// workers.initialise(3).await?;
    /// let all = workers.permits(3).acquire().await?;
    /// assert_eq!(workers.resize(2).await?, -1); // no holder loses one
    /// all.release().await?;
    /// assert_eq!(workers.available().await?, Some(2));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [above](Self#errors). More than [`MAX_SEMAPHORE_PERMITS`] is [`LockError::Option`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, this may or may not have happened. Repeating it does no harm.
    pub async fn resize(&self, total: u32) -> Result<i64, LockError> {
        let total = check_total("resize", total)?;
        let outcome = self.count(CounterAction::Resize(total)).await?;
        Ok(outcome.value.unwrap_or_default())
    }

    /// Adds free permits, or takes some away if `more` is negative. Returns how many are free,
    /// before waiters take theirs.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let workers = locks.semaphore("workers");
    /// workers.initialise(3).await?;
    /// assert_eq!(workers.add(2).await?, 5);
    /// assert_eq!(workers.add(-4).await?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [above](Self#errors).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, this may or may not have happened. Repeating it would add twice.
    pub async fn add(&self, more: i32) -> Result<i64, LockError> {
        let outcome = self.count(CounterAction::Add(more.into())).await?;
        Ok(outcome.value.unwrap_or_default())
    }

    /// Takes all free permits out of the semaphore and returns how many, [`u32::MAX`] if more. No
    /// guard holds them and they do not come back until [`add`](Self::add) returns them; requests
    /// wait until then. Takes none while a quarantine
    /// ([`SafetyMode::Quarantine`](crate::SafetyMode::Quarantine)) holds free permits back.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let workers = locks.semaphore("workers");
    /// workers.initialise(3).await?;
    /// let taken = workers.drain().await?; // no new work begins
    /// assert_eq!((taken, workers.available().await?), (3, Some(0)));
    /// workers.add(taken.try_into()?).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [above](Self#errors).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, this may or may not have happened, and the number taken is
    /// unknown.
    pub async fn drain(&self) -> Result<u32, LockError> {
        let taken = self.count(CounterAction::Drain).await?.value;
        let taken = taken.unwrap_or_default().max(0);
        Ok(u32::try_from(taken).unwrap_or(u32::MAX))
    }

    /// Deletes the number of permits and the record of their holders. Returns whether there was a
    /// number.
    ///
    /// New requests then fail, and so do waiters at their next heartbeat. Holders learn at their
    /// next renewal that their permits are lost, and releasing them changes nothing. If the limit
    /// must not be exceeded, wait for that before you initialise the semaphore again.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let workers = locks.semaphore("workers");
    /// assert!(!workers.delete().await?);
    /// workers.initialise(3).await?;
    /// assert!(workers.delete().await?);
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
        Ok(self.count(CounterAction::Delete).await?.changed)
    }

    /// Reads the holders, the waiters and the number of free permits. See [`LockRequest::inspect`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let workers = locks.semaphore("workers");
    /// workers.initialise(3).await?;
    /// let _two = workers.permits(2).acquire().await?;
    /// let state = workers.inspect().await?;
    /// assert_eq!((state.holders.len(), state.available), (1, Some(1)));
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
        self.permits(1).inspect().await
    }

    pub(crate) async fn count(&self, action: CounterAction) -> Result<CounterOutcome, LockError> {
        let target = self.name.target(&self.services, &self.kind)?;
        self.services.count(target, action).await
    }
}

pub(crate) fn check_total(option: &'static str, total: u32) -> Result<u64, OptionError> {
    if total > MAX_SEMAPHORE_PERMITS {
        let rule = format!("a semaphore has at most {MAX_SEMAPHORE_PERMITS} permits");
        return Err(OptionError::new(option, total, rule));
    }
    Ok(total.into())
}

impl LockError {
    /// How many permits the semaphore has, if the request asked for more.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let error = locks.semaphore("workers").permits(1).acquire().await.unwrap_err();
    /// assert_eq!(error.too_few_permits().map(|too_few| too_few.total), Some(None)); // never set
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn too_few_permits(&self) -> Option<&TooFewPermits> {
        std::error::Error::source(self.backend_error()?)?.downcast_ref()
    }
}
