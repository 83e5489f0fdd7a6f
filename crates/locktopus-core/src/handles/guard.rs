//! Guards: proof that a lock is held, and the way to release it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use locktopus_contract::ExtendOutcome;
use locktopus_contract::clock::{self, timer_in};
use tokio::time::Instant;

use crate::engine::error::{LockError, LostCause, Phase};
use crate::engine::holding::hold::Hold;
use crate::engine::holding::services::Services;
use crate::engine::holding::turn::Turn;
use crate::engine::holding::watchdog::Losses;
use crate::handles::lease::Lease;
use crate::handles::ticket::LeaseTicket;

/// A held lock. It does everything a [`Lease`] does, and more.
///
/// **Dropping it does not release the lock at once.** Drop stops renewal now and leaves the release
/// to a background task. It never blocks and never panics, even outside a runtime. If that task
/// cannot run any more, the lock becomes free when its lease ends. [`release`](Self::release) is
/// the reliable way, and the only one that tells you whether you held the lock to the end.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use locktopus_core::Locktopus;
/// use locktopus_memory::MemoryBackend;
/// let locks = Locktopus::builder(MemoryBackend::new()).build()?;
/// let guard = locks.lock("invoice:42").acquire().await?;
/// guard.ensure_valid()?; // right before each side effect
/// let fence = guard.token().expect("a lock always has a token");
/// // ... write to a resource that refuses tokens smaller than `fence` ...
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[must_use = "if unused the lock is released again immediately"]
#[clippy::has_significant_drop]
pub struct LockGuard {
    held: Hold,
    /// Made when it is first used: many guards are only released.
    lease: OnceLock<Lease>,
}

impl LockGuard {
    pub(crate) fn new(held: Hold) -> Self {
        let lease = OnceLock::new();
        Self { held, lease }
    }

    pub(crate) fn services(&self) -> &Arc<Services> {
        self.held.services()
    }

    pub(crate) fn turn(&self) -> &Arc<Turn> {
        self.held.turn()
    }

    /// A read-only view of the lease, to pass to the work that is done under the lock.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("invoice:42").acquire().await?;
    /// let work = tokio::spawn({
    ///     let lease = guard.lease();
    ///     async move { lease.ensure_valid() }
    /// });
    /// work.await??;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn lease(&self) -> Lease {
        Lease::clone(self)
    }

    /// How many guards share this lease.
    #[must_use]
    pub fn hold_count(&self) -> usize {
        self.turn().holds()
    }

    /// Enters the lock again: returns another guard on the same lease and token, without asking the
    /// backend. The lock is released with the last guard.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("account:1").acquire().await?;
    /// let again = guard.reenter()?;
    /// assert_eq!((guard.hold_count(), again.token()), (2, guard.token()));
    /// drop(again);
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lease has ended, [`LockError::NotReentrant`] for a mutex.
    pub fn reenter(&self) -> Result<Self, LockError> {
        let target = self.target();
        if !target.kind().is_reentrant() {
            let target = target.clone();
            return Err(LockError::NotReentrant { target });
        }
        self.ensure_valid()?;
        let Some(held) = Hold::join(self.services(), self.turn()) else {
            return Err(LockError::Lost {
                target: target.clone(),
                cause: LostCause::Released,
            });
        };
        Ok(Self::new(held))
    }

    /// Makes the lease last at least `lease` from now, and returns the new deadline.
    ///
    /// Never shortens a lease. If the watchdog renews this lock, it continues with the new length.
    /// An extension does not reach past the maximum hold time.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("export").fixed_lease(Duration::from_secs(1)).acquire().await?;
    /// let valid_until = guard.extend(Duration::from_secs(60)).await?;
    /// assert_eq!(valid_until, guard.valid_until());
    /// assert!(guard.remaining() > Duration::from_secs(30));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lock was lost before or turns out to be; [`LockError::Backend`]
    /// if the backend failed (the deadline is then unchanged); [`LockError::Option`] for an invalid
    /// lease.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the extension may or may not happen. The guard's deadline only moves if the
    /// extension is known to have happened.
    pub async fn extend(&self, lease: Duration) -> Result<Instant, LockError> {
        let (services, held) = (self.services(), &self.turn().lease);
        let lease = services.settings.check_lease("extend", lease)?;
        self.ensure_valid()?;
        let sent = clock::now();
        let usual = services.backend.info().token_retention;
        let (request, _) = held.extension(lease, usual, sent);
        let (keep_token, deadline) = (request.keep_token, timer_in(services.call_timeout()));
        let cause = match services.extend_one(request, deadline).await {
            Ok(ExtendOutcome::Extended) => {
                held.token_kept(sent, keep_token);
                held.extended(lease, services.settings.margin.valid_until(sent, lease));
                services.watchdog.extended(held);
                self.ensure_valid()?;
                return Ok(self.valid_until());
            }
            Ok(ExtendOutcome::Missing) => LostCause::Missing,
            Ok(ExtendOutcome::TakenOver) => LostCause::TakenOver,
            Err(source) => {
                return Err(LockError::Backend {
                    target: held.target.clone(),
                    phase: Phase::Extend,
                    source,
                });
            }
        };
        let losses = Losses(vec![(Arc::clone(held), cause.clone())]);
        losses.tell(services).await;
        services.watchdog.forget(held);
        Err(LockError::Lost {
            target: held.target.clone(),
            cause: held.lost().cloned().unwrap_or(cause),
        })
    }

    /// Releases the lock and waits for the answer. If other guards share the lease, only this hold
    /// ends. If the lease passes to another task of this process, or is
    /// [kept](crate::LockRequest::lease_cache), the backend is not asked.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::LockError;
    /// let guard = locks.lock("import").acquire().await?;
    /// locks.lock("import").force_release("it hangs").await?;
    /// // Work done meanwhile may have overlapped with another holder.
    /// assert!(matches!(guard.release().await, Err(LockError::Lost { .. })));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lock had been lost before: work done under it may have overlapped
    /// with another holder. [`LockError::Backend`] if the backend gave no definite answer within
    /// its call timeout; the release is then repeated in the background until the lease has ended.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: if the future is dropped, the release continues in the background.
    pub async fn release(self) -> Result<(), LockError> {
        self.held.release().await
    }

    /// Turns the guard into a ticket, so that another process can take over the lease by
    /// [`LockRequest::adopt`](crate::LockRequest::adopt). Renewal stops now: the ticket must be
    /// adopted before the lease ends.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("upload:7").acquire().await?;
    /// let ticket = guard.into_ticket().expect("held by this guard alone");
    /// assert!(locks.lock("upload:7").try_acquire().await?.is_none()); // still held
    /// locks.lock("upload:7").adopt(&ticket).await?.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Gives the guard back if the lease is lost or shared with other guards, or if a read-write
    /// lock is held for reading and for writing at once.
    pub fn into_ticket(self) -> Result<LeaseTicket, Self> {
        let shared = self.turn().lease.shared_owner();
        if self.ensure_valid().is_err() || shared.is_some_and(|shared| !shared.is_over()) {
            return Err(self);
        }
        let Self { held, lease } = self;
        let turn = held.transfer().map_err(|held| Self { held, lease })?;
        Ok(LeaseTicket::new(&turn))
    }
}

impl Deref for LockGuard {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        let lease = || Lease::new(Arc::clone(self.turn()), self.services());
        self.lease.get_or_init(lease)
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockGuard").field(&self.held).finish()
    }
}
