//! Count-down latches: waiting until something has happened a number of times.

mod wait;

use std::sync::Arc;

use locktopus_contract::{CounterAction, CounterOutcome, LockKind, OptionError, TOKEN_LIMIT};
pub use wait::LatchWait;

use crate::engine::error::LockError;
use crate::engine::holding::services::Services;
use crate::handles::lock_request::RequestName;

/// A count that tasks wait for to reach zero. Made by
/// [`Locktopus::latch`](crate::Locktopus::latch). On Redis it is Redisson's `RCountDownLatch`.
///
/// A latch without a count is open: waiting for it ends at once. So set the count before any task
/// can wait for it. At zero the count is deleted, and you may use the latch again with a new one. A
/// waiter that had not noticed the zero by then also waits for the new count.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use locktopus_core::Locktopus;
/// use locktopus_memory::MemoryBackend;
/// let locks = Locktopus::builder(MemoryBackend::new()).build()?;
/// let shards = locks.latch("rebuild");
/// shards.initialise(2).await?;
/// for _ in 0..2 {
///     let shards = shards.clone();
///     tokio::spawn(async move { shards.count_down().await });
/// }
/// shards.wait().at_most(Duration::from_secs(5)).await?;
/// assert_eq!(shards.count().await?, 0);
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
#[must_use = "a latch does nothing until it is counted or waited for"]
pub struct Latch {
    services: Arc<Services>,
    name: RequestName,
}

impl Latch {
    pub(crate) fn new(services: Arc<Services>, name: RequestName) -> Self {
        Self { services, name }
    }

    /// Sets the count, at least 1, unless there is one. Returns whether it did.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let shards = locks.latch("rebuild");
    /// assert!(shards.initialise(2).await?);
    /// assert!(!shards.initialise(5).await?); // it counts already
    /// assert_eq!(shards.count().await?, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [above](Self#errors). Zero, and 2^53 or more, are [`LockError::Option`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, this may or may not have happened. Repeating it does no harm while
    /// the count is not zero.
    pub async fn initialise(&self, count: u64) -> Result<bool, LockError> {
        if !(1..TOKEN_LIMIT).contains(&count) {
            let rule = "a latch counts from at least 1 and less than 2^53";
            return Err(OptionError::new("initialise", count, rule).into());
        }
        Ok(self.change(CounterAction::Initialise(count)).await?.changed)
    }

    /// Counts down by one and returns what is left. At zero all waiters continue. Counting down an
    /// open latch does nothing.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let shards = locks.latch("rebuild");
    /// shards.initialise(2).await?;
    /// assert_eq!(shards.count_down().await?, 1);
    /// assert_eq!(shards.count_down().await?, 0); // waiters continue
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [above](Self#errors).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, this may or may not have happened. Repeating it would count twice.
    pub async fn count_down(&self) -> Result<u64, LockError> {
        Ok(left(self.change(CounterAction::CountDown).await?))
    }

    /// The count that is left; zero if the latch is open.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let shards = locks.latch("rebuild");
    /// assert_eq!(shards.count().await?, 0); // open, because no count is set
    /// shards.initialise(2).await?;
    /// assert_eq!(shards.count().await?, 2);
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
    pub async fn count(&self) -> Result<u64, LockError> {
        Ok(left(self.change(CounterAction::Read).await?))
    }

    /// Deletes the count. Returns whether there was one. The latch is then open, but waiters may
    /// notice it only at their next heartbeat.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let shards = locks.latch("rebuild");
    /// shards.initialise(2).await?;
    /// assert!(shards.delete().await?);
    /// shards.wait().await?; // open
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [above](Self#errors).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, this may or may not have happened. Repeating it does no harm.
    pub async fn delete(&self) -> Result<bool, LockError> {
        Ok(self.change(CounterAction::Delete).await?.changed)
    }

    /// Waits until the count is zero. Nothing happens until the result is awaited.
    pub fn wait(&self) -> LatchWait {
        LatchWait::new(self.clone())
    }

    async fn change(&self, action: CounterAction) -> Result<CounterOutcome, LockError> {
        let target = self.name.target(&self.services, &LockKind::Latch)?;
        self.services.count(target, action).await
    }
}

fn left(outcome: CounterOutcome) -> u64 {
    let count = outcome.value.unwrap_or_default();
    u64::try_from(count).unwrap_or_default()
}
