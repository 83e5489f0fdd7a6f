//! What an operator does to a lock without holding it: look, and take it away.

use super::LockRequest;
use crate::contract::clock::timer_in;
use crate::contract::lock_state::{Eviction, LockState};
use crate::engine::error::{LockError, LostCause, Phase};
use crate::engine::holding::services::Services;
use crate::handles::any_guard::AnyGuard;

impl<G: AnyGuard> LockRequest<G> {
    /// Reads the lock's state from the backend: holders and what is left of their leases, the last token, waiters in
    /// order, free permits.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("invoice:42").acquire().await?;
    /// let state = locks.lock("invoice:42").inspect().await?;
    /// assert_eq!(state.holder().map(|holder| &holder.owner), Some(guard.owner()));
    /// assert_eq!((state.last_token, state.waiters.len()), (guard.token(), 0));
    /// guard.release().await?;
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
    pub async fn inspect(self) -> Result<LockState, LockError> {
        let target = self.target()?;
        let deadline = timer_in(self.engine.call_timeout());
        self.engine
            .inspect(&target, deadline)
            .await
            .map_err(|source| LockError::Backend {
                target,
                phase: Phase::Inspect,
                source,
            })
    }

    /// Takes the lock away from whoever holds it and hands it to the next waiter. For an operator who knows that
    /// the holder is stuck.
    ///
    /// **The victim may go on working.** It learns of its loss with its next renewal, or at once if it is in this
    /// process ([`LostCause::Evicted`]). What it still writes is only kept out where fencing tokens are checked:
    /// later grants have greater tokens than [`Eviction::fence`]. The reason is logged as a warning, with how many
    /// holders lost the lock.
    ///
    /// Ends every hold there is: all readers and the writer of a read-write lock, all permits of a semaphore (which
    /// become free again). Waiters keep their places.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use locktopus_core::{LostCause, Locktopus};
    /// # use locktopus_memory::MemoryBackend;
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// let stuck = locks.lock("import").acquire().await?;
    /// let eviction = locks.lock("import").force_release("import hangs since 3 am").await?;
    /// assert_eq!(eviction.evicted.len(), 1);
    /// assert!(eviction.fence >= stuck.token());
    /// assert!(matches!(stuck.lost().await, LostCause::Evicted { .. }));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Name`] and [`LockError::Backend`]. Not repeated if it may have run: a second time it could hit
    /// the next holder.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the lock may or may not be taken away, and victims in this process may not be told before
    /// their next renewal.
    pub async fn force_release(self, reason: impl Into<String>) -> Result<Eviction, LockError> {
        let reason = reason.into();
        let target = self.target()?;
        if self.engine.closing.is_cancelled() {
            return Err(LockError::ShutDown);
        }
        let deadline = timer_in(self.engine.call_timeout());
        match self.engine.evict(&target, deadline).await {
            Ok(eviction) => {
                let victims = eviction.evicted.len();
                tracing::warn!(lock = %target, reason = ?reason, victims, "lock released by force");
                self.engine.tell_victims(&eviction, &reason);
                Ok(eviction)
            }
            Err(source) => Err(LockError::Backend {
                target,
                phase: Phase::Evict,
                source,
            }),
        }
    }
}

impl Services {
    /// Ends the leases of this process that an eviction ended on the backend. Owner ids are unique, so the lock need
    /// not be compared.
    fn tell_victims(&self, eviction: &Eviction, reason: &str) {
        for (ticket, lease) in self.watchdog.leases() {
            if eviction.evicted.contains(&lease.owner) && lease.is_active() {
                lease.end(LostCause::Evicted {
                    reason: reason.to_owned(),
                });
                self.watchdog.forget(ticket, &lease);
            }
        }
    }
}
