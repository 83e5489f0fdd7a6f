//! Guards: proof that a lock is held, and the way to give it back.

mod release;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::release::Owed;
use crate::clock::{self, timer_in};
use crate::error::{LockError, LostCause, Phase};
use crate::fence::Fence;
use crate::kind::LockTarget;
use crate::lease::{Lease, LeaseState};
use crate::name::LockName;
use crate::owner::OwnerId;
use crate::request::{ExtendOutcome, ExtendRequest};
use crate::safety_mode::SafetyMode;
use crate::services::Services;
use crate::ticket::LeaseTicket;
use crate::token::FencingToken;
use crate::watchdog;

/// A held lock.
///
/// **Dropping it does not release the lock at once.** Drop stops renewal now and hands the release to a
/// background task; it never blocks and never panics, also outside a runtime. If that task cannot run any
/// more, the lock is free when its lease has ended. [`release`](Self::release) is the reliable way, and
/// the only one that tells whether the lock was held to the end.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use locktopus_core::{Locktopus, MemoryBackend};
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
    /// `None` only while `release` or `into_ticket` takes the guard apart.
    held: Option<Held>,
}

/// One hold of a lease. Of no use outside this module, so that there is none without a guard: whatever happens to
/// whoever took the lock, it is given back.
struct Held {
    services: Arc<Services>,
    state: Arc<LeaseState>,
    watch: watchdog::Ticket,
}

impl Held {
    /// Ends this hold. What comes back, if it was the last one and nobody else of this process goes on with the
    /// lease, is what the backend must be given back.
    fn close(self, cause: LostCause) -> Option<Owed> {
        self.state.remove_hold().then(|| self.end(cause)).flatten()
    }

    /// Ends the lease for all who share it.
    fn end(self, cause: LostCause) -> Option<Owed> {
        if !self.state.begin_release() {
            return None;
        }
        let Some(session) = self.state.session() else {
            self.services.watchdog.forget(self.watch, &self.state);
            self.state.end(cause);
            return Some(Owed::new(self.services, self.state));
        };
        self.state.end(cause.clone());
        if cause == LostCause::Transferred {
            session.leave();
        } else if session.pass(&self.services) {
            return None;
        }
        session.close(&self.services, cause)
    }
}

impl LockGuard {
    /// The guard of a hold that just began.
    pub(crate) fn new(
        services: Arc<Services>,
        state: Arc<LeaseState>,
        watch: watchdog::Ticket,
    ) -> Self {
        let held = Held {
            services,
            state,
            watch,
        };
        Self { held: Some(held) }
    }

    fn held(&self) -> &Held {
        self.held
            .as_ref()
            .expect("a guard holds its lease until it is consumed")
    }

    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.held().services
    }

    pub(crate) fn state(&self) -> &Arc<LeaseState> {
        &self.held().state
    }

    pub(crate) fn watch(&self) -> watchdog::Ticket {
        self.held().watch
    }

    /// A read-only view of the lease, to be passed to whatever works under the lock.
    #[must_use]
    pub fn lease(&self) -> Lease {
        Lease::new(Arc::clone(&self.held().state))
    }

    pub(crate) fn target(&self) -> &LockTarget {
        &self.held().state.target
    }

    /// The lock's name, namespace included.
    #[must_use]
    pub fn name(&self) -> &LockName {
        self.held().state.target.name()
    }

    /// The id under which the lock is held. A secret: it is all that is needed to release the lock.
    #[must_use]
    pub fn owner(&self) -> &OwnerId {
        &self.held().state.owner
    }

    /// The fencing token of this grant; `None` for readers, permits and a
    /// [single-key mutex](crate::MutexProfile::single_key).
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.held().state.token
    }

    /// The token bound to this lock and this holder. See [`Lease::fence`].
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.lease().fence()
    }

    /// The mode under which it was granted: what it is worth when a server fails.
    #[must_use]
    pub fn safety(&self) -> SafetyMode {
        self.held().state.safety()
    }

    /// How many permits of a semaphore are held; 1 for locks.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.held().state.permits
    }

    /// See [`Lease::valid_until`].
    #[must_use]
    pub fn valid_until(&self) -> Instant {
        self.held().state.valid_until().timer()
    }

    /// See [`Lease::remaining`].
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.lease().remaining()
    }

    /// Checks that the lock may still be believed in. See [`Lease::ensure_valid`].
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] with the cause.
    pub fn ensure_valid(&self) -> Result<(), LockError> {
        self.lease().ensure_valid()
    }

    /// Waits until the lock is lost, and says why. See [`Lease::lost`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn lost(&self) -> LostCause {
        self.lease().lost().await
    }

    /// A token that is cancelled when the lock is lost. See [`Lease::lost_token`].
    #[must_use]
    pub fn lost_token(&self) -> CancellationToken {
        self.lease().lost_token()
    }

    /// How many guards share this lease.
    #[must_use]
    pub fn hold_count(&self) -> usize {
        self.held().state.holds()
    }

    /// Enters the lock again: another guard on the same lease and token, without asking the backend. The
    /// lock is released with the last guard.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lease has ended, [`LockError::NotReentrant`] for a mutex.
    pub fn reenter(&self) -> Result<Self, LockError> {
        let held = self.held();
        if !held.state.target.kind().is_reentrant() {
            return Err(LockError::NotReentrant {
                target: held.state.target.clone(),
            });
        }
        self.ensure_valid()?;
        if !held.state.try_add_hold() {
            return Err(LockError::Lost {
                target: held.state.target.clone(),
                cause: LostCause::Released,
            });
        }
        let (services, state) = (Arc::clone(&held.services), Arc::clone(&held.state));
        Ok(Self::new(services, state, held.watch))
    }

    /// Makes the lease last at least `lease` from now, and returns until when it may be believed in.
    ///
    /// Never shortens a lease. If the watchdog renews this lock, it goes on with the new lease. An
    /// extension does not reach past the maximum hold time.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lock was lost before or turns out to be; [`LockError::Backend`] if the
    /// backend failed, in which case the deadline is unchanged; [`LockError::Option`] for a bad lease.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the extension may or may not happen; the guard's deadline only moves if it is known to
    /// have happened.
    pub async fn extend(&self, lease: Duration) -> Result<Instant, LockError> {
        let Held {
            services,
            state,
            watch,
        } = self.held();
        let lease = services.settings.check_lease("extend", lease)?;
        self.ensure_valid()?;
        let sent = clock::now();
        state.asked_for(lease);
        let request = ExtendRequest {
            target: state.target.clone(),
            owner: state.owner.clone(),
            lease,
            permits: state.permits,
        };
        let deadline = timer_in(services.call_timeout());
        let cause = match services.extend_one(request, deadline).await {
            Ok(ExtendOutcome::Extended) => {
                state.extended(lease, services.settings.margin.valid_until(sent, lease));
                services.watchdog.extended(*watch, state.core());
                self.ensure_valid()?;
                return Ok(self.valid_until());
            }
            Ok(ExtendOutcome::Missing) => LostCause::Missing,
            Ok(ExtendOutcome::TakenOver) => LostCause::TakenOver,
            Err(source) => {
                return Err(LockError::Backend {
                    target: state.target.clone(),
                    phase: Phase::Extend,
                    source,
                });
            }
        };
        state.core().end(cause.clone());
        services.watchdog.forget(*watch, state.core());
        Err(LockError::Lost {
            target: state.target.clone(),
            cause,
        })
    }

    /// Gives the lock back and waits for the answer. If other guards share the lease, only this hold ends. If a task of
    /// this process goes on with the lease, or it is [kept](crate::LockRequest::lease_cache), the backend is not asked.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lock had been lost before: what was done under it may have overlapped
    /// with another holder. [`LockError::Backend`] if the backend gave no definite answer within its call
    /// timeout; releasing then goes on in the background until the lease has ended.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: if the future is dropped, releasing goes on in the background.
    pub async fn release(mut self) -> Result<(), LockError> {
        let Some(held) = self.held.take() else {
            return Ok(());
        };
        let state = Arc::clone(&held.state);
        let lost_before = state.lost().cloned();
        let Some(owed) = held.close(LostCause::Released) else {
            return lost_before.map_or(Ok(()), |cause| {
                let target = state.target.clone();
                Err(LockError::Lost { target, cause })
            });
        };
        owed.give_back(lost_before).await
    }

    /// Turns the guard into a ticket with which another process can take over the lease, by
    /// [`LockRequest::adopt`](crate::LockRequest::adopt). Renewal stops now; whoever adopts the ticket must
    /// do so before the lease ends.
    ///
    /// # Errors
    ///
    /// Gives the guard back if the lease is lost or shared with other guards, or if a read-write lock is held for
    /// reading and for writing at once.
    pub fn into_ticket(mut self) -> Result<LeaseTicket, Self> {
        // From here on nobody can enter the lease again.
        let alone = self.ensure_valid().is_ok()
            && self.held().state.loan().is_none_or(|loan| loan.is_over())
            && self.held().state.remove_only_hold();
        let Some(held) = self.held.take_if(|_| alone) else {
            return Err(self);
        };
        let ticket = LeaseTicket::new(&held.state);
        if let Some(owed) = held.end(LostCause::Transferred) {
            owed.left_to_others();
        }
        Ok(ticket)
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        // What is owed then goes to the reaper.
        if let Some(held) = self.held.take() {
            drop(held.close(LostCause::Released));
        }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockGuard")
            .field(&self.held.as_ref().map(|held| &held.state))
            .finish()
    }
}
