//! Several locks at once, on one backend or several: all or nothing.
//!
//! | module | what it does |
//! |---|---|
//! | `set` | which locks, each once, and their order |
//! | `collect`, `group` | acquiring them, those of one group by one request |
//! | `owner_holds` | which of them the owner already holds |
//! | `guard` | holding them, and losing them together |

mod acquired_member;
mod collect;
mod group;
mod guard;
mod owner_holds;
mod set;

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use guard::{MemberName, MultiGuard, MultiReleaseError};

use crate::engine::acquisition::Wait;
use crate::engine::error::LockError;
use crate::handles::any_guard::AnyGuard;
use crate::handles::lock_request::{LockRequest, WaitLimit};

/// A request for several locks, all or nothing. Awaiting it is [`acquire`](Self::acquire).
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # use locktopus_core::{Locktopus, MultiLock};
/// # use locktopus_memory::MemoryBackend;
/// # let (here, there) = (MemoryBackend::new(), MemoryBackend::new());
/// let locks = Locktopus::builder(here).build()?;
/// let both = locks.multi(["account:1", "account:2"]).wait_at_most(Duration::from_secs(5)).acquire().await?;
/// both.ensure_valid()?;
/// assert_eq!(both.tokens().len(), 2);
/// both.release().await?;
///
/// // Locks of different kinds and backends. Every process must use the same labels.
/// let other = Locktopus::builder(there).build()?;
/// let guard = MultiLock::new()
///     .add_on("accounts", locks.lock("account:1"))
///     .add_on("stock", other.rw_lock("shelf:9").write())
///     .acquire()
///     .await?;
/// guard.release().await?;
/// # Ok(()) }
/// ```
///
/// # Order
///
/// Every process takes the locks in the same order, so that no two of them wait for each other. The
/// order is by backend, then by [group](crate::Groups::group) of the backend, then by name.
/// Backends are ordered by their labels, or without labels by their
/// [descriptions](crate::BackendInfo::description). A process that labels the same backend
/// differently, or reaches it by another client without labels, breaks the order; then only wait
/// limits end a deadlock. The same goes for a task that holds other locks while it waits for these.
///
/// Locks of one group are taken by one request: on Redis the `lock`s and `mutex`es of one hash
/// slot, and without a cluster all of them. Other kinds are taken one by one. If one lock of a
/// group is held, none of the group is taken until that one is free. A group that keeps failing is
/// taken lock by lock.
///
/// # Each lock once
///
/// A lock that is requested twice is taken once, with the options of the first request. A name
/// requested for reading and for writing is taken for writing. Some sets are refused: one name as
/// two kinds that do not exclude each other, permits of one semaphore twice, and two names that are
/// [one key](crate::LockTarget::key) because a profile adds a prefix to one of them.
///
/// # Owners
///
/// In the [scope](crate::Owner::scope) of an owner the locks belong to that owner. If it already
/// holds one of them, the request fails at once with [`LockError::NotReentrant`], because it would
/// wait for itself. Once taken, each lock can be entered again by the owner as a single lock.
///
/// # Options
///
/// Each request keeps its lease, renewal, maximum hold time (counted from when that lock is taken)
/// and strategy. Wait limits of single requests are ignored. Together the locks are valid as long
/// as the first of them to expire, and when one is lost, the others are released.
#[must_use = "a lock request does nothing until `acquire` or `try_acquire` is awaited"]
#[derive(Default)]
pub struct MultiLock {
    /// The first request that could not be added; reported when the locks are acquired.
    refused: Option<LockError>,
    wanted: Vec<set::Wanted>,
    wait: Option<WaitLimit>,
    cancel: Option<CancellationToken>,
}

impl MultiLock {
    /// A request without locks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a lock.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::MultiLock;
    /// let both = MultiLock::new().add(locks.lock("account:1")).add(locks.mutex("audit")).acquire().await?;
    /// assert_eq!(both.members().count(), 2);
    /// both.release().await?;
    /// # Ok(()) }
    /// ```
    #[expect(
        clippy::should_implement_trait,
        reason = "nobody adds locks with a plus sign"
    )]
    pub fn add<G: AnyGuard>(self, request: LockRequest<G>) -> Self {
        self.push(None, request)
    }

    /// Adds a lock of a backend with this label. Every process that takes locks of this backend
    /// together with locks of other backends must use the same label.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::MultiLock;
    /// let other = locktopus::connect("memory:").await?;
    /// let both = MultiLock::new()
    ///     .add_on("accounts", locks.lock("account:1")) // the same labels in every process
    ///     .add_on("stock", other.lock("shelf:9"))
    ///     .acquire()
    ///     .await?;
    /// both.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn add_on<G: AnyGuard>(self, backend: impl Into<String>, request: LockRequest<G>) -> Self {
        self.push(Some(backend.into()), request)
    }

    fn push<G: AnyGuard>(mut self, label: Option<String>, request: LockRequest<G>) -> Self {
        match request.for_many() {
            Ok(request) => self.wanted.push(set::Wanted { label, request }),
            Err(error) => self.refused = self.refused.or(Some(error)),
        }
        self
    }

    /// Holds all locks added so far for this long at most. See [`LockRequest::fixed_lease`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let both = locks.multi(["account:1", "account:2"]).fixed_lease(Duration::from_secs(5)).acquire().await?;
    /// assert!(both.remaining() <= Duration::from_secs(5));
    /// both.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn fixed_lease(self, lease: Duration) -> Self {
        self.each(|request| request.fixed_lease(lease))
    }

    /// Holds all locks added so far until they are released, by renewed leases. See
    /// [`LockRequest::renewed_lease`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let both = locks.multi(["account:1", "account:2"]).renewed_lease(Duration::from_secs(6));
    /// both.acquire().await?.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn renewed_lease(self, lease: Duration) -> Self {
        self.each(|request| request.renewed_lease(lease))
    }

    /// Keeps all locks added so far held for this long after all of them were taken, even if they
    /// are released sooner. See [`LockRequest::hold_at_least`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let both = locks.multi(["report", "export"]).hold_at_least(Duration::from_secs(20));
    /// both.acquire().await?.release().await?;
    /// assert!(locks.lock("export").try_acquire().await?.is_none()); // for 20 s from when it was taken
    /// # Ok(()) }
    /// ```
    pub fn hold_at_least(self, time: Duration) -> Self {
        self.each(|request| request.hold_at_least(time))
    }

    fn each(mut self, change: impl Fn(LockRequest) -> LockRequest) -> Self {
        for wanted in &mut self.wanted {
            wanted.request = change(wanted.request.clone());
        }
        self
    }

    /// Gives up with [`LockError::WaitTimeout`] if not all of them could be taken within this time.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let _held = locks.lock("account:2").acquire().await?;
    /// let both = locks.multi(["account:1", "account:2"]).wait_at_most(Duration::from_millis(20));
    /// assert!(both.acquire().await.is_err_and(|error| error.is_busy()));
    /// # Ok(()) }
    /// ```
    pub fn wait_at_most(mut self, wait: Duration) -> Self {
        self.wait = Some(WaitLimit::AtMost(wait));
        self
    }

    /// Gives up with [`LockError::WaitTimeout`] if not all of them could be taken by this time. See
    /// [`LockRequest::wait_until`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// use tokio::time::Instant;
    /// let _held = locks.lock("account:2").acquire().await?;
    /// let deadline = Instant::now() + Duration::from_millis(20);
    /// let both = locks.multi(["account:1", "account:2"]).wait_until(deadline);
    /// assert!(both.acquire().await.is_err_and(|error| error.is_busy()));
    /// # Ok(()) }
    /// ```
    pub fn wait_until(mut self, deadline: Instant) -> Self {
        self.wait = Some(WaitLimit::Until(deadline));
        self
    }

    /// Gives up with [`LockError::Cancelled`] when this token is cancelled. Locks that are already
    /// held are not affected.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::{CancellationToken, LockError};
    /// let _held = locks.lock("account:2").acquire().await?;
    /// let stop = CancellationToken::new();
    /// let both = locks.multi(["account:1", "account:2"]).cancel_on(stop.clone());
    /// let waiting = tokio::spawn(both.acquire());
    /// stop.cancel();
    /// assert!(matches!(waiting.await?, Err(LockError::Cancelled { .. })));
    /// # Ok(()) }
    /// ```
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Takes all locks, waiting for them if necessary.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let both = locks.multi(["account:1", "account:2"]).acquire().await?;
    /// both.ensure_valid()?;
    /// both.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`LockRequest::acquire`]; [`LockError::NotReentrant`] or [`LockError::UpgradeRefused`] if
    /// the owner in whose scope this is awaited holds one of them; [`LockError::Option`] if the
    /// locks cannot be combined. After an error none is held: the locks taken so far are released
    /// in the background, even one that a request without an answer may have taken.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future leaves no lock, no waiter and no task behind.
    pub async fn acquire(self) -> Result<MultiGuard, LockError> {
        let wait = self.wait.map_or(Wait::Forever, WaitLimit::to_wait);
        let taken = self.collect(wait).await?;
        // Only `Wait::Not` can end without locks and without an error.
        taken.map(MultiGuard::new).ok_or(LockError::ShutDown)
    }

    /// Takes all locks if they are free right now; `None` if any of them is held. Never waits for
    /// one while it holds another.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let held = locks.lock("account:2").acquire().await?;
    /// assert!(locks.multi(["account:1", "account:2"]).try_acquire().await?.is_none());
    /// held.release().await?;
    /// assert!(locks.multi(["account:1", "account:2"]).try_acquire().await?.is_some());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), except that an unreachable backend is an error at once.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe, as [`acquire`](Self::acquire).
    pub async fn try_acquire(self) -> Result<Option<MultiGuard>, LockError> {
        let taken = self.collect(Wait::Not).await?;
        Ok(taken.map(MultiGuard::new))
    }

    async fn collect(
        self,
        wait: Wait,
    ) -> Result<Option<Vec<acquired_member::AcquiredMember>>, LockError> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        let units = set::units(self.wanted)?;
        collect::collect(&units, wait, self.cancel).await
    }
}

impl IntoFuture for MultiLock {
    type Output = Result<MultiGuard, LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquire())
    }
}

impl fmt::Debug for MultiLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests: Vec<_> = self.wanted.iter().map(|wanted| &wanted.request).collect();
        f.debug_struct("MultiLock")
            .field("requests", &requests)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}
