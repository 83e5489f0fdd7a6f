//! Requests: what kind of acquisition is wanted, and the ways to ask for it.

mod admin;
mod adopt;
mod checked;
mod enter;
mod multi;
mod named;
mod run;

pub(crate) use adopt::hold;
pub(crate) use named::Named;

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::contract::kind::LockKind;
use crate::contract::token_retention::TokenRetention;
use crate::engine::acquisition::{Engine, Wait};
use crate::engine::error::LockError;
use crate::engine::settings::WaitStrategy;
use crate::engine::wait_progress::{Reporter, WaitProgress};
use crate::handles::any_guard::AnyGuard;
use crate::handles::guard::LockGuard;
use crate::handles::owner_handle::Owner;

/// A lock that somebody is about to ask for. Made by [`Locktopus::lock`](crate::Locktopus::lock) and its
/// siblings; nothing happens until one of the asynchronous methods is awaited. Awaiting the request itself
/// is [`acquire`](Self::acquire).
///
/// Without options: the lock is waited for as long as it takes, in the queue of those who wait, and held for a
/// lease of 30 s that is renewed every 10 s.
///
/// `G` is the guard it turns into: [`LockGuard`], or [`WriteGuard`](crate::WriteGuard) for the exclusive half of a
/// read-write lock.
#[must_use = "a lock request does nothing until `acquire`, `try_acquire` or `run` is awaited"]
pub struct LockRequest<G = LockGuard> {
    engine: Arc<Engine>,
    name: Named,
    kind: LockKind,
    fixed_lease: Option<Duration>,
    renewed_lease: Option<Duration>,
    max_hold: Option<Duration>,
    hold_at_least: Duration,
    lease_cache: Option<Duration>,
    wait: Option<Duration>,
    strategy: Option<WaitStrategy>,
    cancel: Option<CancellationToken>,
    owner: Option<Owner>,
    permits: u32,
    token_retention: Option<TokenRetention>,
    progress: Option<Reporter>,
    guard: PhantomData<fn() -> G>,
}

/// Options and ways to ask are the same whatever the guard.
impl<G: AnyGuard> LockRequest<G> {
    pub(crate) fn new(engine: Arc<Engine>, name: Named, kind: LockKind) -> Self {
        Self {
            engine,
            name,
            kind,
            fixed_lease: None,
            renewed_lease: None,
            max_hold: None,
            hold_at_least: Duration::ZERO,
            lease_cache: None,
            wait: None,
            strategy: None,
            cancel: None,
            owner: None,
            permits: 1,
            token_retention: None,
            progress: None,
            guard: PhantomData,
        }
    }

    pub(crate) fn with_permits(mut self, permits: u32) -> Self {
        self.permits = permits;
        self
    }

    /// Holds the lock for this long and no longer: the watchdog does not renew it. At least
    /// [`MIN_LEASE`](crate::MIN_LEASE), at most the configured maximum; cut to whole milliseconds.
    pub fn fixed_lease(mut self, lease: Duration) -> Self {
        (self.fixed_lease, self.renewed_lease) = (Some(lease), None);
        self
    }

    /// Holds the lock until it is released, by a lease of this length that the watchdog renews after a
    /// third of it. A crashed holder blocks the lock for at most this long.
    pub fn renewed_lease(mut self, lease: Duration) -> Self {
        (self.renewed_lease, self.fixed_lease) = (Some(lease), None);
        self
    }

    /// Declares the lock lost ([`LostCause::MaxHold`](crate::LostCause::MaxHold)) after this long, renewal or not,
    /// so that work that hangs cannot keep it for ever. Counted from before the successful attempt was sent.
    pub fn max_hold(mut self, hold: Duration) -> Self {
        self.max_hold = Some(hold);
        self
    }

    /// Leaves the lock held until so long after it was taken, however early it is given back. For jobs that many instances start
    /// at about the same time: where one is done at once, an instance whose clock is late would run it again.
    ///
    /// What is given back sooner (by a release, by dropping the guard, or because the lock is lost, evicted ones aside) is
    /// held by nobody until then: not renewed, shown by [`inspect`](Self::inspect), and not by
    /// [`held_locks`](crate::Locktopus::held_locks). The release returns at once. Whoever waits is woken by nobody and finds the
    /// lock free when the time is over, as that of a holder who died; tasks of this process too. Only
    /// [`force_release`](Self::force_release) ends it sooner. A lock that is held for longer is not affected.
    ///
    /// An owner who enters the lock again with this option extends the time. A [ticket](LockGuard::into_ticket) carries it not
    /// along: whoever adopts it may ask anew.
    ///
    /// **If the process dies**, the lease that it had counts, which may end sooner. Where that must not be, ask for a
    /// lease of this length: [`renewed_lease`](Self::renewed_lease) holds it while the job runs, and at least for so long.
    ///
    /// For [`lock`](crate::Locktopus::lock), [`fair_lock`](crate::Locktopus::fair_lock) and
    /// [`mutex`](crate::Locktopus::mutex)es; not longer than a fixed lease, nor than the longest lease there may be, and
    /// not together with a [lease cache](Self::lease_cache). Anything else is refused with [`LockError::Option`] before
    /// anything is sent.
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
        self.hold_at_least = time;
        self
    }

    /// Keeps the backend's lease for up to this long after the lock is released, so that this process can take the lock
    /// again without asking the backend. 50 ms is a good start; zero: not kept, which is the default.
    ///
    /// For locks that the same process takes again and again while others rarely want them. A release then returns at
    /// once, and the next acquisition of this `Locktopus` costs no command. Each has a fencing token of its own, and
    /// only leases whose validity is not over are handed out. The lease goes back to the backend
    ///
    /// * as soon as somebody else asks for it: the backend tells this process, which gives it back at once;
    /// * after `keep`, counted from the first release since the backend granted it, however often it was taken again;
    /// * when its fencing tokens are used up ([`CohortSettings::turns`](crate::CohortSettings::turns));
    /// * when it is lost, evicted, or this `Locktopus` is [shut down](crate::Locktopus::shutdown).
    ///
    /// **What others see.** Until then the lock is held, by nobody in particular: [`inspect`](Self::inspect) shows this
    /// process, [`held_locks`](crate::Locktopus::held_locks) shows it with no holds, and a `try_acquire` elsewhere
    /// fails, although it makes this process give the lease back. A waiter of another process pays one message more
    /// than for a release. Those who cannot ask (clients of other libraries, a waiter whose message was lost) wait for up to
    /// `keep`, so keep it short where there are any. If the process ends without a shutdown, the lease lapses.
    ///
    /// A lease that was waited for in the backend's queue is not kept: there, others want it.
    ///
    /// For [`lock`](crate::Locktopus::lock) and native [`mutex`](crate::Locktopus::mutex)es; at most a third of the
    /// lease. Anything else is refused with [`LockError::Option`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
        self.lease_cache = Some(keep);
        self
    }

    /// How long the backend remembers this name's last fencing token after the grant: from
    /// [a minute](TokenRetention::SHORTEST) to ten years, and at least twice the lease.
    ///
    /// Every name costs the server memory until then, so say a short time where each name is used once. Where
    /// requests for one name differ, the last grant counts; a grant that a release hands on is remembered as the one
    /// that ends was asked for. On a server with little memory, [`TokenRetention`] says what is at stake.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// let once = locks.mutex("payment:8f14e45f").token_retention(Duration::from_secs(600));
    /// once.acquire().await?.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn token_retention(mut self, keep: impl Into<TokenRetention>) -> Self {
        self.token_retention = Some(keep.into());
        self
    }

    /// Gives up with [`LockError::WaitTimeout`] if the lock is not free within this time. The first attempt
    /// always has a quarter of the backend's call timeout for its answer, but at least 50 and at most
    /// 250 ms.
    pub fn wait_at_most(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Sets how to wait while somebody else holds the lock. Every kind takes every strategy; waiters of a
    /// [fair lock](crate::Locktopus::fair_lock) stand in its queue with any of them.
    pub fn strategy(mut self, strategy: WaitStrategy) -> Self {
        self.strategy = Some(strategy);
        self
    }

    /// Gives up with [`LockError::Cancelled`] when this token is cancelled. A lock that is already held is
    /// not affected.
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Acquires on behalf of this owner, who may enter a reentrant lock again. Without this, it is the owner in
    /// whose [scope](Owner::scope) the request is awaited, if any. Permits of semaphores belong to nobody: every
    /// acquisition takes its own.
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.owner = Some(owner.clone());
        self
    }

    /// Lets somebody watch the wait: place in the queue and estimated time. See [`WaitProgress`].
    pub fn with_progress(mut self) -> (Self, WaitProgress) {
        let (reporter, progress) = Reporter::new();
        self.progress = Some(reporter);
        (self, progress)
    }

    /// Takes the lock, waiting for it if need be.
    ///
    /// # Errors
    ///
    /// [`LockError::Name`] and [`LockError::Option`] before anything is sent; [`LockError::WaitTimeout`],
    /// [`LockError::Cancelled`] and [`LockError::ShutDown`] if waiting ended without the lock;
    /// [`LockError::Backend`] at once if the backend refuses, also because the name is in use as another kind
    /// ([`LockError::other_kind`]), and after ten seconds
    /// ([`LocktopusBuilder::tolerate_outage`](crate::LocktopusBuilder::tolerate_outage)) if it cannot be reached;
    /// [`LockError::NotReentrant`] or [`LockError::UpgradeRefused`] instead of a deadlock if the owner already holds
    /// this mutex, or reads what it wants to write;
    /// [`LockError::Lost`] if the owner's earlier hold of this lock is lost and not yet dropped.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future leaves no lock, no waiter and no task behind. What an attempt under
    /// way may still take is given back in the background. The place among the waiters is lost.
    #[expect(
        clippy::manual_async_fn,
        reason = "an `async fn` keeps its arguments twice, and there may be many who wait"
    )]
    pub fn acquire(self) -> impl Future<Output = Result<G, LockError>> + use<G> {
        async move {
            let wait = self.wait.map_or(Wait::Forever, Wait::at_most);
            let started = Instant::now();
            match self.enter(wait).await? {
                Some(taken) => Ok(G::from_taken(taken)),
                None => {
                    let target = self.target()?;
                    Err(LockError::WaitTimeout {
                        target,
                        waited: started.elapsed(),
                        holder_remaining: None,
                        source: None,
                    })
                }
            }
        }
    }

    /// Takes the lock if it is free right now and nobody waits for it; `None` otherwise.
    ///
    /// One attempt, so [`wait_at_most`](Self::wait_at_most) and the strategy play no part.
    /// [`UnlessBusy`](crate::UnlessBusy) brings the other ways to ask to the same shape.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), except that a backend that cannot be reached is an error at once.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe, as [`acquire`](Self::acquire).
    pub async fn try_acquire(self) -> Result<Option<G>, LockError> {
        Ok(self.enter(Wait::Not).await?.map(G::from_taken))
    }
}

impl<G: AnyGuard> IntoFuture for LockRequest<G> {
    type Output = Result<G, LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquire())
    }
}

/// Written out because a guard cannot be cloned, and need not be for its request to be.
impl<G> Clone for LockRequest<G> {
    fn clone(&self) -> Self {
        Self {
            engine: Arc::clone(&self.engine),
            name: self.name.clone(),
            kind: self.kind.clone(),
            fixed_lease: self.fixed_lease,
            renewed_lease: self.renewed_lease,
            max_hold: self.max_hold,
            hold_at_least: self.hold_at_least,
            lease_cache: self.lease_cache,
            wait: self.wait,
            strategy: self.strategy,
            cancel: self.cancel.clone(),
            owner: self.owner.clone(),
            permits: self.permits,
            token_retention: self.token_retention,
            progress: self.progress.clone(),
            guard: PhantomData,
        }
    }
}

impl<G> fmt::Debug for LockRequest<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockRequest")
            .field("name", &self.name)
            .field("kind", &self.kind.as_str())
            .field("permits", &self.permits)
            .field("fixed_lease", &self.fixed_lease)
            .field("renewed_lease", &self.renewed_lease)
            .field("max_hold", &self.max_hold)
            .field("hold_at_least", &self.hold_at_least)
            .field("lease_cache", &self.lease_cache)
            .field("token_retention", &self.token_retention)
            .field("wait", &self.wait)
            .field("strategy", &self.strategy)
            .finish_non_exhaustive()
    }
}
