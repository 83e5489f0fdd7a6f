//! One client on one lock, for cases that speak to the backend directly.

use std::time::Duration;

use locktopus_core::{
    AcquireAttempt, AttemptOutcome, BackendError, DynBackend, ExtendOutcome, ExtendRequest,
    FencingToken, HolderState, LockState, LockTarget, OwnerId, ReleaseOutcome, ReleaseRequest,
    WakeStream,
};
use tokio::time::Instant;

use super::ctx::LONG;
use super::rule::Rule;

/// A client on one lock. Its methods fail the case where a healthy store must answer.
#[derive(Debug, Clone)]
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

    /// When a call that is made now must be answered.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.backend.info().call_timeout
    }

    /// One attempt, whatever its answer.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn try_attempt(
        &self,
        owner: &OwnerId,
        lease: Duration,
    ) -> Result<AttemptOutcome, BackendError> {
        let (target, owner) = (self.target.clone(), owner.clone());
        let attempt = AcquireAttempt {
            target,
            owner,
            lease,
            deadline: self.deadline(),
        };
        self.backend.attempt(&attempt).await
    }

    /// One attempt, which must be answered.
    pub async fn attempt(&self, owner: &OwnerId, lease: Duration) -> AttemptOutcome {
        Rule::Errors.ok(self.try_attempt(owner, lease).await, "an attempt")
    }

    /// One attempt, which must be granted.
    pub async fn take(&self, owner: &OwnerId, lease: Duration) -> Option<FencingToken> {
        match self.attempt(owner, lease).await {
            AttemptOutcome::Granted { token } => token,
            AttemptOutcome::Held { remaining } => Rule::Exclusion.broken(format_args!(
                "a free lock, or the owner's own, was refused as held (remaining {remaining:?})"
            )),
        }
    }

    /// One attempt of a stranger, which must not be granted.
    pub async fn refused(&self, stranger: &OwnerId) -> Option<Duration> {
        match self.attempt(stranger, LONG).await {
            AttemptOutcome::Held { remaining } => remaining,
            AttemptOutcome::Granted { .. } => {
                Rule::Exclusion.broken("two owners were granted one lock")
            }
        }
    }

    /// One release, whatever its answer.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn try_release(&self, owner: &OwnerId) -> Result<ReleaseOutcome, BackendError> {
        let (target, owner) = (self.target.clone(), owner.clone());
        let request = ReleaseRequest {
            target,
            owner,
            deadline: self.deadline(),
        };
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

    /// One extension, whatever its answer.
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
        let batch = [ExtendRequest {
            target,
            owner,
            lease,
        }];
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

    /// The holder, who must be `owner`.
    pub async fn holder(&self, owner: &OwnerId) -> HolderState {
        let Some(holder) = self.state().await.holder else {
            Rule::Inspection.broken("a held lock is shown as free")
        };
        Rule::Inspection.check(holder.owner == *owner, "the holder shown is somebody else");
        holder
    }

    /// What is left of the lease of `owner`, who must be the holder.
    pub async fn remaining(&self, owner: &OwnerId) -> Duration {
        let remaining = self.holder(owner).await.remaining;
        remaining.unwrap_or_else(|| Rule::Inspection.broken("a lease without an end"))
    }

    /// Subscribes, which must work.
    pub async fn subscribe(&self) -> WakeStream {
        let stream = self.backend.subscribe(&self.target, self.deadline()).await;
        Rule::Wakes.ok(stream, "a subscription")
    }
}
