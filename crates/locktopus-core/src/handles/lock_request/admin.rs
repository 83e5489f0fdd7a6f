//! Operators' view of a lock: inspect it, or release it by force, without holding it.

use locktopus_contract::clock::timer_in;
use locktopus_contract::{
    BackendError, Eviction, Executed, HolderState, LockKind, LockState, LockTarget, Mode, OwnerId,
    ReleaseOutcome, ReleaseRequest,
};

use super::LockRequest;
use crate::engine::break_reason::BreakReason;
use crate::engine::error::{LockError, LostCause, Phase};
use crate::engine::holding::services::Services;
use crate::handles::any_guard::AnyGuard;
use crate::handles::ticket::LeaseTicket;

impl<G: AnyGuard> LockRequest<G> {
    /// Reads the lock's state from the backend: the holders and the rest of their leases, the last
    /// token, the waiters in order, and the free permits.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("invoice:42").acquire().await?;
    /// let state = locks.lock("invoice:42").inspect().await?;
    /// assert_eq!(state.holder().map(|holder| &holder.owner), Some(guard.owner_id()));
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
        self.state_of(self.target()?).await
    }

    async fn state_of(&self, target: LockTarget) -> Result<LockState, LockError> {
        let deadline = timer_in(self.services.call_timeout());
        let call = self.services.backend.inspect(&target, deadline);
        let state = self.services.within(deadline, call).await;
        state.map_err(|source| LockError::Backend {
            target,
            phase: Phase::Inspect,
            source,
        })
    }

    /// The target whose state has the token and all holders: the write half of a read-write lock.
    fn whole_target(&self) -> Result<LockTarget, LockError> {
        let target = self.target()?;
        Ok(match target.kind() {
            LockKind::Read => LockTarget::new(target.name().clone(), LockKind::Write),
            _ => target,
        })
    }

    /// Returns whether the ticket's owner still holds the lock. Unlike
    /// [`adopt`](LockRequest::adopt), it does not change the lease.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
        Ok(holders
            .iter()
            .any(|holder| &holder.owner == ticket.owner_id()))
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
    /// log it, and they get it from [`lost`](crate::Lease::lost) and in errors.
    /// [`break_reason`](Self::break_reason) returns it too. On Redis this
    /// needs the key pattern `locktopus_instance:*`. Everyone who may read the locks may read the
    /// reason.
    ///
    /// Every hold ends: all readers and the writer of a read-write lock, all permits of a semaphore
    /// (which become free again). Waiters keep their places.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
        let target = self.whole_target()?;
        if self.services.closing.is_cancelled() {
            return Err(LockError::ShutDown);
        }
        // The reason must be stored before a victim or a watcher looks for it.
        let before = self
            .services
            .leave_reason_for_holders(&target, &reason)
            .await;
        let deadline = timer_in(self.services.call_timeout());
        let call = self.services.backend.evict(&target, deadline);
        match self.services.within(deadline, call).await {
            Ok(eviction) => {
                let victims = eviction.evicted.len();
                if victims > 0 {
                    tracing::warn!(lock = %target, reason = ?reason, victims, "lock released by force");
                }
                self.services.tell_victims(&eviction, &reason);
                // These became holders after the reason was stored.
                let missed = |owner: &&OwnerId| !before.contains(owner);
                let missed: Vec<_> = eviction.evicted.iter().filter(missed).collect();
                self.services
                    .leave_reason(&target, &missed, Some(&reason))
                    .await;
                Ok(eviction)
            }
            Err(source) => {
                if source.executed() == Executed::No {
                    let before: Vec<_> = before.iter().collect();
                    self.services.leave_reason(&target, &before, None).await;
                }
                Err(LockError::Backend {
                    target,
                    phase: Phase::Evict,
                    source,
                })
            }
        }
    }

    /// Like [`force_release`](Self::force_release), but ends the hold of this owner and no other.
    /// For an operator who has seen who is stuck: by now the lock may have another holder.
    ///
    /// [`Eviction::evicted`] is empty if this owner does not hold the lock. Then nothing was done.
    /// The other holders of a read-write lock or a semaphore keep it.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// let stuck = locks.lock("import").acquire().await?;
    /// let owner = stuck.owner_id().clone();
    /// # let _ = stuck.release().await;
    /// let next = locks.lock("import").acquire().await?; // meanwhile, by someone else
    /// let eviction = locks.lock("import").force_release_of(&owner, "it hangs").await?;
    /// assert!(eviction.evicted.is_empty());
    /// next.ensure_valid()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Name`] and [`LockError::Backend`], also for a permit semaphore, whose permits
    /// all have their own id.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe, as `force_release`. But you can call it again for the same owner.
    pub async fn force_release_of(
        self,
        owner: &OwnerId,
        reason: impl Into<String>,
    ) -> Result<Eviction, LockError> {
        let reason = reason.into();
        let target = self.whole_target()?;
        if self.services.closing.is_cancelled() {
            return Err(LockError::ShutDown);
        }
        let failed = |source| LockError::Backend {
            target: target.clone(),
            phase: Phase::Evict,
            source,
        };
        if target.kind() == &LockKind::PermitSemaphore {
            let message = "each permit has an id of its own, so only all of them can be taken away";
            let name = self.services.backend.info().name;
            return Err(failed(BackendError::unsupported(name, message)));
        }
        let state = self.state_of(target.clone()).await?;
        let holds: Vec<_> = state
            .holders
            .iter()
            .filter(|hold| &hold.owner == owner)
            .collect();
        if holds.is_empty() {
            return Ok(Eviction::new(Vec::new(), None));
        }
        // The reason must be stored before the victim or a watcher looks for it.
        self.services
            .leave_reason(&target, &[owner], Some(&reason))
            .await;
        let (mut ended, mut fenced) = (None, false);
        for hold in holds {
            let request = self.release_of(&target, hold);
            let call = self.services.backend.release(&request);
            match self.services.within(request.deadline, call).await {
                Ok(ReleaseOutcome::Released) => {
                    fenced |= request.target.kind().has_tokens();
                    ended = Some(request.target);
                }
                Ok(_) => {}
                Err(source) => {
                    if source.executed() == Executed::No && ended.is_none() {
                        self.services.leave_reason(&target, &[owner], None).await;
                    }
                    return Err(failed(source));
                }
            }
        }
        let Some(ended) = ended else {
            self.services.leave_reason(&target, &[owner], None).await;
            return Ok(Eviction::new(Vec::new(), None));
        };
        tracing::warn!(lock = %ended, ?reason, ?owner, "lock released by force");
        // It held the lock when this token was read, and its own are not greater.
        let fence = state.last_token.filter(|_| fenced);
        let eviction = Eviction::new(vec![owner.clone()], fence);
        self.services.tell_victims(&eviction, &reason);
        Ok(eviction)
    }

    /// Returns why this owner lost this lock to [`force_release`](Self::force_release).
    ///
    /// `None` if it did not, if that was more than a day ago, or if the backend keeps no records of
    /// instances.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// let backend = MemoryBackend::new();
    /// let worker = Locktopus::builder(backend.another_client()).build()?;
    /// let stuck = worker.lock("import").acquire().await?;
    ///
    /// let operator = Locktopus::builder(backend).build()?;
    /// operator.lock("import").force_release("hangs since 3 am").await?;
    ///
    /// let broken = worker.lock("import").break_reason(stuck.owner_id()).await?;
    /// assert_eq!(broken.expect("it was broken").reason, "hangs since 3 am");
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
    pub async fn break_reason(self, owner: &OwnerId) -> Result<Option<BreakReason>, LockError> {
        let target = self.target()?;
        match self.services.reasons(&[(&target, owner)]).await {
            Ok(mut found) => Ok(found.pop().flatten()),
            Err(source) => Err(LockError::Backend {
                target,
                phase: Phase::Inspect,
                source,
            }),
        }
    }

    fn release_of(&self, target: &LockTarget, hold: &HolderState) -> ReleaseRequest {
        let is_rw = target.kind().family() == LockKind::Write.family();
        let kind = match hold.mode {
            Mode::Read if is_rw => LockKind::Read,
            Mode::Exclusive if is_rw => LockKind::Write,
            _ => target.kind().clone(),
        };
        let target = LockTarget::new(target.name().clone(), kind);
        let deadline = timer_in(self.services.call_timeout());
        let mut request = ReleaseRequest::new(target, hold.owner.clone(), deadline);
        if hold.mode == Mode::Permits {
            request.permits = u32::try_from(hold.holds).unwrap_or(u32::MAX);
        }
        request
    }
}

impl Services {
    /// Stores the reason for the present holders and returns them; none if they cannot be read.
    async fn leave_reason_for_holders(&self, target: &LockTarget, reason: &str) -> Vec<OwnerId> {
        if self.backend.instances().is_none() {
            return Vec::new();
        }
        let deadline = timer_in(self.call_timeout());
        let call = self.backend.inspect(target, deadline);
        let state = self.within(deadline, call).await;
        let holders = state.map(|state| state.holders).unwrap_or_default();
        let owners: Vec<_> = holders.into_iter().map(|holder| holder.owner).collect();
        let all: Vec<_> = owners.iter().collect();
        self.leave_reason(target, &all, Some(reason)).await;
        owners
    }

    /// Ends this process's leases that an eviction ended on the backend. The owner ids that this
    /// process makes are unique, so there is no need to compare the lock.
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
