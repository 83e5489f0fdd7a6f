//! The contract between the locks and whatever stores them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::backend_error::BackendError;
use crate::diagnosis::Diagnosis;
use crate::kind::{LockKind, LockTarget};
use crate::name::NameError;
use crate::request::{
    AcquireAttempt, AttemptOutcome, ExtendOutcome, ExtendRequest, LockState, ReleaseOutcome,
    ReleaseRequest,
};
use crate::wake::WakeStream;

/// A place where locks are kept.
///
/// Implemented by those who write backends; those who use locks call [`Locktopus`](crate::Locktopus).
/// There are no default methods, so that a wrapper (tracing, timeout, quorum) cannot forget to forward one.
///
/// # Contract
///
/// * **Exclusion.** Between a `Granted` answer and the end of that lease, a release or an expiry, no other
///   owner is granted the same target. A lease is measured by the backend's own clock, from the moment it
///   executed the request.
/// * **Idempotence.** Every request may be executed twice for the same owner with the effect of once. A
///   repeated attempt of the holder is answered `Granted` with the same token; a repeated release is
///   answered `NotHeld`. Holds are not counted: one owner holds a lock once.
/// * **Ownership.** Only a request with the holder's id changes or ends a hold. An extension never creates
///   a lock that is not there.
/// * **Tokens** grow strictly over the grants of a name and are never zero.
/// * **`Err` says whether it ran.** [`Executed::No`](crate::Executed) only if the request certainly had no
///   effect. With [`Executed::Maybe`](crate::Executed) the core repeats the request with the same owner, or
///   releases. A backend repeats a request by itself only if it certainly did not run, and only before the
///   deadline.
/// * **Deadlines** are given as instants of `tokio::time`. An answer after the deadline is useless; return
///   an error of kind `Timeout` soon after it at the latest.
/// * **Units.** Leases are whole milliseconds, at least one.
/// * **Cancel safety.** Any returned future may be dropped at any time; then the request may or may not run.
///   The core follows a dropped attempt with a release of the same owner. That release may overtake the
///   attempt: a backend that can tell that an attempt arrives late refuses it.
/// * **Runtime.** Methods are called on a tokio runtime with time and I/O enabled.
#[async_trait]
pub trait LockBackend: fmt::Debug + Send + Sync + 'static {
    /// What this backend is and what it can promise. Constant for its whole life.
    fn info(&self) -> &BackendInfo;

    /// Says whether this backend can place this target, before anything is sent.
    ///
    /// # Errors
    ///
    /// [`NameError::Refused`] with the rule that the name breaks.
    fn check(&self, target: &LockTarget) -> Result<(), NameError>;

    /// The group of locks this one is extended with. Requests of one [`extend`](Self::extend) call share a
    /// shard; different shards are extended in parallel and cannot delay each other.
    fn shard(&self, target: &LockTarget) -> u32;

    /// Tries once to take a lock. Does not wait for it.
    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError>;

    /// Ends a hold, and undoes whatever an unanswered attempt of this owner did.
    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError>;

    /// Extends several locks of one shard. One answer for each request, in order; one failure does not
    /// hide the other answers.
    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>>;

    /// Reads the state of a lock from where it is written, never from a replica.
    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError>;

    /// Listens for hints that the target may have become free.
    ///
    /// Once this returns, a release that starts later wakes at least one of the waiters of this process.
    /// Hints may be lost and may be false. After anything that can lose hints, every stream yields
    /// [`Wake::Resync`](crate::Wake).
    async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError>;

    /// Looks for what silently breaks locks: eviction, old servers, missing permissions, wrong clocks.
    async fn diagnose(&self, deadline: Instant) -> Result<Diagnosis, BackendError>;

    /// Closes connections and ends background tasks. Later calls fail with kind `Closed`.
    async fn close(&self);
}

/// A shared backend of any type.
pub type DynBackend = Arc<dyn LockBackend>;

/// What a backend is and what it can promise.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BackendInfo {
    /// Short name for errors, metrics and reports, for example `redis-rs`.
    pub name: &'static str,
    /// Where the locks are, without credentials, for example `redis-rs (cluster)`.
    pub description: String,
    /// Whether [`LockBackend::subscribe`] gives hints. Otherwise waiters poll.
    pub wakes: bool,
    /// How long the core waits for one answer before it counts the request as perhaps executed.
    pub call_timeout: Duration,
}

impl BackendInfo {
    /// A description with the given answers.
    #[must_use]
    pub fn new(
        name: &'static str,
        description: impl Into<String>,
        wakes: bool,
        call_timeout: Duration,
    ) -> Self {
        Self {
            name,
            description: description.into(),
            wakes,
            call_timeout,
        }
    }
}

/// Whether two kinds hand out fencing tokens, for those who must know before they lock.
#[must_use]
pub fn kind_has_tokens(kind: &LockKind) -> bool {
    match kind {
        LockKind::Reentrant => true,
        LockKind::Mutex(profile) => profile.has_side_keys(),
    }
}
