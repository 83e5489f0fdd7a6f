//! Requests: what kind of acquisition is wanted, and the ways to ask for it.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::acquire::{self, Plan, Wait};
use crate::clock;
use crate::error::{LockError, LostCause, OptionError, Phase};
use crate::guard::{Held, LockGuard};
use crate::kind::{LockKind, LockTarget};
use crate::lease::{Grant, Lease, LeaseState};
use crate::name::LockName;
use crate::owner_handle::{Entered, Owner};
use crate::request::{ExtendOutcome, ExtendRequest, LockState};
use crate::services::Services;
use crate::settings::WaitStrategy;
use crate::ticket::LeaseTicket;

/// A lock that somebody is about to ask for. Made by [`Locktopus::lock`](crate::Locktopus::lock) and its
/// siblings; nothing happens until one of the asynchronous methods is awaited. Awaiting the request itself
/// is [`acquire`](Self::acquire).
///
/// Without options: the lock is waited for as long as it takes, held for a watchdog lease of 30 s that is
/// renewed every 10 s, and waiting sleeps until the backend says that the lock was released.
#[must_use = "a lock request does nothing until `acquire`, `try_acquire` or `run` is awaited"]
#[derive(Clone)]
pub struct LockRequest {
    services: Arc<Services>,
    name: String,
    kind: LockKind,
    lease: Option<Duration>,
    watchdog: Option<Duration>,
    max_hold: Option<Duration>,
    wait: Option<Duration>,
    strategy: Option<WaitStrategy>,
    cancel: Option<CancellationToken>,
    owner: Option<Owner>,
}

impl LockRequest {
    pub(crate) fn new(services: Arc<Services>, name: String, kind: LockKind) -> Self {
        Self {
            services,
            name,
            kind,
            lease: None,
            watchdog: None,
            max_hold: None,
            wait: None,
            strategy: None,
            cancel: None,
            owner: None,
        }
    }

    /// Holds the lock for this long and no longer: the watchdog does not renew it. At least
    /// [`MIN_LEASE`](crate::MIN_LEASE), at most the configured maximum; cut to whole milliseconds.
    pub fn lease(mut self, lease: Duration) -> Self {
        (self.lease, self.watchdog) = (Some(lease), None);
        self
    }

    /// Holds the lock until it is released, by a lease of this length that the watchdog renews after a
    /// third of it. A crashed holder blocks the lock for at most this long.
    pub fn watchdog(mut self, lease: Duration) -> Self {
        (self.watchdog, self.lease) = (Some(lease), None);
        self
    }

    /// Declares the lock lost ([`LostCause::MaxHold`]) after this long, renewal or not, so that work that
    /// hangs cannot keep it for ever. Counted from before the successful attempt was sent.
    pub fn max_hold(mut self, hold: Duration) -> Self {
        self.max_hold = Some(hold);
        self
    }

    /// Gives up with [`LockError::WaitTimeout`] if the lock is not free within this time. The first attempt
    /// always has 50 ms for its answer.
    pub fn wait_at_most(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Sets how to wait while somebody else holds the lock.
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

    /// Acquires on behalf of this owner, who may enter a reentrant lock again.
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.owner = Some(owner.clone());
        self
    }

    /// Takes the lock, waiting for it if need be.
    ///
    /// # Errors
    ///
    /// [`LockError::Name`] and [`LockError::Option`] before anything is sent; [`LockError::WaitTimeout`],
    /// [`LockError::Cancelled`] and [`LockError::ShutDown`] if waiting ended without the lock;
    /// [`LockError::Backend`] at once if the backend refuses, and after ten seconds
    /// ([`LocktopusBuilder::outage`](crate::LocktopusBuilder::outage)) if it cannot be reached;
    /// [`LockError::NotReentrant`] instead of a deadlock if the owner already holds this mutex;
    /// [`LockError::Lost`] if the owner's earlier hold of this lock is lost and not yet dropped.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future leaves no lock, no waiter and no task behind. What an attempt under
    /// way may still take is given back in the background. The place among the waiters is lost.
    pub async fn acquire(self) -> Result<LockGuard, LockError> {
        let wait = self.wait.map_or(Wait::Forever, Wait::AtMost);
        let started = Instant::now();
        match self.enter(wait).await? {
            Some(guard) => Ok(guard),
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

    /// Takes the lock if it is free right now; `None` if somebody else holds it.
    ///
    /// One attempt, so [`wait_at_most`](Self::wait_at_most) and the strategy play no part.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), except that a backend that cannot be reached is an error at once.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe, as [`acquire`](Self::acquire).
    pub async fn try_acquire(self) -> Result<Option<LockGuard>, LockError> {
        self.enter(Wait::Not).await
    }

    /// Does `work` under the lock: takes it, runs the work, gives it back. The work is dropped at its
    /// current await point as soon as the lock is lost.
    ///
    /// If the work finishes and only the release finds that the lock had been lost, the result is returned
    /// all the same and a warning is logged: the work is done, and throwing its result away undoes nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use locktopus_core::{Locktopus, MemoryBackend};
    /// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// let total = locks.lock("report").run(|lease| async move {
    ///     lease.ensure_valid()?;
    ///     Ok::<_, locktopus_core::LockError>(40 + 2)
    /// }).await??;
    /// assert_eq!(total, 42);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`LockError::Lost`] if the lock was lost before the work was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work where it stands and gives the lock back in the background.
    pub async fn run<F, Fut>(self, work: F) -> Result<Fut::Output, LockError>
    where
        F: FnOnce(Lease) -> Fut,
        Fut: Future,
    {
        let guard = self.acquire().await?;
        let target = guard.target().clone();
        let done = tokio::select! {
            biased;
            cause = guard.lost() => Err(cause),
            output = work(guard.lease()) => Ok(output),
        };
        match done {
            Ok(output) => {
                if let Err(error) = guard.release().await {
                    tracing::warn!(lock = %target, %error, "the work is done, but releasing its lock failed");
                }
                Ok(output)
            }
            Err(cause) => {
                drop(guard);
                Err(LockError::Lost { target, cause })
            }
        }
    }

    /// Takes over a lease from another process, with the same owner id and fencing token.
    ///
    /// # Errors
    ///
    /// [`LockError::Ticket`] if the ticket is for another lock; [`LockError::Lost`] if its lease has ended
    /// meanwhile; [`LockError::Backend`] if the backend failed, in which case the ticket can be tried again.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the lease may or may not have been extended, and nobody renews it.
    pub async fn adopt(self, ticket: &LeaseTicket) -> Result<LockGuard, LockError> {
        let plan = self.plan(Wait::Not)?;
        ticket.check(&plan.target)?;
        let services = self.services;
        let sent = clock::now();
        let (target, owner) = (plan.target.clone(), ticket.owner().clone());
        let request = ExtendRequest {
            target: target.clone(),
            owner: owner.clone(),
            lease: plan.lease,
        };
        let deadline = Instant::now() + services.call_timeout();
        let cause = match services.extend_one(request, deadline).await {
            Ok(ExtendOutcome::Extended) => {
                let state = Arc::new(LeaseState::new(Grant {
                    target,
                    owner,
                    token: ticket.token(),
                    lease: plan.lease,
                    renewed: plan.renewed,
                    hold_until: plan.max_hold.and_then(|hold| sent.checked_add(hold)),
                    granted_at: clock::now(),
                    valid_until: services.settings.margin.valid_until(sent, plan.lease),
                    late_attempt: false,
                }));
                let Some(watch) = services.watch(&state) else {
                    return Err(LockError::ShutDown);
                };
                let guard = LockGuard::new(Held {
                    services,
                    state,
                    watch,
                });
                guard.ensure_valid()?;
                return Ok(guard);
            }
            Ok(ExtendOutcome::Missing) => LostCause::Missing,
            Ok(ExtendOutcome::TakenOver) => LostCause::TakenOver,
            Err(source) => {
                return Err(LockError::Backend {
                    target,
                    phase: Phase::Extend,
                    source,
                });
            }
        };
        Err(LockError::Lost { target, cause })
    }

    /// Reads the lock's state from the backend.
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
        let deadline = Instant::now() + self.services.call_timeout();
        self.services
            .inspect(&target, deadline)
            .await
            .map_err(|source| LockError::Backend {
                target,
                phase: Phase::Inspect,
                source,
            })
    }

    async fn enter(&self, wait: Wait) -> Result<Option<LockGuard>, LockError> {
        let mut plan = self.plan(wait)?;
        let Some(owner) = &self.owner else {
            return Ok(acquire::acquire(&self.services, &plan)
                .await?
                .map(LockGuard::new));
        };
        let gate = owner.gate(Arc::as_ptr(&self.services) as usize, &plan.target);
        let started = Instant::now();
        // Another task of the same owner may be acquiring; what it gets is shared.
        let mut entered = tokio::select! {
            biased;
            entered = gate.lock() => entered,
            error = self.interrupted(&plan, started) => return error.map_or(Ok(None), Err),
        };
        if let Some((state, watch)) = entered
            .as_ref()
            .and_then(|e| Some((e.state.upgrade()?, e.watch)))
            && state.try_add_hold()
        {
            let guard = LockGuard::new(Held {
                services: Arc::clone(&self.services),
                state,
                watch,
            });
            if matches!(plan.target.kind(), LockKind::Reentrant) {
                guard.ensure_valid()?;
                return Ok(Some(guard));
            }
            return Err(LockError::NotReentrant {
                target: plan.target,
            });
        }
        if let Wait::AtMost(limit) = plan.wait {
            plan.wait = Wait::AtMost(limit.saturating_sub(started.elapsed()));
        }
        let Some(held) = acquire::acquire(&self.services, &plan).await? else {
            return Ok(None);
        };
        *entered = Some(Entered {
            state: Arc::downgrade(&held.state) as Weak<_>,
            watch: held.watch,
        });
        Ok(Some(LockGuard::new(held)))
    }

    /// Completes when a wait behind another task of the same owner must end without the lock.
    async fn interrupted(&self, plan: &Plan, started: Instant) -> Option<LockError> {
        let target = plan.target.clone();
        tokio::select! {
            () = self.services.closing.cancelled() => Some(LockError::ShutDown),
            () = plan.cancelled() => Some(LockError::Cancelled { target }),
            () = out_of_time(plan, started) => (plan.wait != Wait::Not).then(|| LockError::WaitTimeout {
                target,
                waited: started.elapsed(),
                holder_remaining: None,
                source: None,
            }),
        }
    }

    fn target(&self) -> Result<LockTarget, LockError> {
        let name = LockName::in_namespace(&self.services.settings.namespace, &self.name)?;
        let target = LockTarget::new(name, self.kind.clone());
        self.services.backend.check(&target)?;
        Ok(target)
    }

    fn plan(&self, wait: Wait) -> Result<Plan, LockError> {
        if self.services.closing.is_cancelled() {
            return Err(LockError::ShutDown);
        }
        let settings = &self.services.settings;
        let (option, lease) = match (self.lease, self.watchdog) {
            (Some(lease), _) => ("lease", lease),
            (None, watchdog) => ("watchdog", watchdog.unwrap_or(settings.watchdog_lease)),
        };
        if self.max_hold.is_some_and(|hold| hold.is_zero()) {
            return Err(
                OptionError::new("max_hold", Duration::ZERO, "must be longer than zero").into(),
            );
        }
        Ok(Plan {
            target: self.target()?,
            lease: settings.check_lease(option, lease)?,
            renewed: self.lease.is_none(),
            max_hold: self.max_hold,
            strategy: self.strategy.unwrap_or(settings.strategy).check()?,
            wait,
            cancel: self.cancel.clone(),
        })
    }
}

async fn out_of_time(plan: &Plan, started: Instant) {
    match plan.wait.limit(started) {
        Some(limit) => tokio::time::sleep_until(limit).await,
        None => std::future::pending().await,
    }
}

impl IntoFuture for LockRequest {
    type Output = Result<LockGuard, LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquire())
    }
}

impl fmt::Debug for LockRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockRequest")
            .field("name", &self.name)
            .field("kind", &self.kind.as_str())
            .field("lease", &self.lease)
            .field("watchdog", &self.watchdog)
            .field("max_hold", &self.max_hold)
            .field("wait", &self.wait)
            .field("strategy", &self.strategy)
            .finish_non_exhaustive()
    }
}
