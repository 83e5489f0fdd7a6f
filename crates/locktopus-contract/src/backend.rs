//! The contract between the locks and whatever stores them.

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

/// A place where locks are kept.
///
/// Authors of backends implement it; users of locks call `Locktopus` of the crate `locktopus-core`.
/// A backend around another one is a [`Layer`](crate::Layer). `docs/write-a-backend.md` is a guide,
/// and `examples/backend-template` a backend to copy.
///
/// # Capabilities
///
/// The methods without a default are what a lock is. Everything else is an object that is there or
/// not:
///
/// | method | what a backend can do | without it |
/// |---|---|---|
/// | [`wake_ups`](Self::wake_ups) | notify waiters | waiters poll, with growing pauses |
/// | [`counters`](Self::counters) | count: semaphores, latches | [`check`](Self::check) refuses those kinds |
/// | [`groups`](Self::groups) | take several locks at once | they are taken one by one |
/// | [`directory`](Self::directory) | list locks, end holds | held locks cannot be listed, and no release can be forced |
/// | [`instances`](Self::instances) | keep a few lines of text for a time | holders are shown without labels |
/// | [`diagnosis`](Self::diagnosis) | find its own weak settings | one node, [`BackendInfo::description`] |
///
/// An attempt or a release may ask for more than a backend has. It then ignores or refuses that:
///
/// | without | method | answer | what follows |
/// |---|---|---|---|
/// | names of its own rules | [`check`](Self::check) | [`LockTarget::check_name`] | |
/// | some kinds | [`check`](Self::check) | [`NameError::UnsupportedKind`] for each of them | users are told before anything is sent |
/// | a queue | [`attempt`](Self::attempt) | [`Held`](AttemptOutcome::Held), whatever `place` says; no [`with_queues`](BackendInfo::with_queues) | waiters ask again, in no order |
/// | recalls | [`attempt`](Self::attempt) | ignores `recall`; no [`with_recalls`](BackendInfo::with_recalls) | no lease is kept after its release |
/// | locks that are held at least for a time | [`release`](Self::release) with `linger`, and [`BackendInfo::longest_linger`] | zero | such requests are refused |
/// | memory of tokens that ends | [`attempt`](Self::attempt), [`extend`](Self::extend) | ignores `token_retention` and `keep_token`; no [`with_token_retention`](BackendInfo::with_token_retention) | tokens are remembered for ever |
///
/// # Contract
///
/// * **Exclusion.** Between a `Granted` answer and the end of that lease, a release or an expiry,
///   no other owner is granted the same target. A lease is measured by the backend's own clock,
///   from the moment it executed the request.
/// * **Idempotence.** Every request may be executed twice for the same owner with the effect of
///   once. A repeated attempt of the holder is answered
///   `Granted` with the same token; a repeated release is answered `NotHeld`. Holds are not
///   counted: one owner holds a lock once.
/// * **Ownership.** Only a request with the holder's id changes or ends a hold. An extension never
///   creates a lock that is not there.
/// * **Tokens** grow strictly over the grants of a name and are never zero. A grant reserves as
///   many as the attempt says.
/// * **The queue** is served first come first served. An attempt that asks for a place keeps it,
///   and keeps its order, as long as it is repeated in time; a release takes the place away.
///   Whoever releases hands the lock to the first waiters that can have it and pushes the grant to
///   them
///   ([`WakeStream`](crate::WakeStream)); so does whoever gives up a place while the lock is free, and whoever finds permits whose lease has ended. An attempt never overtakes a waiter that is alive, whether it queues or not. A backend without a queue answers [`Held`](AttemptOutcome::Held)
///   to every attempt and says so in [`BackendInfo::supports_queue`].
/// * **Kinds.** A name is in use as one kind from when it is held, waited for or given a number,
///   until that is over. Then an attempt, a group, an operation on the number, an eviction and an
///   inspection as another kind are errors of kind
///   [`OtherKind`](crate::BackendErrorKind::OtherKind) and change nothing. A release and an
///   extension are answered as for an owner that holds nothing, because that is what ends the hold
///   of one whose name was taken for something else.
/// * **Permits.** An attempt is an error of kind
///   [`TooFewPermits`](crate::BackendErrorKind::TooFewPermits) if the semaphore has no number of
///   permits, or if it asks for more than there are: free, held and
///   [drained](crate::CounterAction::Drain). It takes nothing and gets no place in the queue. A
///   waiter for more permits than there are now gets this error at its next attempt, and holds up
///   no waiter behind it. If another library set the number, a backend may not know how many there
///   are; then the attempt waits.
/// * **Recall.** A grant that answers an attempt with
///   [`recall`](AcquireAttempt::recall) makes its owner one who is told: the next attempt of another owner, alone or in a group, that finds this hold in the way, or an eviction of it, sends [`Wake::Wanted`](crate::Wake::Wanted)
///   to the stream that [claims](crate::WakeStream::claim) the owner. Once is enough, the message
///   may be lost, and the promise ends with the lease that was asked for, renewed or not. It is
///   made for locks and mutexes that have a queue, by a backend that says
///   [`BackendInfo::supports_recall`]; elsewhere the flag changes nothing.
/// * **Linger.** A release with
///   [`linger`](ReleaseRequest::linger) turns the owner's hold into one of the heir, with that much of a lease left, and tells nobody. Repeated, it finds the heir and is answered `Released`;
///   where neither of them holds it, it is a release like any other. Only asked of a backend that
///   says [`BackendInfo::longest_linger`].
/// * **Deadlines** are given as instants of
///   `tokio::time`. An answer after the deadline is useless; return an error of kind `Timeout` soon
///   after it at the latest.
/// * **Safety.**
///   [`BackendInfo::safety`] says what is done so that a server that fails gives no lock to two. A grant that is answered counts under that mode; what was granted and does not count is given back before the error is returned, or the error says [`Executed::Maybe`](crate::Executed).
/// * **Units.** Leases are whole milliseconds, at least one.
/// * **Runtime.** Methods are called on a tokio runtime with time and I/O enabled, and not always
///   on the same one. The runtime of an earlier call may have ended, so keep connections and tasks
///   in a [`PerRuntime`](crate::PerRuntime).
///
/// # Errors
///
/// They say whether the request ran:
/// [`Executed::No`](crate::Executed) only if it certainly had no effect. With [`Executed::Maybe`](crate::Executed)
/// the core repeats the request with the same owner, or releases. A backend repeats a request by
/// itself only if it certainly did not run, and only before the deadline.
///
/// # Cancel safety
///
/// Any returned future may be dropped at any time; then the request may or may not run. The core
/// follows a dropped attempt with a release of the same owner. That release may overtake the
/// attempt: a backend that can tell that an attempt arrives late refuses it.
///
/// # Example
///
/// `examples/backend-template` is a whole backend, and [`Layer`](crate::Layer) has the example of
/// one around another. Callers see:
///
/// ```
/// use locktopus::{LockBackend, MemoryBackend};
/// let backend = MemoryBackend::new();
/// assert_eq!(backend.info().name, "memory");
/// assert!(backend.wake_ups().is_some() && backend.directory().is_some());
/// ```
#[async_trait]
pub trait LockBackend: fmt::Debug + Send + Sync + 'static {
    /// What this backend is and what it can promise. Constant for its whole life.
    fn info(&self) -> &BackendInfo;

    /// Says whether this backend can place this target, before anything is sent.
    ///
    /// # Errors
    ///
    /// [`NameError::Refused`] with the rule that the name breaks; [`NameError::Ambiguous`] if
    /// [`LockTarget::check_name`] says so; [`NameError::UnsupportedKind`] if there are no locks of
    /// this kind.
    fn check(&self, target: &LockTarget) -> Result<(), NameError>;

    /// Tries once to take a lock. Does not wait for it.
    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError>;

    /// Ends a hold, and undoes whatever an unanswered attempt of this owner did.
    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError>;

    /// Extends several locks of one shard. One answer for each request, in order; one failure does
    /// not hide the other answers.
    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>>;

    /// Reads the state of a lock from where it is written, never from a replica. Changes nothing:
    /// what has ended is left for those to find who tell the others.
    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError>;

    /// Closes connections and ends background tasks. Later calls fail with kind `Closed`.
    async fn close(&self);

    /// The group of locks this one is extended with. Requests of one [`extend`](Self::extend) call
    /// share a shard; different shards are extended in parallel and cannot delay each other.
    /// Default: one for all.
    fn shard(&self, _target: &LockTarget) -> u32 {
        0
    }

    /// Tells waiters when to look. Default: it does not.
    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        None
    }

    /// Keeps the numbers of semaphores and latches. Default: it does not.
    fn counters(&self) -> Option<&dyn Counters> {
        None
    }

    /// Takes several locks in one call. Default: it does not.
    fn groups(&self) -> Option<&dyn Groups> {
        None
    }

    /// Lists locks, and ends the holds of others. Default: it does not.
    fn directory(&self) -> Option<&dyn Directory> {
        None
    }

    /// Keeps what instances say about themselves. Default: it does not.
    fn instances(&self) -> Option<&dyn Instances> {
        None
    }

    /// Looks for what silently breaks locks. Default: it does not.
    fn diagnosis(&self) -> Option<&dyn Diagnostics> {
        None
    }
}

/// A shared backend of any type.
pub type DynBackend = Arc<dyn LockBackend>;

/// What a backend is and what it can promise.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{BackendInfo, SafetyMode, TokenSource};
/// // Waiters stand in a queue, and holders are told when their lock is wanted; calls take 200 ms at most.
/// let info = BackendInfo::new("mine", "mine at db:7000", Duration::from_millis(200))
///     .with_queues()
///     .with_recalls()
///     .with_linger(Duration::from_secs(3600))
///     .with_token_retention(Duration::from_secs(24 * 3600))
///     .with_safety(SafetyMode::Consensus)
///     .with_tokens(TokenSource::Count)
///     .with_outlives(Duration::from_secs(2));
/// assert!(info.supports_queue && info.supports_recall);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BackendInfo {
    /// Short name for errors, metrics and reports, for example `redis-rs`.
    pub name: &'static str,
    /// Where the locks are, without credentials, for example `redis-rs (cluster)`.
    pub description: String,
    /// Whether [`LockBackend::attempt`] gives places in a queue. Otherwise waiters ask again when
    /// woken.
    pub supports_queue: bool,
    /// Whether a holder can ask to be [told](crate::Wake::Wanted) that its lock is wanted.
    /// Otherwise leases are never kept after a release.
    pub supports_recall: bool,
    /// The longest time for which a release can [leave the lock held](crate::Linger). Zero: it
    /// cannot, and requests that are to be held at least for a time are refused.
    pub longest_linger: Duration,
    /// How long it remembers the token of a grant whose request does not say. For ever: extensions
    /// need not [prolong](crate::ExtendRequest::keep_token) that.
    pub token_retention: TokenRetention,
    /// How long the core waits for one answer before it counts the request as perhaps executed.
    pub call_timeout: Duration,
    /// What its grants are worth when a server fails.
    pub safety: SafetyMode,
    /// What makes its fencing tokens grow.
    pub tokens: TokenSource,
    /// For how long after its lease a lock may still be held, if its holder's process died. Zero
    /// where each lock has an end of its own; more where a store ends the locks of one session
    /// together.
    pub outlives: Duration,
}

/// What makes the fencing tokens of a backend grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TokenSource {
    /// A clock, in microseconds, and the last token. Whoever reserves more tokens with a grant than
    /// the microseconds that it lasts runs ahead of the clock.
    #[default]
    Clock,
    /// A number that the store counts up and never forgets. Any number may be reserved.
    Count,
}

impl BackendInfo {
    /// A description with the given answers.
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

    /// Says what makes its fencing tokens grow.
    #[must_use]
    pub fn with_tokens(mut self, source: TokenSource) -> Self {
        self.tokens = source;
        self
    }

    /// Says for how long after its lease a dead process's lock may still be held.
    #[must_use]
    pub fn with_outlives(mut self, longest: Duration) -> Self {
        self.outlives = longest;
        self
    }

    /// Says that attempts get places in a queue.
    #[must_use]
    pub fn with_queues(mut self) -> Self {
        self.supports_queue = true;
        self
    }

    /// Says what its grants are worth when a server fails.
    #[must_use]
    pub fn with_safety(mut self, safety: SafetyMode) -> Self {
        self.safety = safety;
        self
    }

    /// Says that a release can leave the lock held for up to this long.
    #[must_use]
    pub fn with_linger(mut self, longest: Duration) -> Self {
        self.longest_linger = longest;
        self
    }

    /// Says how long it remembers the token of a grant whose request does not say.
    #[must_use]
    pub fn with_token_retention(mut self, keep: impl Into<TokenRetention>) -> Self {
        self.token_retention = keep.into();
        self
    }

    /// Says that holders who ask for it are told when their lock is wanted.
    #[must_use]
    pub fn with_recalls(mut self) -> Self {
        self.supports_recall = true;
        self
    }
}
