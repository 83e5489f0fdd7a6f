//! The options of a request.

use std::time::Duration;

use locktopus_contract::TokenRetention;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::LockRequest;
use crate::engine::acquisition::Wait;
use crate::engine::settings::WaitStrategy;
use crate::engine::wait_progress::{ProgressReporter, WaitProgress};
use crate::handles::any_guard::AnyGuard;
use crate::handles::owner_handle::Owner;

/// Everything a request sets besides its name and kind. All of it is optional.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestOptions {
    pub(super) fixed_lease: Option<Duration>,
    pub(super) renewed_lease: Option<Duration>,
    pub(super) max_hold: Option<Duration>,
    /// Zero: the lock is free as soon as it is released.
    pub(super) hold_at_least: Duration,
    pub(super) lease_cache: Option<Duration>,
    pub(super) wait: Option<WaitLimit>,
    pub(super) strategy: Option<WaitStrategy>,
    pub(super) cancel: Option<CancellationToken>,
    pub(super) owner: Option<Owner>,
    pub(super) token_retention: Option<TokenRetention>,
    pub(super) progress: Option<ProgressReporter>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum WaitLimit {
    AtMost(Duration),
    Until(Instant),
}

impl WaitLimit {
    pub(crate) fn to_wait(self) -> Wait {
        Wait::at_most(match self {
            Self::AtMost(limit) => limit,
            Self::Until(end) => end.saturating_duration_since(Instant::now()),
        })
    }
}

impl<G: AnyGuard> LockRequest<G> {
    /// Holds the lock for this long at most: the watchdog does not renew it. At least
    /// [`MIN_LEASE`](crate::MIN_LEASE), at most the configured maximum; cut to whole milliseconds.
    ///
    /// If an [owner](Self::owner) enters the lock again with a longer lease than was granted or
    /// last extended to, and the old lease would end sooner, it is extended for all its guards.
    /// Otherwise it does not change, nor does a lease that the watchdog renews.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("export").fixed_lease(Duration::from_secs(10)).acquire().await?;
    /// tokio::time::sleep(Duration::from_secs(11)).await;
    /// assert!(guard.ensure_valid().is_err()); // it was not renewed
    /// assert!(locks.lock("export").try_acquire().await?.is_some());
    /// # Ok(()) }
    /// ```
    pub fn fixed_lease(mut self, lease: Duration) -> Self {
        (self.options.fixed_lease, self.options.renewed_lease) = (Some(lease), None);
        self
    }

    /// Holds the lock until it is released. The watchdog renews this lease after a third of its
    /// length, so a crashed holder blocks the lock for at most this long.
    ///
    /// Has no effect when an [owner](Self::owner) enters the lock again: the first request decides
    /// whether the lease is renewed, and how long it is.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("import").renewed_lease(Duration::from_secs(6)).acquire().await?;
    /// tokio::time::sleep(Duration::from_secs(60)).await;
    /// guard.ensure_valid()?; // it was renewed every 2 s
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn renewed_lease(mut self, lease: Duration) -> Self {
        (self.options.renewed_lease, self.options.fixed_lease) = (Some(lease), None);
        self
    }

    /// Declares the lock lost ([`LostCause::MaxHold`](crate::LostCause::MaxHold)) after this long,
    /// renewed or not, so that work that hangs cannot keep it for ever. The time counts from before
    /// the successful attempt was sent. Has no effect when an [owner](Self::owner) enters the lock
    /// again.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::LostCause;
    /// let guard = locks.lock("import").max_hold(Duration::from_secs(60)).acquire().await?;
    /// assert_eq!(guard.lost().await, LostCause::MaxHold); // after a minute
    /// # Ok(()) }
    /// ```
    pub fn max_hold(mut self, hold: Duration) -> Self {
        self.options.max_hold = Some(hold);
        self
    }

    /// Keeps the lock held for this long after it was taken, even if it is released sooner. Use it
    /// for jobs that many instances start at about the same time: if one finishes at once, an
    /// instance whose clock is late would run the job again.
    ///
    /// If the guard is released or dropped early, or the lock is lost other than by an eviction, it
    /// stays held without a holder until then. It is not renewed; [`inspect`](Self::inspect) shows
    /// it, [`held_locks`](crate::Locktopus::held_locks) does not. The release returns at once.
    /// Waiters are not notified when the time is over. As after a crash of the holder, they find
    /// the lock free at their next check, tasks of this process too. Only
    /// [`force_release`](Self::force_release) ends it sooner. A lock that is held for longer is not
    /// affected.
    ///
    /// An owner who enters the lock again with this option extends the time. A
    /// [ticket](crate::LockGuard::into_ticket) does not carry it: the adopting request may set it
    /// again.
    ///
    /// **If the process dies**, only its lease counts, and it may end sooner. If that must not
    /// happen, ask for a lease of this length: [`renewed_lease`](Self::renewed_lease) holds the
    /// lock while the job runs, and for at least this long.
    ///
    /// Works with [`lock`](crate::Locktopus::lock), [`fair_lock`](crate::Locktopus::fair_lock) and
    /// [`mutex`](crate::Locktopus::mutex). It may not exceed a fixed lease or the longest possible
    /// lease, and cannot be combined with a [lease cache](Self::lease_cache). Anything else fails
    /// with [`LockError::Option`](crate::LockError::Option) before anything is sent.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// let nightly = locks.lock("nightly").hold_at_least(Duration::from_secs(60));
    /// let ran = nightly.clone().try_run(|_| async { "done in a moment" }).await?;
    /// assert!(ran.is_some());
    /// // Another instance, whose clock is half a minute late.
    /// tokio::time::sleep(Duration::from_secs(30)).await;
    /// assert!(nightly.clone().try_run(|_| async {}).await?.is_none());
    /// tokio::time::sleep(Duration::from_secs(31)).await;
    /// assert!(nightly.try_run(|_| async {}).await?.is_some());
    /// # Ok(()) }
    /// ```
    pub fn hold_at_least(mut self, time: Duration) -> Self {
        self.options.hold_at_least = time;
        self
    }

    /// Keeps the backend's lease for up to this long after the lock is released, so that this
    /// process can take the lock again without asking the backend. 50 ms is a good start. Zero, the
    /// default, keeps nothing.
    ///
    /// Use it for locks that one process takes again and again while others rarely want them. A
    /// release then returns at once, and the next acquisition of this `Locktopus` costs no command.
    /// Each acquisition gets its own fencing token, and only a lease that is still valid is handed
    /// out. The lease goes back to the backend
    ///
    /// * as soon as another process asks for it: the backend notifies this process, which gives the
    ///   lease back at once;
    /// * after `keep`, counted from the first release since the backend granted it, however often
    ///   it was taken again;
    /// * when its fencing tokens are used up
    ///   ([`CohortSettings::turns`](crate::CohortSettings::turns));
    /// * when it is lost or evicted, or this `Locktopus` is [shut
    ///   down](crate::Locktopus::shutdown).
    ///
    /// **What others see.** Until then the lock counts as held: [`inspect`](Self::inspect) shows
    /// this process, and [`held_locks`](crate::Locktopus::held_locks) shows the lock with no holds.
    /// A `try_acquire` elsewhere fails, but makes this process give the lease back. A waiter of
    /// another process costs one message more than with an ordinary release. Clients that cannot
    /// ask (other libraries, a waiter whose message was lost) wait for up to `keep`, so keep it
    /// short if there are any. If the process ends without a shutdown, the lease expires.
    ///
    /// A lease that was acquired by waiting in the backend's queue is not kept, because others want
    /// the lock.
    ///
    /// Works with [`lock`](crate::Locktopus::lock) and native [`mutex`](crate::Locktopus::mutex)es,
    /// for at most a third of the lease. Anything else fails with
    /// [`LockError::Option`](crate::LockError::Option).
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// let report = locks.lock("report:7").lease_cache(Duration::from_millis(50));
    /// let first = report.clone().acquire().await?;
    /// let token = first.token();
    /// first.release().await?; // the backend is told nothing
    /// let second = report.acquire().await?; // nor asked
    /// assert!(second.token() > token);
    /// second.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn lease_cache(mut self, keep: Duration) -> Self {
        self.options.lease_cache = Some(keep);
        self
    }

    /// How long the backend remembers this name's last fencing token after the grant: from [a
    /// minute](TokenRetention::SHORTEST) to ten years, and at least twice the lease.
    ///
    /// Every name costs the server memory until then, so choose a short time if you use each name
    /// once. If requests for one name differ, the last grant counts. A grant that a release hands
    /// on uses the retention of the hold that ends. [`TokenRetention`] explains the risk on a
    /// server with little memory.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// let once = locks.mutex("payment:8f14e45f").token_retention(Duration::from_secs(600));
    /// once.acquire().await?.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn token_retention(mut self, keep: impl Into<TokenRetention>) -> Self {
        self.options.token_retention = Some(keep.into());
        self
    }

    /// Asks for this many permits of a semaphore together, all or none: between 1 and
    /// [`MAX_PERMITS`](crate::MAX_PERMITS). Every other kind has 1. See
    /// [`Semaphore::permits`](crate::Semaphore::permits).
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::LockKind;
    /// locks.semaphore("workers").initialise(3).await?;
    /// let two = locks.of_kind("workers", LockKind::Semaphore).permits(2).acquire().await?;
    /// assert_eq!(two.permits(), 2);
    /// # two.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn permits(mut self, permits: u32) -> Self {
        self.permits = permits;
        self
    }

    /// Gives up with [`LockError::WaitTimeout`](crate::LockError::WaitTimeout) if the lock is not
    /// free within this time. The first attempt always has a quarter of the backend's call timeout
    /// for its answer, but at least 50 and at most 250 ms.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let _held = locks.lock("invoice:42").acquire().await?;
    /// let waiting = locks.lock("invoice:42").wait_at_most(Duration::from_millis(20));
    /// assert!(waiting.acquire().await.is_err_and(|error| error.is_busy()));
    /// # Ok(()) }
    /// ```
    pub fn wait_at_most(mut self, wait: Duration) -> Self {
        self.options.wait = Some(WaitLimit::AtMost(wait));
        self
    }

    /// Gives up with [`LockError::WaitTimeout`](crate::LockError::WaitTimeout) if the lock is not
    /// free by this time. Use it if the caller has a deadline of its own, for example that of the
    /// request it serves. Replaces [`wait_at_most`](Self::wait_at_most). As there, the first
    /// attempt always has a moment for its answer, even if the deadline has passed.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use std::time::Duration;
    /// use tokio::time::Instant;
    /// let deadline = Instant::now() + Duration::from_millis(20); // of all that follows
    /// let order = locks.lock("order:7").wait_until(deadline).acquire().await?;
    /// let second = locks.lock("order:7").wait_until(deadline).acquire().await;
    /// assert!(second.is_err_and(|error| error.is_busy()));
    /// order.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn wait_until(mut self, deadline: Instant) -> Self {
        self.options.wait = Some(WaitLimit::Until(deadline));
        self
    }

    /// Sets how to wait while the lock is held by another owner. Every kind supports every
    /// strategy; waiters of a [fair lock](crate::Locktopus::fair_lock) queue with any of them.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::WaitStrategy;
    /// // The holder is a program that notifies no waiter when it releases.
    /// let look = WaitStrategy::Poll { min: Duration::from_millis(5), max: Duration::from_millis(50) };
    /// locks.lock("shared").strategy(look).acquire().await?.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn strategy(mut self, strategy: WaitStrategy) -> Self {
        self.options.strategy = Some(strategy);
        self
    }

    /// Gives up with [`LockError::Cancelled`](crate::LockError::Cancelled) when this token is
    /// cancelled. A lock that is already held is not affected.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::{CancellationToken, LockError};
    /// let _held = locks.lock("invoice:42").acquire().await?;
    /// let stop = CancellationToken::new();
    /// let waiting = tokio::spawn(locks.lock("invoice:42").cancel_on(stop.clone()).acquire());
    /// stop.cancel();
    /// assert!(matches!(waiting.await?, Err(LockError::Cancelled { .. })));
    /// # Ok(()) }
    /// ```
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.options.cancel = Some(token);
        self
    }

    /// Acquires on behalf of this owner, who may enter a reentrant lock again. The default is the
    /// owner in whose [scope](Owner::scope) the request is awaited, if any. Semaphores ignore it:
    /// every acquisition takes permits of its own.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::Owner;
    /// let me = Owner::new();
    /// let outer = locks.lock("account:1").owner(&me).acquire().await?;
    /// let inner = locks.lock("account:1").owner(&me).acquire().await?; // at once
    /// assert_eq!(inner.token(), outer.token());
    /// # Ok(()) }
    /// ```
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.options.owner = Some(owner.clone());
        self
    }

    /// Reports the wait while it lasts: position in the queue and estimated time. See
    /// [`WaitProgress`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let (request, progress) = locks.fair_lock("printer").with_progress();
    /// let guard = request.acquire().await?;
    /// assert_eq!(progress.latest(), None); // it was free, so nothing was waited for
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn with_progress(mut self) -> (Self, WaitProgress) {
        let (reporter, progress) = ProgressReporter::new();
        self.options.progress = Some(reporter);
        (self, progress)
    }
}
