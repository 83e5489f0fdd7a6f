//! Operators' view of a lock: inspect it, or release it by force, without holding it.

use locktopus_contract::clock::timer_in;
use locktopus_contract::{Eviction, Executed, LockKind, LockState, LockTarget, OwnerId};

use super::LockRequest;
use crate::engine::error::{LockError, LostCause, Phase};
use crate::engine::holding::services::Services;
use crate::handles::any_guard::AnyGuard;
use crate::handles::ticket::LeaseTicket;

impl<G: AnyGuard> LockRequest<G> {
    /// Reads the lock's state from the backend: the holders and the rest of their leases, the last
    /// token, the waiters in order, and the free permits.
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

    /// Returns whether the ticket's owner still holds the lock. Unlike
    /// [`adopt`](LockRequest::adopt), it does not change the lease.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("upload:7").acquire().await?;
    /// let ticket = guard.into_ticket().expect("held by this guard alone");
    /// assert!(locks.lock("upload:7").is_held_by(&ticket).await?);
    /// locks.lock("upload:7").adopt(&ticket).await?.release().await?;
    /// assert!(!locks.lock("upload:7").is_held_by(&ticket).await?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Ticket`] if it is for another lock or for another number of permits;
    /// [`LockError::Name`] and [`LockError::Backend`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; reads only.
    pub async fn is_held_by(self, ticket: &LeaseTicket) -> Result<bool, LockError> {
        ticket.check(&self.target()?, self.checked_permits()?)?;
        let holders = self.inspect().await?.holders;
        Ok(holders.iter().any(|holder| &holder.owner == ticket.owner()))
    }

    /// Takes the lock away from its holders and hands it to the next waiter. For an operator who
    /// knows that the holder is stuck.
    ///
    /// **The victim may continue working.** It learns of its loss ([`LostCause::Evicted`]) at its
    /// next renewal, or at once if it is in this process. Only a resource that checks fencing
    /// tokens rejects its late writes: later grants have greater tokens than [`Eviction::fence`].
    ///
    /// The reason is logged here as a warning, with the number of holders. The backend keeps its
    /// first 256 characters for a day, if it keeps records of instances. Victims in other processes
    /// log it, and they get it from [`lost`](crate::LockGuard::lost) and in errors.
    /// [`Locktopus::break_reason`](crate::Locktopus::break_reason) returns it too. On Redis this
    /// needs the key pattern `locktopus_instance:*`. Everyone who may read the locks may read the
    /// reason.
    ///
    /// Every hold ends: all readers and the writer of a read-write lock, all permits of a semaphore
    /// (which become free again). Waiters keep their places.
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
    /// [`LockError::Name`] and [`LockError::Backend`]. Not repeated if it may have run: a second
    /// time it could hit the next holder.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the lock may or may not be taken away, victims in this process may not
    /// learn of it before their next renewal, and the reason may not be kept.
    pub async fn force_release(self, reason: impl Into<String>) -> Result<Eviction, LockError> {
        let reason = reason.into();
        let mut target = self.target()?;
        if target.kind() == &LockKind::Read {
            // Evicting either half ends both, and a writer's token must be fenced.
            target = LockTarget::new(target.name().clone(), LockKind::Write);
        }
        if self.engine.closing.is_cancelled() {
            return Err(LockError::ShutDown);
        }
        // The reason must be stored before a victim or a watcher looks for it.
        let before = self.engine.leave_reason_for_holders(&target, &reason).await;
        let deadline = timer_in(self.engine.call_timeout());
        match self.engine.evict(&target, deadline).await {
            Ok(eviction) => {
                let victims = eviction.evicted.len();
                tracing::warn!(lock = %target, reason = ?reason, victims, "lock released by force");
                self.engine.tell_victims(&eviction, &reason);
                // These became holders after the reason was stored.
                let missed = |owner: &&OwnerId| !before.contains(owner);
                let missed: Vec<_> = eviction.evicted.iter().filter(missed).collect();
                self.engine.leave_reason(&missed, Some(&reason)).await;
                Ok(eviction)
            }
            Err(source) => {
                if source.executed() == Executed::No {
                    let before: Vec<_> = before.iter().collect();
                    self.engine.leave_reason(&before, None).await;
                }
                Err(LockError::Backend {
                    target,
                    phase: Phase::Evict,
                    source,
                })
            }
        }
    }
}

impl Services {
    /// Stores the reason for the present holders and returns them; none if they cannot be read.
    async fn leave_reason_for_holders(&self, target: &LockTarget, reason: &str) -> Vec<OwnerId> {
        if self.backend.instances().is_none() {
            return Vec::new();
        }
        let state = self.inspect(target, timer_in(self.call_timeout())).await;
        let holders = state.map(|state| state.holders).unwrap_or_default();
        let owners: Vec<_> = holders.into_iter().map(|holder| holder.owner).collect();
        let all: Vec<_> = owners.iter().collect();
        self.leave_reason(&all, Some(reason)).await;
        owners
    }

    /// Ends this process's leases that an eviction ended on the backend. Owner ids are unique, so
    /// there is no need to compare the lock.
    fn tell_victims(&self, eviction: &Eviction, reason: &str) {
        for lease in self.watchdog.leases() {
            if eviction.evicted.contains(&lease.owner) && lease.is_active() {
                lease.end(LostCause::Evicted {
                    reason: reason.to_owned(),
                });
                self.watchdog.forget(&lease);
            }
        }
    }
}
