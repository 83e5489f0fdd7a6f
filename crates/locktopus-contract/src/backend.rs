//! The contract between the locks and the store that keeps them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::backend_error::BackendError;
use crate::capability::{Counters, Diagnostics, Directory, Groups, Instances, WakeUps};
use crate::kind::LockTarget;
use crate::lock_state::LockState;
use crate::name::NameError;
use crate::request::{
    AcquireAttempt, AttemptOutcome, ExtendOutcome, ExtendRequest, ReleaseOutcome, ReleaseRequest,
};
use crate::safety_mode::SafetyMode;
use crate::token_retention::TokenRetention;

/// A store of locks.
///
/// If you write a backend, you implement this trait. If you use locks, you call `Locktopus` of the
/// crate `locktopus-core`.
///
/// To wrap another backend, write a [`Layer`](crate::Layer). `docs/write-a-backend.md` is the
/// guide, and `examples/backend-template` is a backend to copy.
///
/// # Capabilities
///
/// Every backend implements the methods without a default. Each capability is an object that the
/// backend returns or does not:
///
/// | method | what a backend can do | without it |
/// |---|---|---|
/// | [`wake_ups`] | notify waiters | waiters poll, with growing pauses |
/// | [`counters`] | count: semaphores, rate limiters, latches | [`check`] refuses those kinds |
/// | [`groups`] | take several locks at once | they are taken one by one |
/// | [`directory`] | list locks, end holds | no list of held locks, and no forced release |
/// | [`instances`] | keep a few lines of text for a time | holders are shown without labels |
/// | [`diagnosis`] | find weak settings of its store | a diagnosis only names the backend |
///
/// A backend may lack more than that:
///
/// * **Naming rules of its own.** [`check`] calls [`LockTarget::check_name`].
/// * **Some kinds.** [`check`] answers [`NameError::UnsupportedKind`] for each of them, so users
///   get an error before anything is sent.
/// * **A queue.** [`attempt`] answers [`Busy`](AttemptOutcome::Busy) and ignores `place`, and the
///   backend does not set [`supports_queue`](BackendInfo::supports_queue). Waiters retry, in no
///   order.
/// * **Recalls.** [`attempt`] ignores `recall`, and the backend does not set
///   [`supports_recall`](BackendInfo::supports_recall). Then no lease is kept after its release.
/// * **Minimum hold times.** [`BackendInfo::longest_linger`] stays zero. Then no [`release`] has a
///   `linger`, and requests for a minimum hold time are refused.
/// * **Forgetting tokens after a time.** [`attempt`] and [`extend`] ignore `token_retention` and
///   `keep_token`, and [`BackendInfo::token_retention`] stays `Forever`. Tokens are remembered for
///   ever.
///
/// [`wake_ups`]: Self::wake_ups
/// [`counters`]: Self::counters
/// [`groups`]: Self::groups
/// [`directory`]: Self::directory
/// [`instances`]: Self::instances
/// [`diagnosis`]: Self::diagnosis
/// [`check`]: Self::check
/// [`attempt`]: Self::attempt
/// [`release`]: Self::release
/// [`extend`]: Self::extend
///
/// # Contract
///
/// * **Exclusion.** After a `Granted` answer, no other owner is granted the same target until the
///   lease ends, by a release or by expiry. The backend's own clock measures the lease, from the
///   moment it executed the request.
/// * **Idempotence.** Executing a request twice for the same owner has the effect of executing it
///   once. If the holder repeats its attempt, the answer is `Granted` with the same token. A
///   repeated release is answered `NotHeld`. Holds are not counted: one owner holds a lock once.
/// * **Ownership.** Only a request with the holder's id changes or ends a hold. An extension never
///   creates a missing lock.
/// * **Tokens** grow strictly over the grants of a name and are never zero. A grant reserves as
///   many tokens as the attempt asks for.
/// * **The queue** is first come, first served. An attempt that asks for a place keeps it, in
///   order, while it is repeated in time. A release gives the place up. The backend hands the lock
///   to the first waiters that can have it, and pushes the grant to them
///   ([`WakeStream`](crate::WakeStream)), in three cases: on a release, when an owner gives up a
///   place while the lock is free, and when a request finds permits whose lease has ended. An
///   attempt never overtakes a live waiter, whether or not the attempt queues. A backend without a
///   queue answers [`Busy`](AttemptOutcome::Busy) to every attempt and says so in
///   [`BackendInfo::supports_queue`].
/// * **Kinds.** A name is in use as one kind while the lock is held or waited for, or while its
///   number is set. Meanwhile, every attempt, group, operation on the number, eviction and
///   inspection as another kind fails with kind [`OtherKind`](crate::BackendErrorKind::OtherKind)
///   and changes nothing. A release or an extension is answered as if the owner held nothing, so a
///   holder whose name was taken for another kind learns that its hold is over.
/// * **Permits.** An attempt fails with kind
///   [`TooFewPermits`](crate::BackendErrorKind::TooFewPermits) if the semaphore has no number of
///   permits, or if it asks for more than the total: free, held and
///   [drained](crate::CounterAction::Drain). Such an attempt takes nothing and gets no place in the
///   queue. If the total falls below what a waiter asked for, that waiter gets this error at its
///   next attempt and holds up no waiter behind it. If another library set the number, a backend
///   may not know the total. Then the attempt waits.
/// * **Recall.** [`recall`](AcquireAttempt::recall) asks for a message when another owner wants the
///   lock. If the answer to such an attempt is a grant, the backend sends
///   [`Wake::Wanted`](crate::Wake::Wanted) to the stream that [claims](crate::WakeStream::claim)
///   the owner. It does so when the next attempt of another owner, alone or in a group, runs into
///   this hold, or when the hold is evicted. Once is enough, and the message may be lost. The
///   promise ends with the lease that the attempt asked for, even if the lease is renewed. It
///   covers locks and mutexes with a queue, on a backend that sets
///   [`BackendInfo::supports_recall`]. Elsewhere the flag changes nothing.
/// * **Linger.** A release with [`linger`](ReleaseRequest::linger) turns the owner's hold into the
///   heir's, with that much lease left, and notifies no waiter. If it is repeated, it finds the
///   heir and is answered `Released`. If neither of them holds the lock, it is an ordinary release.
///   The core asks for it only if the backend sets [`BackendInfo::longest_linger`].
/// * **Deadlines** are instants of `tokio::time`. An answer after the deadline is useless. Return
///   an error of kind `Timeout` by then, or soon after.
/// * **Safety.** [`BackendInfo::safety`] says how the backend avoids granting one lock twice when a
///   server fails. A grant counts only if it meets that mode. Before it reports a failure, the
///   backend gives back a grant that does not count, or the error says
///   [`Executed::Maybe`](crate::Executed).
/// * **Units.** Leases are whole milliseconds, at least one.
/// * **Runtime.** Methods run on a tokio runtime with time and I/O enabled, not always on the same
///   one. The runtime of an earlier call may have ended, so keep connections and tasks in a
///   [`PerRuntime`](crate::PerRuntime).
///
/// # Errors
///
/// An error says whether the request ran: [`Executed::No`](crate::Executed) only if it certainly
/// had no effect. After [`Executed::Maybe`](crate::Executed) the core repeats the request with the
/// same owner, or releases. A backend repeats a request on its own only if it certainly did not
/// run, and only before the deadline.
///
/// # Cancel safety
///
/// You may drop any returned future at any time. The request may then run or not. The core follows
/// a dropped attempt with a release by the same owner. That release may overtake the attempt, so a
/// backend that can recognise a late attempt refuses it.
///
/// # Example
///
/// `examples/backend-template` is a whole backend, and [`Layer`](crate::Layer) shows how to wrap
/// one. A caller sees:
///
/// ```
/// use locktopus::{LockBackend, MemoryBackend};
/// let backend = MemoryBackend::new();
/// assert_eq!(backend.info().name, "memory");
/// assert!(backend.wake_ups().is_some() && backend.directory().is_some());
/// ```
#[async_trait]
pub trait LockBackend: fmt::Debug + Send + Sync + 'static {
    /// What this backend is and what it promises. Never changes.
    fn info(&self) -> &BackendInfo;

    /// Checks whether this backend can keep this target, before anything is sent.
    ///
    /// # Errors
    ///
    /// [`NameError::Refused`] names the rule that the name breaks. [`NameError::Ambiguous`] comes
    /// from [`LockTarget::check_name`]. [`NameError::UnsupportedKind`] means that the backend has
    /// no locks of this kind.
    fn check(&self, target: &LockTarget) -> Result<(), NameError>;

    /// Tries once to take a lock, without waiting for it.
    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError>;

    /// Ends a hold, and undoes everything that an unanswered attempt of this owner did.
    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError>;

    /// Extends several locks of one shard. Returns one answer for each request, in order. One
    /// failure does not hide the other answers.
    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>>;

    /// Reads the state of a lock from the node that accepts writes, never from a replica. Changes
    /// nothing. Expired holds and places stay for a call that also notifies waiters.
    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError>;

    /// Closes connections and ends background tasks. Later calls fail with kind `Closed`.
    async fn close(&self);

    /// The group of locks that are extended together with this one. All requests of one
    /// [`extend`](Self::extend) call share a shard. Different shards are extended in parallel and
    /// cannot delay each other. Default: one shard for all locks.
    fn shard(&self, _target: &LockTarget) -> u32 {
        0
    }

    /// Tells waiters when to retry. Default: unsupported.
    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        None
    }

    /// Keeps the numbers of semaphores, rate limiters and latches. Default: unsupported.
    fn counters(&self) -> Option<&dyn Counters> {
        None
    }

    /// Takes several locks in one call. Default: unsupported.
    fn groups(&self) -> Option<&dyn Groups> {
        None
    }

    /// Lists locks, and ends other owners' holds. Default: unsupported.
    fn directory(&self) -> Option<&dyn Directory> {
        None
    }

    /// Keeps the records that describe instances. Default: unsupported.
    fn instances(&self) -> Option<&dyn Instances> {
        None
    }

    /// Looks for settings that silently break locks. Default: unsupported.
    fn diagnosis(&self) -> Option<&dyn Diagnostics> {
        None
    }
}

/// A shared backend of any type.
pub type DynBackend = Arc<dyn LockBackend>;

/// A backend's name, its abilities and its promises.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{BackendInfo, SafetyMode, TokenSource};
/// // Waiters queue, and holders learn when their lock is wanted. Calls take 200 ms at most.
/// let info = BackendInfo {
///     supports_queue: true,
///     supports_recall: true,
///     safety: SafetyMode::Consensus,
///     tokens: TokenSource::Count,
///     ..BackendInfo::new("mine", "mine at db:7000", Duration::from_millis(200))
/// };
/// assert!(info.longest_linger.is_zero() && info.outlives.is_zero());
/// ```
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct BackendInfo {
    /// Short name for errors, metrics and reports, for example `redis-rs`.
    pub name: &'static str,
    /// The location of the locks, without credentials, for example `redis-rs (cluster)`.
    pub description: String,
    /// Whether [`LockBackend::attempt`] gives places in a queue. Without them, waiters retry when
    /// notified.
    pub supports_queue: bool,
    /// Whether a holder can ask for a [message](crate::Wake::Wanted) when another owner wants its
    /// lock. Without it, leases are never kept after a release.
    pub supports_recall: bool,
    /// How long a release can [leave the lock held](crate::Linger), at most. Zero: releases cannot,
    /// and requests for a minimum hold time are refused.
    pub longest_linger: Duration,
    /// How long the backend remembers a grant's token if the request does not say. If for ever,
    /// extensions need not [prolong](crate::ExtendRequest::keep_token) it.
    pub token_retention: TokenRetention,
    /// How long the core waits for one answer. After that, the request may or may not have run.
    pub call_timeout: Duration,
    /// The safety mode: how far to trust a grant when a server fails.
    pub safety: SafetyMode,
    /// The source of its fencing tokens.
    pub tokens: TokenSource,
    /// If the holder's process dies, how long its lock may stay held after its lease. Zero if each
    /// lock expires on its own. More if the store ends all locks of a session together.
    pub outlives: Duration,
}

/// How a backend makes its fencing tokens grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TokenSource {
    /// A clock, in microseconds, together with the last token. A grant that reserves more tokens
    /// than it lasts microseconds runs ahead of the clock.
    #[default]
    Clock,
    /// A number that the store counts up and never forgets. A grant may reserve any number of
    /// tokens.
    Count,
}

impl BackendInfo {
    /// A description with these values, and every optional ability switched off.
    #[must_use]
    pub fn new(name: &'static str, description: impl Into<String>, call_timeout: Duration) -> Self {
        Self {
            name,
            description: description.into(),
            supports_queue: false,
            supports_recall: false,
            longest_linger: Duration::ZERO,
            token_retention: TokenRetention::Forever,
            call_timeout,
            safety: SafetyMode::Plain,
            tokens: TokenSource::Clock,
            outlives: Duration::ZERO,
        }
    }
}
