//! One client on one lock, for cases that call the backend directly.

use std::time::Duration;

use locktopus_core::{
    AcquireAttempt, AttemptOutcome, BackendError, CounterAction, CounterOutcome, CounterRequest,
    DynBackend, Eviction, ExtendOutcome, ExtendRequest, FencingToken, HolderState, LockKind,
    LockState, LockTarget, OwnerId, ReleaseOutcome, ReleaseRequest, WakeStream,
};
use tokio::time::Instant;

use crate::rule::Rule;
use crate::timing::LONG;

/// The operation that gives a kind its number, unless it has one.
pub(crate) fn initial(kind: &LockKind, number: u64) -> CounterAction {
    match kind {
        LockKind::RateLimiter => CounterAction::Rate {
            permits: number,
            per: LONG * 10,
            keep: true,
        },
        _ => CounterAction::Initialise(number),
    }
}

/// A client on one lock. If a healthy store would answer and this one does not, its methods fail
/// the case.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Client {
    /// The backend.
    pub backend: DynBackend,
    /// The lock.
    pub target: LockTarget,
}

impl Client {
    /// A client on a lock.
    #[must_use]
    pub fn new(backend: DynBackend, target: LockTarget) -> Self {
        Self { backend, target }
    }

    /// The same client on another lock.
    #[must_use]
    pub fn on(&self, target: LockTarget) -> Self {
        Self::new(self.backend.clone(), target)
    }

    /// The deadline of a call made now.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.backend.info().call_timeout
    }

    /// A plain attempt, to send or modify.
    #[must_use]
    pub fn attempt_of(&self, owner: &OwnerId, lease: Duration) -> AcquireAttempt {
        let (target, owner) = (self.target.clone(), owner.clone());
        AcquireAttempt::new(target, owner, lease, self.deadline())
    }

    /// One attempt with any answer.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn try_attempt(
        &self,
        owner: &OwnerId,
        lease: Duration,
    ) -> Result<AttemptOutcome, BackendError> {
        self.backend.attempt(&self.attempt_of(owner, lease)).await
    }

    /// One attempt, which must be answered.
    pub async fn attempt(&self, owner: &OwnerId, lease: Duration) -> AttemptOutcome {
        Rule::Errors.ok(self.try_attempt(owner, lease).await, "an attempt")
    }

    /// One attempt, which must be granted.
    pub async fn take(&self, owner: &OwnerId, lease: Duration) -> Option<FencingToken> {
        match self.attempt(owner, lease).await {
            AttemptOutcome::Granted { token } => token,
            refused => Rule::Exclusion.broken(format_args!(
                "a free lock, or the owner's own, was answered {refused:?}"
            )),
        }
    }

    /// One attempt of a stranger, which must not be granted.
    pub async fn refused(&self, stranger: &OwnerId) -> Option<Duration> {
        match self.attempt(stranger, LONG).await {
            AttemptOutcome::Busy { remaining } => remaining,
            AttemptOutcome::Granted { .. } => {
                Rule::Exclusion.broken("two owners were granted one lock")
            }
            AttemptOutcome::Queued { .. } => {
                Rule::Queue.broken("an attempt got a place that it did not ask for")
            }
        }
    }

    /// One release with any answer.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn try_release(&self, owner: &OwnerId) -> Result<ReleaseOutcome, BackendError> {
        let (target, owner) = (self.target.clone(), owner.clone());
        let request = ReleaseRequest::new(target, owner, self.deadline());
        self.backend.release(&request).await
    }

    /// One release, which must be answered.
    pub async fn release(&self, owner: &OwnerId) -> ReleaseOutcome {
        Rule::Errors.ok(self.try_release(owner).await, "a release")
    }

    /// One release, which must end the owner's hold.
    pub async fn give_back(&self, owner: &OwnerId) {
        let outcome = self.release(owner).await;
        Rule::Ownership.check(
            outcome == ReleaseOutcome::Released,
            "the holder's release was answered NotHeld",
        );
    }

    /// One extension with any answer.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn try_extend(
        &self,
        owner: &OwnerId,
        lease: Duration,
    ) -> Result<ExtendOutcome, BackendError> {
        let (target, owner) = (self.target.clone(), owner.clone());
        let batch = [ExtendRequest::new(target, owner, lease)];
        let mut answers = self.backend.extend(&batch, self.deadline()).await;
        Rule::Errors.check(
            answers.len() == 1,
            format_args!("{} answers for one extension", answers.len()),
        );
        answers.remove(0)
    }

    /// One extension, which must be answered.
    pub async fn extend(&self, owner: &OwnerId, lease: Duration) -> ExtendOutcome {
        Rule::Errors.ok(self.try_extend(owner, lease).await, "an extension")
    }

    /// The state, which must be readable.
    pub async fn state(&self) -> LockState {
        let state = self.backend.inspect(&self.target, self.deadline()).await;
        Rule::Errors.ok(state, "an inspection")
    }

    /// The holder, which must be `owner`.
    pub async fn holder(&self, owner: &OwnerId) -> HolderState {
        let state = self.state().await;
        let Some(holder) = state.holder() else {
            Rule::Inspection.broken("a held lock is shown as free")
        };
        Rule::Inspection.check(holder.owner == *owner, "the holder shown is somebody else");
        holder.clone()
    }

    /// The rest of the lease of `owner`, which must be the holder.
    pub async fn remaining(&self, owner: &OwnerId) -> Duration {
        let remaining = self.holder(owner).await.remaining;
        remaining.unwrap_or_else(|| Rule::Inspection.broken("a lease without an end"))
    }

    /// The same client on the lock of this name, used as another kind.
    #[must_use]
    pub fn as_kind(&self, kind: LockKind) -> Self {
        self.on(LockTarget::new(self.target.name().clone(), kind))
    }

    /// The release that undoes an attempt, which must be answered.
    pub async fn release_of(&self, attempt: &AcquireAttempt) -> ReleaseOutcome {
        let (target, owner) = (attempt.target.clone(), attempt.owner.clone());
        let mut request = ReleaseRequest::new(target, owner, self.deadline());
        request.permits = attempt.permits;
        Rule::Errors.ok(self.backend.release(&request).await, "a release")
    }

    /// The given attempt, which must be answered.
    pub async fn send(&self, attempt: &AcquireAttempt) -> AttemptOutcome {
        Rule::Errors.ok(self.backend.attempt(attempt).await, "an attempt")
    }

    /// Gives it a number, unless it has one.
    pub async fn initialise(&self, number: u64) -> CounterOutcome {
        self.count(initial(self.target.kind(), number)).await
    }

    /// One operation on the number inside, which must be answered.
    pub async fn count(&self, action: CounterAction) -> CounterOutcome {
        self.count_as(&OwnerId::generate(), action).await
    }

    /// One operation on the number inside under the caller's id, which must be answered.
    pub async fn count_as(&self, operation: &OwnerId, action: CounterAction) -> CounterOutcome {
        let outcome = self.try_count(operation, action).await;
        Rule::Errors.ok(outcome, format_args!("{action:?}"))
    }

    /// One operation on the number inside, with any answer.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn try_count(
        &self,
        operation: &OwnerId,
        action: CounterAction,
    ) -> Result<CounterOutcome, BackendError> {
        let request = CounterRequest {
            target: self.target.clone(),
            operation: operation.clone(),
            action,
            deadline: self.deadline(),
        };
        self.backend.counter(&request).await
    }

    /// The number inside.
    pub async fn number(&self) -> Option<i64> {
        self.count(CounterAction::Read).await.value
    }

    /// An eviction, which must be answered.
    pub async fn evict(&self) -> Eviction {
        let eviction = self.backend.evict(&self.target, self.deadline()).await;
        Rule::Errors.ok(eviction, "an eviction")
    }

    /// Whether the state shows this owner as a holder.
    pub async fn is_held_by(&self, owner: &OwnerId) -> bool {
        let holders = self.state().await.holders;
        holders.iter().any(|holder| holder.owner == *owner)
    }

    /// Subscribes, which must succeed.
    pub async fn subscribe(&self) -> WakeStream {
        let stream = self.backend.subscribe(&self.target, self.deadline()).await;
        Rule::Wakes.ok(stream, "a subscription")
    }
}
