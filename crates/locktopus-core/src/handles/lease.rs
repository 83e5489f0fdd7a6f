//! The read-only view of a held lock.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use locktopus_contract::{FencingToken, LockName, LockTarget, OwnerId, SafetyMode, clock};
use locktopus_fence::Fence;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::error::{LockError, LostCause};
use crate::engine::holding::services::Services;
use crate::engine::holding::turn::Turn;

/// A read-only view of a held lock, to pass to the work that is done under it.
///
/// Cheap to clone and independent of the guard: when the guard is released or dropped, the lease
/// ends with [`LostCause::Released`].
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// let guard = locks.lock("invoice:42").acquire().await?;
/// let lease = guard.lease();
/// assert_eq!((lease.name().as_str(), lease.permits()), ("invoice:42", 1));
/// assert_eq!(lease.fence().map(|fence| fence.token()), lease.token());
/// assert_eq!((lease.owner_id(), lease.safety()), (guard.owner_id(), guard.safety()));
/// assert!(lease.valid_until() > tokio::time::Instant::now());
/// assert!(!lease.remaining().is_zero() && lease.held_for() < lease.remaining());
/// guard.release().await?;
/// assert!(lease.remaining().is_zero());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Lease {
    turn: Arc<Turn>,
    /// Dead once every guard and handle is gone.
    services: Weak<Services>,
}

impl Lease {
    pub(crate) fn new(turn: Arc<Turn>, services: &Arc<Services>) -> Self {
        let services = Arc::downgrade(services);
        Self { turn, services }
    }

    pub(crate) fn turn(&self) -> &Turn {
        &self.turn
    }

    pub(crate) fn target(&self) -> &LockTarget {
        &self.turn.lease.target
    }

    /// Starts the watchdog on this runtime too: the runtimes that ran it may have ended.
    fn watch_here(&self) {
        if let Some(services) = self.services.upgrade() {
            // Outside tokio this fails, and the other runtimes report the loss.
            let _ = services.here();
        }
    }

    /// The lock's name, namespace included.
    #[must_use]
    pub fn name(&self) -> &LockName {
        self.turn.lease.target.name()
    }

    /// The holder's id. Keep it secret: it is enough to release the lock.
    #[must_use]
    pub fn owner_id(&self) -> &OwnerId {
        &self.turn.lease.owner
    }

    /// The fencing token of this grant; `None` for readers, permits and a
    /// [single-key mutex](crate::MutexProfile::single_key).
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.turn.token
    }

    /// The token bound to this lock and this holder, to send along with what you write under the
    /// lock; `None` if there is no [token](Self::token).
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        let token = self.turn.token?;
        Some(Fence::new(&self.turn.lease.target, token).held_by(&self.turn.lease.owner))
    }

    /// The safety mode of the grant: what it is worth when a server fails.
    #[must_use]
    pub fn safety(&self) -> SafetyMode {
        self.turn.lease.safety()
    }

    /// How many permits of a semaphore are held; 1 for locks.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.turn.lease.permits
    }

    /// The local deadline: until then the lock is known to be held. Renewal moves it.
    #[must_use]
    pub fn valid_until(&self) -> Instant {
        self.turn.lease.valid_until().timer()
    }

    /// The time left until [`valid_until`](Self::valid_until); zero once the lease has ended.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.turn.lost().is_some() {
            return Duration::ZERO;
        }
        self.turn.lease.valid_until().since(clock::now())
    }

    /// How long the lock has been held.
    #[must_use]
    pub fn held_for(&self) -> Duration {
        clock::now().since(self.turn.since)
    }

    /// Checks that the lock is still known to be held. Call it right before a side effect.
    ///
    /// It reads the clock, not a flag, so it is right even if this task was paused for a minute
    /// just before the call. It cannot help if the task is paused just after the call; only a
    /// fencing token can.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// # async fn charge() {}
    /// locks.lock("invoice:42").run(|lease| async move {
    ///     lease.ensure_valid()?;
    ///     charge().await;
    ///     Ok::<(), locktopus::LockError>(())
    /// }).await??;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] with the cause.
    pub fn ensure_valid(&self) -> Result<(), LockError> {
        self.ensure_valid_for(Duration::ZERO)
    }

    /// Checks that the lock stays valid for at least `ahead` from now, even without renewal.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("export").fixed_lease(Duration::from_secs(10)).acquire().await?;
    /// let lease = guard.lease();
    /// lease.ensure_valid_for(Duration::from_secs(5))?; // enough for a write that takes 5 s at most
    /// assert!(lease.ensure_valid_for(Duration::from_secs(20)).is_err());
    /// lease.ensure_valid()?; // the lease itself is untouched
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lock is lost. If the lease is only too short, the cause is
    /// [`LostCause::Expired`] too, and the lease is not affected.
    pub fn ensure_valid_for(&self, ahead: Duration) -> Result<(), LockError> {
        let turn = &self.turn;
        let cause = match turn.lost() {
            Some(cause) => cause.clone(),
            None if turn.lease.valid_until().since(clock::now()) > ahead => {
                return Ok(());
            }
            None if ahead.is_zero() => {
                turn.expire();
                match turn.lost() {
                    Some(cause) => cause.clone(),
                    // It was extended at this moment.
                    None => return Ok(()),
                }
            }
            None => LostCause::Expired,
        };
        Err(LockError::Lost {
            target: turn.lease.target.clone(),
            cause,
        })
    }

    /// Waits until the lease ends in any way, and returns the cause.
    ///
    /// Completes at the latest when the local deadline passes, on any tokio runtime and even if the
    /// network fails. Returns at once if the lease has ended already. Outside tokio it needs
    /// another runtime that uses this `Locktopus` and still runs.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("invoice:42").acquire().await?;
    /// tokio::select! {
    ///     cause = guard.lost() => println!("stop: {cause}"),
    ///     () = async { /* the work */ } => guard.release().await?,
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn lost(&self) -> LostCause {
        self.watch_here();
        self.turn.signal().cancelled().await;
        self.turn.lost().cloned().unwrap_or(LostCause::Expired)
    }

    /// A token that is cancelled when the lease ends, for code that already uses
    /// `CancellationToken`. Cancelling it has no effect on the lock.
    ///
    /// The runtime where you call this cancels it. If that runtime ends first, another runtime that
    /// uses this `Locktopus` does.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("invoice:42").acquire().await?;
    /// let lost = guard.lease().lost_token();
    /// assert!(!lost.is_cancelled());
    /// guard.release().await?;
    /// assert!(lost.is_cancelled());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn lost_token(&self) -> CancellationToken {
        self.watch_here();
        self.turn.signal().child_token()
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.turn.fmt(f)
    }
}
